/**
 * What is measured: the table of cells, and how long a run of each scale takes.
 *
 * A cell is one point of the axes. Ours and its floor are measured in turn, `reps` times, so that a
 * noisy minute of the machine falls on both; a ratio is always made of two neighbours in time.
 */

export type Verb = 'create' | 'modify'

/**
 * `in-process` calls the library. The others are called from another process: `http` with signed
 * posts, `grpc` with CreateTask and ModifyTask, `grpc-stream` with messages of one StreamOps.
 */
export type DoorName = 'in-process' | 'http' | 'grpc' | 'grpc-stream'

/** Where an engine is: with the load, or behind a door of another process. */
export type ServerName = Exclude<DoorName, 'grpc-stream'>

/** `empty`: made for each slot. `large`: made once, copied for each process that works on one. */
export type FileName = 'empty' | 'large'

export interface Cell {
  readonly file: FileName
  readonly door: DoorName
  readonly verb: Verb
  /** Ops in one request. */
  readonly ops: number
  /**
   * How many requests are under way; each answer sends the next. Async loops in-process,
   * connections of http, calls at once on one connection of grpc, messages of one stream.
   */
  readonly callers: number
}

export interface Scale {
  readonly reps: number
  /** A first repetition that warms up and is thrown away. */
  readonly warms: boolean
  readonly slot_s: number
  /** Waiting tasks that the modifies of an `empty` file find; its creates find none. */
  readonly few_tasks: number
  /** Waiting tasks in the `large` file. */
  readonly many_tasks: number
}

export const scales = {
  quick: { reps: 1, warms: false, slot_s: 0.03, few_tasks: 1_000, many_tasks: 10_000 },
  plain: { reps: 5, warms: true, slot_s: 0.5, few_tasks: 10_000, many_tasks: 1_000_000 },
  full: { reps: 5, warms: true, slot_s: 1, few_tasks: 10_000, many_tasks: 10_000_000 },
} as const satisfies Record<string, Scale>

const files: readonly FileName[] = ['empty', 'large']
const verbs: readonly Verb[] = ['create', 'modify']

const one_by_one = { ops: 1, callers: 1 }
const one_by_many = { ops: 1, callers: 64 }
const batch_by_one = { ops: 100, callers: 1 }
const batch_by_many = { ops: 100, callers: 64 }

/** A stream is for many messages at once; one at a time is what `grpc` measures. */
const points: readonly (readonly [DoorName, readonly Pick<Cell, 'ops' | 'callers'>[]])[] = [
  ['in-process', [one_by_one, one_by_many, batch_by_one, batch_by_many]],
  ['http', [one_by_one, one_by_many, batch_by_one, batch_by_many]],
  ['grpc', [one_by_one, one_by_many]],
  ['grpc-stream', [one_by_many, batch_by_many]],
]

export const cells: readonly Cell[] = files.flatMap((file) =>
  points.flatMap(([door, of_door]) =>
    verbs.flatMap((verb) => of_door.map((point) => ({ file, door, verb, ...point }))),
  ),
)

export function serverOf({ door }: Cell): ServerName {
  return door === 'grpc-stream' ? 'grpc' : door
}

/** One word for a cell, for `--only` and for the JSON lines. */
export function nameOf({ file, door, verb, ops, callers }: Cell): string {
  return `${file}/${door}/${verb}/${ops}x${callers}`
}

/** Requests a second, before anything has been measured: how many to sign for the first slot. */
export function guessedRate({ ops, callers }: Cell): number {
  return ops > 1 ? 500 : callers > 1 ? 10_000 : 2_000
}
