/**
 * The load itself, alike on every side: the process, the ops, their refs, and their order.
 *
 * A create makes a task that rests in `wait`; a modify sends it on to `again`, the next one back.
 * So a modified file stays as it is, and any task can be modified any number of times. Random refs
 * are the mixed digits of a number, hence spread over the whole key space, and the tasks are gone
 * through in a shuffled order; ascending ones are the number itself, gone through from low to high.
 * No task comes twice in one commit. All refs are 16 long, so that all good answers of a cell have
 * one length.
 */
import type { Refs, Verb, WriteVerb } from './cells.ts'

export const user = '13000'
export const conv_id = '1234'
/** Seals the secrets of files that live for minutes. */
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

export interface BenchOp {
  readonly type: WriteVerb
  readonly obj: 'task'
  readonly conv_id: string
  readonly ref: string
  readonly data: object
}

/** The data an op carries: about 180 bytes of JSON for a create, 50 for a modify. */
export function opOf(verb: WriteVerb, n: number, refs: Refs): BenchOp {
  return { type: verb, obj: 'task', conv_id, ref: refOf(n, refs), data: dataOf(verb, n) }
}

export function dataOf(verb: WriteVerb, n: number): object {
  if (verb === 'modify') return { paid: true, receipt: `r-${n}`, paid_at: 1_700_000_000 + n }
  return {
    amount: 120.5,
    currency: 'UAH',
    customer: { id: n, name: 'Olena Kovalenko', email: 'olena@example.com' },
    items: [{ sku: 'A-100', count: 2 }],
    note: 'leave at the door',
  }
}

export function refOf(n: number, refs: Refs): string {
  if (refs === 'ascending') return n.toString(16).padStart(16, '0')
  return hex8(mix(n)) + hex8(mix(n ^ 0x5bd1e995))
}

export interface OpSource {
  /** Numbers of the next tasks: new ones for creates, stored ones for the others. */
  take(verb: Verb, count: number): number[]
}

/** Numbers below this are of tasks stored before the slot; creates take from here on. */
const first_new = 2 ** 28

const sources = new Map<string, OpSource>()

/**
 * Where this process takes its numbers from for files of so many tasks, which are stored under the
 * numbers from 0 on. It is kept, so no number of a create comes twice.
 */
export function opSource(tasks: number, refs: Refs): OpSource {
  const key = `${refs} ${tasks}`
  const source = sources.get(key) ?? newSource(tasks, refs)
  sources.set(key, source)
  return source
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

/** Murmur's finalizer: each 32-bit number to another one, no two to the same. */
function mix(n: number): number {
  let h = (n + 0x9e3779b9) >>> 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0')
}

/** What comes to an end is kept. */
export function node(
  id: string,
  obj_type: number,
  logics: unknown[],
  semaphors: unknown[] = [],
): object {
  return { id, obj_type, title: id, condition: { logics, semaphors }, options: { save_task: true } }
}
