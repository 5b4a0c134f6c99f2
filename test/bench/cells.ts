/**
 * What is measured: the table of cells, the sides that each is measured on, and how long a run of
 * each scale takes.
 *
 * A cell is one point of the axes. All its sides are measured in turn, `reps` times, so that a
 * noisy minute of the machine falls on all of them; a ratio is always made within one turn.
 */
import type { Span } from './stopwatch.ts'

export type WriteVerb = 'create' | 'modify'
/** `read`: a task by its ref, with its data as a value. */
export type Verb = WriteVerb | 'read'

/**
 * `in-process` calls the library. The others are called from another process: `http` with signed
 * posts, `grpc` with CreateTask and ModifyTask, `grpc-stream` with messages of one StreamOps.
 */
export type TransportName = 'in-process' | 'http' | 'grpc' | 'grpc-stream'

/** Where an engine is: with the load, or behind a door of another process. */
export type ServerName = Exclude<TransportName, 'grpc-stream'>

/**
 * `empty`: made for each slot. `large` and `huge`: made once, copied for each process that works on
 * one. Only a run of full length has the huge one.
 */
export type FileName = 'empty' | 'large' | 'huge'

/** The order in which refs are made and tasks modified: all over the keys, or low to high. */
export type Refs = 'random' | 'ascending'

/**
 * `half`: requests come at half of the highest rate that the side has shown, whether the last is
 * answered or not. `servers`: beside engines that need a server of their own.
 */
export type Kind = 'usual' | 'half' | 'servers'

/**
 * Ours: `ours` is called as the cell says; `client` through our own client library over HTTP,
 * `embedded` in-process, where the door is another. `floor`: the same door with no store, or LMDB
 * by hand. `tenth`: ours on a tenth of the tasks.
 * The rest are rivals.
 */
export type SideName = OurName | 'floor' | 'tenth' | SqliteName | ServerRivalName
export type OurName = 'ours' | 'client' | 'embedded'
/**
 * `sqlite` finds tasks by ref alone, `sqlite-nodes` also those in a node, as ours does;
 * `sqlite-tuned` has settings for large files that one finds by measuring.
 */
export type SqliteName = 'sqlite' | 'sqlite-nodes' | 'sqlite-tuned'
export type ServerRivalName = 'bullmq' | 'pg-boss' | 'dbos' | 'restate'

export interface Cell {
  readonly file: FileName
  readonly refs: Refs
  readonly transport: TransportName
  readonly verb: Verb
  /** Ops in one request. */
  readonly ops: number
  /**
   * How many requests are under way; each answer sends the next. Async loops in-process,
   * connections of http, calls at once on one connection of grpc, messages of one stream.
   */
  readonly callers: number
  readonly kind: Kind
}

export interface Scale {
  readonly reps: number
  /** A first, shorter repetition that is thrown away. */
  readonly has_trial_rep: boolean
  /** Before each slot, and not counted: the same load. */
  readonly warmup_s: number
  readonly slot_s: number
  /** Waiting tasks that the modifies and reads of an `empty` file find; its creates find none. */
  readonly few_tasks: number
  /** Waiting tasks in the `large` file. */
  readonly many_tasks: number
  /** Waiting tasks in the `huge` file; 0 where there is none. */
  readonly most_tasks: number
}

const plain = {
  ...{ reps: 5, has_trial_rep: true, warmup_s: 0.4, slot_s: 0.4 },
  ...{ few_tasks: 10_000, many_tasks: 1_000_000, most_tasks: 0 },
}

export const scales = {
  quick: {
    ...{ reps: 1, has_trial_rep: false, warmup_s: 0.01, slot_s: 0.03 },
    ...{ few_tasks: 500, many_tasks: 5_000, most_tasks: 0 },
  },
  plain,
  full: { ...plain, slot_s: 1, most_tasks: 10_000_000 },
} as const satisfies Record<string, Scale>

type Point = Pick<Cell, 'ops' | 'callers'>

const one_by_one = { ops: 1, callers: 1 }
const one_by_many = { ops: 1, callers: 64 }
const batch_by_one = { ops: 100, callers: 1 }
const batch_by_many = { ops: 100, callers: 64 }
const all = [one_by_one, one_by_many, batch_by_one, batch_by_many]

const both: readonly WriteVerb[] = ['create', 'modify']

/**
 * In this order. A stream is for many messages at once; one at a time is what `grpc` measures. Of
 * the doors only one has ascending refs: what they cost or save is the store's.
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
  ['empty', 'random', 'http', both, [one_by_many], 'servers'],
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

/** The sides of a cell; of the rivals with servers those that are to be had on this machine. */
export function sidesOf(cell: Cell, servers: readonly ServerRivalName[]): readonly SideName[] {
  if (cell.kind === 'servers') return ['ours', 'client', 'embedded', ...servers]
  if (cell.kind === 'half') return ['ours']
  if (cell.file === 'huge') return ['ours', 'tenth', 'sqlite']
  if (cell.verb === 'read') return ['ours', 'sqlite']
  if (cell.transport === 'in-process') {
    const other = cell.file === 'large' ? 'sqlite-tuned' : 'sqlite-nodes'
    return ['ours', 'floor', 'sqlite', ...(cell.refs === 'random' ? ([other] as const) : [])]
  }
  return ['ours', 'floor']
}

/** How much longer than usual a lead and a slot are. */
const longer: Readonly<Record<Kind, readonly [lead: number, slot: number]>> = {
  usual: [1, 1],
  // What comes now and then falls into the slot, and not for the first time, when it takes longer.
  half: [15, 15],
  // Clients are written in JavaScript on all sides, and servers live long.
  servers: [5, 1],
}

export function spanOf({ kind }: Cell, { warmup_s, slot_s }: Scale): Span {
  const [lead, slot] = longer[kind]
  return { warmup_s: lead * warmup_s, slot_s: slot * slot_s }
}

export function serverOf({ transport }: Cell): ServerName {
  return transport === 'grpc-stream' ? 'grpc' : transport
}

/** How many tasks a cell finds. */
export function tasksOf({ file, verb }: Cell, scale: Scale): number {
  if (file === 'huge') return scale.most_tasks
  if (file === 'large') return scale.many_tasks
  return verb === 'create' ? 0 : scale.few_tasks
}

/** One word for a cell, for `--only` and for the JSON lines; what is usual is not said. */
export function cellName({ file, refs, transport, verb, ops, callers, kind }: Cell): string {
  const unusual = [refs === 'random' ? '' : refs, kind === 'usual' ? '' : kind]
  const point = `${ops}x${callers}`
  return [file, transport, verb, point, ...unusual].filter((word) => word !== '').join('/')
}

/**
 * Requests a second, before anything has been measured: how many to sign for the first slot. With
 * too few it is over within its lead.
 */
export function guessedRate({ ops, callers }: Cell): number {
  return ops > 1 ? 500 : callers > 1 ? 40_000 : 2_000
}
