/**
 * The work of the crash test of the servers, in lanes: a lane is the sequence of one caller's
 * requests to one server, and its n-th request depends on the lane's name and n alone. Each part of
 * a request has a sign in the file that tells whether it was applied, so a crash can be judged
 * without a record of what was sent.
 *
 * A batch changes tasks of two processes: it counts in both, creates a task in each, ends the one
 * that the batch before it created, and has an op that is refused. A `single` request is one op.
 */
import type { ClientOp } from '../../src/client/api.ts'
import type { Task } from '../../src/core/model.ts'

export const lane_kinds = ['http', 'grpc', 'stream', 'single'] as const
export type LaneKind = (typeof lane_kinds)[number]

/**
 * The requests of one caller: those up to `acked` were answered, those up to `sent` may be there.
 */
export interface Lane {
  readonly name: string
  readonly kind: LaneKind
  sent: number
  acked: number
  /** By request, the ids that its answer gave, op by op. */
  readonly told: Map<number, readonly (string | undefined)[]>
}

/** What is in the file, as the signs look at it. */
export interface Seen {
  /** By process and ref, see `placeOf`. */
  readonly named: ReadonlyMap<string, Task>
  /** How many tasks without a ref a request made, by `lane/n`. */
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
}

/** Tasks wait for a modify and end with it; only counters stay. */
export const orders = 'orders'
/** Tasks stay. */
export const ledger = 'ledger'

const node = (id: string, obj_type: number, logics: readonly object[], options?: string) => ({
  ...{ id, obj_type, title: id, condition: { logics, semaphors: [] }, options },
})
const go = (to_node_id: string): object => ({ type: 'go', to_node_id })
const is_counter = [{ param: 'counter', const: 'yes', fun: 'eq', cast: 'string' }]
const back = { type: 'go_if_const', conditions: is_counter, to_node_id: 'wait' }

export const servers_processes: readonly object[] = [
  {
    obj_id: orders,
    scheme: {
      nodes: [
        node('start', 1, [go('wait')]),
        node('wait', 0, [{ type: 'api_callback' }, back, go('done')]),
        node('done', 2, [], '{"save_task":true}'),
      ],
    },
  },
  {
    obj_id: ledger,
    scheme: {
      nodes: [
        node('start', 1, [go('wait')]),
        node('wait', 0, [{ type: 'api_callback' }, go('wait')]),
      ],
    },
  },
]

export function newLane(name: string, kind: LaneKind): Lane {
  return { name, kind, sent: 0, acked: 0, told: new Map() }
}

/** What must be there before the lane's first request. */
export function countersOf({ name, kind }: Lane): ClientOp[] {
  if (kind === 'single') return []
  return [orders, ledger].map((conv_id) => create(conv_id, name, { counter: 'yes', count: 0 }))
}

/** The n-th request of a lane, from 1; its ops stand in this order. */
export function requestOf({ name, kind }: Lane, n: number): Part[] {
  if (kind === 'single') {
    const conv_id = (n - 1) % 4 < 2 ? orders : ledger
    return [n % 2 === 1 ? makes(conv_id, name, n) : changes(conv_id, name, n)]
  }
  const unnamed = n % 4
  return [
    counts(orders, name, n),
    makes(orders, name, n),
    ...(n > 1 ? [changes(orders, name, n)] : []),
    isRefused(name, n),
    makes(ledger, name, n),
    ...Array.from({ length: unnamed }, () => makesUnnamed(name, n, unnamed)),
    counts(ledger, name, n),
  ]
}

/** Where a task of the work stands in `Seen.named`. */
export const placeOf = (conv_id: string, ref: string): string => `${conv_id}/${ref}`

/** What the data of the tasks holds. */
export interface Mark {
  readonly lane?: string
  readonly n?: number
  /** The request that changed it. */
  readonly by?: number
  readonly count?: number
}

export const markOf = (task: Task | undefined): Mark => (task?.data ?? {}) as Mark

export const refOf = (lane: string, n: number): string => `${lane}/${n}`

function create(conv_id: string, ref: string | null, data: object): ClientOp {
  return { type: 'create', obj: 'task', conv_id, ref, data }
}

function makes(conv_id: string, lane: string, n: number): Part {
  const ref = refOf(lane, n)
  return {
    op: create(conv_id, ref, { lane, n }),
    proc: 'ok',
    isThere({ named }, obj_id) {
      const task = named.get(placeOf(conv_id, ref))
      return markOf(task).n === n && (obj_id === undefined || task?.obj_id === obj_id)
    },
  }
}

/** Changes the task that the request before made; in `orders` that ends it. */
function changes(conv_id: string, lane: string, n: number): Part {
  const ref = refOf(lane, n - 1)
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

function counts(conv_id: string, lane: string, n: number): Part {
  return {
    op: { type: 'modify', obj: 'task', conv_id, ref: lane, data: { count: n } },
    proc: 'ok',
    isThere: ({ named }) => (markOf(named.get(placeOf(conv_id, lane))).count ?? 0) >= n,
  }
}

/** As many as `of` of them are in the request. */
function makesUnnamed(lane: string, n: number, of: number): Part {
  return {
    op: create(ledger, null, { lane, n }),
    proc: 'ok',
    isThere: ({ unnamed }) => unnamed.get(refOf(lane, n)) === of,
  }
}

/** The counter has the ref already. */
function isRefused(lane: string, n: number): Part {
  return { op: create(ledger, lane, { lane, n: -n }), proc: 'not_unical_ref' }
}
