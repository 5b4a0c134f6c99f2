/**
 * What is measured: the table of cells, the sides of each, and the lengths and file sizes of a run.
 *
 * A cell is one point of the axes file, refs, transport, verb, ops and callers. A repetition measures
 * all sides of a cell one after the other, so that noise of the machine falls on all of them; ratios
 * are computed within a repetition.
 */
import type { Span } from './stopwatch.ts'

export type WriteVerb = 'create' | 'modify'
/** `read`: a task by its ref, with its data parsed. */
export type Verb = WriteVerb | 'read'

/**
 * `in-process` calls the library. The others are called from another process: `http` with signed
 * POST requests, `grpc` with CreateTask and ModifyTask, `grpc-stream` with messages of one StreamOps.
 */
export type TransportName = 'in-process' | 'http' | 'grpc' | 'grpc-stream'

/** The server that an engine is called through; `in-process` is none. */
export type ServerName = Exclude<TransportName, 'grpc-stream'>

/**
 * `empty`: created for each slot. `large` and `huge`: created once a run and copied for each process
 * that opens one. Only `--full` has cells of the huge file.
 */
export type FileName = 'empty' | 'large' | 'huge'

/** The order of refs, in which tasks are created and modified. */
export type Refs = 'random' | 'ascending'

/**
 * `half`: requests arrive at half of the highest rate that the side reached, whether earlier ones are
 * answered or not.
 */
export type Kind = 'usual' | 'half'

/**
 * `ours` is called over the cell's transport. `floor`: the same transport without a store, or LMDB by
 * hand. `tenth`: ours with a tenth of the tasks. All others are rivals.
 */
export type SideName = 'ours' | 'floor' | 'tenth' | SqliteName
/**
 * `sqlite` has an index by ref, `sqlite-nodes` also one by node, as ours has; `sqlite-tuned` has the
 * settings that measured best on large files.
 */
export type SqliteName = 'sqlite' | 'sqlite-nodes' | 'sqlite-tuned'

export interface Cell {
  readonly file: FileName
  readonly refs: Refs
  readonly transport: TransportName
  readonly verb: Verb
  /** Ops in one request. */
  readonly ops: number
  /**
   * Requests in flight; each answer triggers the next request. In-process a caller is an async loop,
   * with http a connection, with grpc a concurrent call, with grpc-stream a message of one stream.
   */
  readonly callers: number
  readonly kind: Kind
}

export interface Scale {
  readonly reps: number
  /** A first, shorter repetition is discarded. */
  readonly has_trial_rep: boolean
  /** The same load before each slot, which does not count. */
  readonly warmup_s: number
  readonly slot_s: number
  /** Of a run of the targets, which has fewer cells. */
  readonly target_slot_s: number
  /** Waiting tasks in an `empty` file for modifies and reads; creates start without any. */
  readonly few_tasks: number
  /** Waiting tasks in the `large` file. */
  readonly many_tasks: number
  /** Waiting tasks in the `huge` file, which only `--full` measures. */
  readonly most_tasks: number
}

export const scales = {
  quick: {
    ...{ reps: 1, has_trial_rep: false, warmup_s: 0.01, slot_s: 0.03, target_slot_s: 0.03 },
    ...{ few_tasks: 500, many_tasks: 5_000, most_tasks: 50_000 },
  },
  plain: {
    ...{ reps: 5, has_trial_rep: true, warmup_s: 0.4, slot_s: 0.4, target_slot_s: 1 },
    ...{ few_tasks: 10_000, many_tasks: 1_000_000, most_tasks: 10_000_000 },
  },
} as const satisfies Record<string, Scale>

type Point = Pick<Cell, 'ops' | 'callers'>

const one_by_one = { ops: 1, callers: 1 }
const one_by_many = { ops: 1, callers: 64 }
const batch_by_one = { ops: 100, callers: 1 }
const batch_by_many = { ops: 100, callers: 64 }
const all = [one_by_one, one_by_many, batch_by_one, batch_by_many]

const both: readonly WriteVerb[] = ['create', 'modify']

/**
 * Measured in this order. `grpc-stream` has no cells of one caller, which `grpc` covers; of the
 * servers only `http` has ascending refs, whose cost is that of the store.
 */
const rows: readonly (readonly [
  FileName,
  Refs,
  TransportName,
  readonly Verb[],
  readonly Point[],
  Kind?,
])[] = [
  ['empty', 'random', 'in-process', both, all],
  ['empty', 'random', 'in-process', ['read'], [one_by_one]],
  ['empty', 'ascending', 'in-process', both, all],
  ['empty', 'random', 'http', both, all],
  ['empty', 'random', 'http', both, [one_by_many], 'half'],
  ['empty', 'ascending', 'http', both, [one_by_many, batch_by_one]],
  ['empty', 'random', 'grpc', both, [one_by_one, one_by_many]],
  ['empty', 'random', 'grpc-stream', both, [one_by_many, batch_by_many]],
  ['large', 'random', 'in-process', both, all],
  ['large', 'random', 'in-process', ['read'], [one_by_one]],
  ['large', 'random', 'http', both, all],
  ['large', 'random', 'grpc', both, [one_by_one, one_by_many]],
  ['large', 'random', 'grpc-stream', both, [one_by_many, batch_by_many]],
  ['large', 'ascending', 'in-process', both, all],
  ['huge', 'random', 'in-process', both, [one_by_one, one_by_many, batch_by_one]],
]

export const cells: readonly Cell[] = rows.flatMap(
  ([file, refs, transport, verbs, points, kind = 'usual']) =>
    verbs.flatMap((verb) =>
      points.map((point) => ({ file, refs, transport, verb, ...point, kind })),
    ),
)

export function sidesOf(cell: Cell): readonly SideName[] {
  if (cell.kind === 'half') return ['ours']
  if (cell.file === 'huge') return ['ours', 'tenth']
  if (cell.verb === 'read') return ['ours', 'sqlite']
  if (cell.transport === 'in-process') {
    const other = cell.file === 'large' ? 'sqlite-tuned' : 'sqlite-nodes'
    return ['ours', 'floor', 'sqlite', ...(cell.refs === 'random' ? ([other] as const) : [])]
  }
  return ['ours', 'floor']
}

/** Warm-ups: the slot has checkpoints, and the slower first one falls into its own, longer warm-up. */
const half_warmups = 15

export function spanOf({ kind }: Cell, { warmup_s, slot_s }: Scale): Span {
  const half_s = half_warmups * warmup_s
  return kind === 'half' ? { warmup_s: half_s, slot_s: half_s } : { warmup_s, slot_s }
}

export function serverOf({ transport }: Cell): ServerName {
  return transport === 'grpc-stream' ? 'grpc' : transport
}

/** How many waiting tasks the file of a cell has. */
export function tasksOf({ file, verb }: Cell, scale: Scale): number {
  if (file === 'huge') return scale.most_tasks
  if (file === 'large') return scale.many_tasks
  return verb === 'create' ? 0 : scale.few_tasks
}

/** The name of a cell for `--only` and JSON lines, without the usual refs and kind. */
export function cellName({ file, refs, transport, verb, ops, callers, kind }: Cell): string {
  const unusual = [refs === 'random' ? '' : refs, kind === 'usual' ? '' : kind]
  const point = `${ops}x${callers}`
  return [file, transport, verb, point, ...unusual].filter((part) => part !== '').join('/')
}

/**
 * Requests a second to prepare for the first slot, before a rate is known. With too few the slot would
 * end within its warm-up.
 */
export function guessedRate({ ops, callers }: Cell): number {
  return ops > 1 ? 500 : callers > 1 ? 40_000 : 2_000
}
