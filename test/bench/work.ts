/**
 * The load itself, alike on every side: the process, the ops, their refs, and their order.
 *
 * A create makes a task that rests in `wait`; a modify sends it on to `again`, the next one back.
 * So a modified file stays as it is, and any task can be modified any number of times. Refs are the
 * mixed digits of a number, hence spread over the whole key space; modifies go through the tasks in
 * a shuffled order, so no task comes twice in one commit. All refs are 16 long, so that all good
 * answers of a cell have one length.
 */
import type { Verb } from './cells.ts'

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
  readonly type: Verb
  readonly obj: 'task'
  readonly conv_id: string
  readonly ref: string
  readonly data: object
}

/** The data an op carries: about 180 bytes of JSON for a create, 50 for a modify. */
export function opOf(verb: Verb, n: number): BenchOp {
  return { type: verb, obj: 'task', conv_id, ref: refOf(n), data: dataOf(verb, n) }
}

export function dataOf(verb: Verb, n: number): object {
  if (verb === 'modify') return { paid: true, receipt: `r-${n}`, paid_at: 1_700_000_000 + n }
  return {
    amount: 120.5,
    currency: 'UAH',
    customer: { id: n, name: 'Olena Kovalenko', email: 'olena@example.com' },
    items: [{ sku: 'A-100', count: 2 }],
    note: 'leave at the door',
  }
}

export function refOf(n: number): string {
  return hex8(mix(n)) + hex8(mix(n ^ 0x5bd1e995))
}

export interface OpSource {
  /** Numbers of the next tasks: new ones for creates, stored ones for modifies. */
  take(verb: Verb, count: number): number[]
}

/** Numbers below this are of tasks stored before the slot; creates take from here on. */
const first_new = 2 ** 28

/** `tasks`: how many are stored under the numbers from 0 on. */
export function opSource(tasks: number): OpSource {
  const order = shuffled(tasks)
  let created = first_new
  let modified = 0
  return {
    take(verb, count) {
      const taken: number[] = []
      for (let i = 0; i < count; i++) {
        taken.push(verb === 'create' ? created++ : (order[modified++ % tasks] as number))
      }
      return taken
    },
  }
}

function shuffled(count: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, n) => n)
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

function node(id: string, obj_type: number, logics: unknown[]): object {
  return { id, obj_type, title: id, condition: { logics, semaphors: [] } }
}
