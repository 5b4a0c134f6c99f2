/**
 * The workload, the same on every side: the process, its ops, their refs and their order.
 *
 * A create puts a task into the node `wait`; a modify moves it to the node `again`, the next modify
 * back. So the file keeps its size, and a task can be modified any number of times. Random refs are
 * hashes of the task's number, spread over all keys, and tasks are modified in a shuffled order;
 * ascending refs are the number itself, and tasks are modified in ascending order. No commit
 * modifies a task twice. All refs have 16 characters, so all good answers of a cell have one length.
 */
import type { Refs, Verb, WriteVerb } from './cells.ts'

export const user = '13000'
export const conv_id = '1234'
/** Encrypts the secrets of temporary files. */
export const secret_key = '5a'.repeat(32)

export const definition = {
  obj_type: 1,
  obj_id: Number(conv_id),
  title: 'Bench',
  conv_type: 'process',
  status: 'active',
  params: [],
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'again' }]),
      node('again', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'wait' }]),
    ],
  },
}

export const timer_s = 3_600
const timer = { type: 'time', value: timer_s, dimension: 'sec', to_node_id: 'late' }

/** A task waits with a timer, and a callback sends it to its end, which is kept. */
export const lives_definition = {
  ...{ obj_type: 1, obj_id: Number(conv_id), title: 'Lives', conv_type: 'process' },
  ...{ status: 'active', params: [] },
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'done' }], [timer]),
      node('done', 2, []),
      node('late', 2, []),
    ],
  },
}

export interface BenchOp {
  readonly type: WriteVerb
  readonly obj: 'task'
  readonly conv_id: string
  readonly ref: string
  readonly data: object
}

/** Its data is about 180 bytes of JSON for a create, 50 for a modify. */
export function opOf(verb: WriteVerb, n: number, refs: Refs): BenchOp {
  return { type: verb, obj: 'task', conv_id, ref: refOf(n, refs), data: dataOf(verb, n) }
}

const amount = 120.5
let modified = 0

/** No two modifies are equal, or a server would answer the second signed one as a repeated request. */
export function dataOf(verb: WriteVerb, n: number): object {
  if (verb === 'modify')
    return { paid: true, receipt: `r-${n}`, paid_at: 1_700_000_000 + modified++ }
  return {
    amount,
    currency: 'UAH',
    customer: { id: n, name: 'Olena Kovalenko', email: 'olena@example.com' },
    items: [{ sku: 'A-100', count: 2 }],
    note: 'leave at the desk',
  }
}

export function refOf(n: number, refs: Refs): string {
  if (refs === 'ascending') return n.toString(16).padStart(16, '0')
  return hex8(mix(n)) + hex8(mix(n ^ 0x5bd1e995))
}

/** Throws unless the data are those of a create. */
export function assertRead(data: unknown): void {
  if ((data as { amount?: number } | undefined)?.amount !== amount) throw new Error('wrong data')
}

/** Throws at the first result that is not `ok`. */
export function assertOk(
  results: readonly { readonly proc: string; readonly description?: string | undefined }[],
): void {
  for (const { proc, description } of results) {
    if (proc !== 'ok') throw new Error(`${proc}: ${description}`)
  }
}

export interface OpSource {
  /** The numbers of the next tasks: new for a create, stored for other verbs. */
  take(verb: Verb, count: number): number[]
}

/** Creates use the numbers from here on; tasks stored before a slot have lower ones. */
const first_new = 2 ** 28

const sources = new Map<string, OpSource>()

/**
 * The source of numbers for files with so many stored tasks, which have the numbers from 0 on. A process
 * has one source for all its files of this kind, so no create repeats a number.
 */
export function opSource(tasks: number, refs: Refs): OpSource {
  const key = `${refs} ${tasks}`
  const source = sources.get(key) ?? newSource(tasks, refs)
  sources.set(key, source)
  return source
}

/** The numbers from `first` on, for any verb. */
export function ascendingSource(first: number): OpSource {
  let next = first
  return { take: (_verb, count) => Array.from({ length: count }, () => next++) }
}

function newSource(tasks: number, refs: Refs): OpSource {
  const order = refs === 'random' ? shuffled(tasks) : inOrder(tasks)
  let created = first_new
  let found = 0
  return {
    take(verb, count) {
      const taken: number[] = []
      for (let i = 0; i < count; i++) {
        taken.push(verb === 'create' ? created++ : (order[found++ % tasks] as number))
      }
      return taken
    },
  }
}

function inOrder(count: number): Uint32Array {
  return Uint32Array.from({ length: count }, (_, n) => n)
}

function shuffled(count: number): Uint32Array {
  const order = inOrder(count)
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor((mix(last) / 2 ** 32) * (last + 1))
    const held = order[last] as number
    order[last] = order[other] as number
    order[other] = held
  }
  return order
}

/** The finalizer of MurmurHash3: a bijection of 32-bit numbers. */
function mix(n: number): number {
  let h = (n + 0x9e3779b9) >>> 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0')
}

/** A node of a process definition; an end node keeps its tasks. */
export function node(
  id: string,
  obj_type: number,
  logics: unknown[],
  semaphors: unknown[] = [],
): object {
  return { id, obj_type, title: id, condition: { logics, semaphors }, options: { save_task: true } }
}

/** Limits that switch off the history of tasks and the feed of changes. */
export const switched_off = { history_max: 0, changes_bytes_max: 0 }
