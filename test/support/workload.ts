/**
 * The work under which servers are killed and stopped, as sequences: each holds the requests of
 * one caller by one way in, and its n-th request depends on the sequence's name and n alone. Each
 * part of a request has a sign in the file that tells whether it was applied, so a kill can be judged
 * without a record of what was sent. Each resumption of a task is counted in its data.
 *
 * A batch changes tasks of two processes: it counts in both, creates a task in each, ends the one
 * that the batch before it created, and has an op that is refused. Requests of the other ways in
 * have one op.
 */

import type { ClientOp } from '../../src/client/api.ts'
import type { Task } from '../../src/core/model.ts'
import { go } from './processes.ts'

/** The first five send batches. */
export const sequence_kinds = [
  ...(['http_path', 'http_headers', 'grpc', 'stream', 'embedded'] as const),
  ...(['single', 'webhook', 'callback', 'sync'] as const),
] as const
export type SequenceKind = (typeof sequence_kinds)[number]

/**
 * The requests of one caller: those up to `acked` were answered, those up to `sent` may be there.
 */
export interface Sequence {
  readonly name: string
  readonly kind: SequenceKind
  sent: number
  acked: number
  /** By request, the ids that its answer gave, op by op. */
  readonly told: Map<number, readonly (string | undefined)[]>
}

/** What is in the file, as the signs look at it. */
export interface Seen {
  /** By process and ref, see `placeOf`. */
  readonly named: ReadonlyMap<string, Task>
  /** How many tasks without a ref a request made, by `sequence/n`. */
  readonly unnamed: ReadonlyMap<string, number>
}

export interface Part {
  readonly op: ClientOp
  readonly proc: 'ok' | 'not_unical_ref'
  /**
   * Whether its effect is there; `obj_id` is what the answer named, where there was one. An op that
   * is refused has none: what it would have made has a number that no request has.
   */
  isThere?(seen: Seen, obj_id: string | undefined): boolean
  /** Of what is answered later than it is applied: whether the answer may have come. */
  isAnswerable?(seen: Seen): boolean
}

/** Tasks wait for a modify and end with it; only counters stay. */
export const orders = 'orders'
/** Tasks stay. */
export const ledger = 'ledger'
/** Tasks end by a timer. */
export const paced = 'paced'
const pace_ms = 15
/** Tasks of callers who have no sequence; they only wait. */
export const plain = 'plain'

const node = (id: string, obj_type: number, condition: object, options?: string) => ({
  ...{ id, obj_type, title: id, condition: { logics: [], semaphors: [], ...condition }, options },
})
const is_counter = [{ param: 'counter', const: 'yes', fun: 'eq', cast: 'string' }]
const back = { type: 'go_if_const', conditions: is_counter, to_node_id: 'wait' }
const counted = {
  ...{ type: 'set_param', extra: { resumed: '$.math({{resumed}}+1)' } },
  ...{ extra_type: { resumed: 'number' }, err_node_id: 'wrong' },
}
const start = (to_node_id: string) => node('start', 1, { logics: [go(to_node_id)] })
const wait = node('wait', 0, { logics: [{ type: 'api_callback' }, go('resumed')] })
const [done, wrong] = ['done', 'wrong'].map((id) => node(id, 2, {}, '{"save_task":true}'))
const timer = { type: 'time', value: pace_ms / 1_000, to_node_id: 'done' }

export const workload_processes: readonly object[] = [
  {
    obj_id: orders,
    scheme: {
      nodes: [
        ...[start('wait'), wait],
        ...[node('resumed', 0, { logics: [counted, back, go('done')] }), done, wrong],
      ],
    },
  },
  {
    obj_id: ledger,
    scheme: {
      nodes: [start('wait'), wait, node('resumed', 0, { logics: [counted, go('wait')] }), wrong],
    },
  },
  {
    obj_id: paced,
    scheme: { nodes: [start('pace'), node('pace', 0, { semaphors: [timer] }), done] },
  },
  {
    obj_id: plain,
    scheme: { nodes: [start('wait'), wait, node('resumed', 0, { logics: [go('wait')] })] },
  },
]
/** Where the tasks of `orders` wait. */
export const wait_node = 'wait'

export function newSequence(name: string, kind: SequenceKind): Sequence {
  return { name, kind, sent: 0, acked: 0, told: new Map() }
}

/** The n-th request of a sequence, from 1; its ops stand in this order. */
export function requestOf({ name, kind }: Sequence, n: number): Part[] {
  const is_odd = n % 2 === 1
  switch (kind) {
    case 'single': {
      const conv_id = (n - 1) % 4 < 2 ? orders : ledger
      return [is_odd ? makes(conv_id, name, n) : changes(conv_id, name, n)]
    }
    case 'callback':
      return [is_odd ? makes(orders, name, n) : changes(orders, name, n)]
    case 'webhook':
      return [makesUnnamed(name, n, 1)]
    case 'sync':
      return [makesPaced(name, n)]
    default: {
      const unnamed = n % 4
      return [
        counts(orders, name, n),
        makes(orders, name, n),
        ...(n > 1 ? [changes(orders, name, n)] : []),
        counts(ledger, name, n),
        isRefused(name, n),
        makes(ledger, name, n),
        ...Array.from({ length: unnamed }, () => makesUnnamed(name, n, unnamed)),
      ]
    }
  }
}

/** Where a task of the work stands in `Seen.named`. */
export const placeOf = (conv_id: string, ref: string): string => `${conv_id}/${ref}`

/** What the data of the tasks holds. */
export interface Mark {
  readonly sequence?: string
  readonly n?: number
  /** The request that changed it. */
  readonly by?: number
  readonly count?: number
  /** How often it was resumed. */
  readonly resumed?: number
}

/** How often a task was resumed, if each request was applied once. */
export function resumesOf({ count, by }: Mark): number {
  if (count !== undefined) return count - 1
  return by === undefined ? 0 : 1
}

export const markOf = (task: Task | undefined): Mark => (task?.data ?? {}) as Mark

export const refOf = (sequence: string, n: number): string => `${sequence}/${n}`

function create(conv_id: string, ref: string | null, data: object): ClientOp {
  return { type: 'create', obj: 'task', conv_id, ref, data }
}

function makes(conv_id: string, sequence: string, n: number): Part {
  const ref = refOf(sequence, n)
  return {
    op: create(conv_id, ref, { sequence, n, resumed: 0 }),
    proc: 'ok',
    isThere({ named }, obj_id) {
      const task = named.get(placeOf(conv_id, ref))
      return markOf(task).n === n && (obj_id === undefined || task?.obj_id === obj_id)
    },
  }
}

/** Changes the task that the request before made; in `orders` that ends it. */
function changes(conv_id: string, sequence: string, n: number): Part {
  const ref = refOf(sequence, n - 1)
  return {
    op: { type: 'modify', obj: 'task', conv_id, ref, data: { by: n } },
    proc: 'ok',
    isThere({ named }) {
      const task = named.get(placeOf(conv_id, ref))
      const status = conv_id === orders ? 'processed' : 'delayed'
      return markOf(task).by === n && task?.status === status
    },
  }
}

/** The first request makes the counter. */
function counts(conv_id: string, sequence: string, n: number): Part {
  return {
    op:
      n === 1
        ? create(conv_id, sequence, { counter: 'yes', count: 1, resumed: 0 })
        : { type: 'modify', obj: 'task', conv_id, ref: sequence, data: { count: n } },
    proc: 'ok',
    isThere: ({ named }) => (markOf(named.get(placeOf(conv_id, sequence))).count ?? 0) >= n,
  }
}

/** As many as `of` of them are in the request. */
function makesUnnamed(sequence: string, n: number, of: number): Part {
  return {
    op: create(ledger, null, { sequence, n, resumed: 0 }),
    proc: 'ok',
    isThere: ({ unnamed }) => unnamed.get(refOf(sequence, n)) === of,
  }
}

/** It is answered once its timer has ended it. */
function makesPaced(sequence: string, n: number): Part {
  const place = placeOf(paced, refOf(sequence, n))
  return {
    op: create(paced, refOf(sequence, n), { sequence, n }),
    proc: 'ok',
    isThere: ({ named }) => markOf(named.get(place)).n === n,
    isAnswerable: ({ named }) => named.get(place)?.status === 'processed',
  }
}

/** The counter has the ref already. */
function isRefused(sequence: string, n: number): Part {
  return { op: create(ledger, sequence, { sequence, n: -n }), proc: 'not_unical_ref' }
}
