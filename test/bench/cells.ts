/**
 * What is measured: the table of cells, and how long a run of each scale takes.
 *
 * A cell is one point of the axes. Ours and its floor are measured in turn, `reps` times, so that a
 * noisy minute of the machine falls on both; a ratio is always made of two neighbours in time.
 */

export type Verb = 'create' | 'modify'

/** `in-process` calls the library; `http` posts signed requests to the door from another process. */
export type DoorName = 'in-process' | 'http'

/** `empty`: made for each slot. `large`: made once, copied for each process that works on one. */
export type FileName = 'empty' | 'large'

export interface Cell {
  readonly file: FileName
  readonly door: DoorName
  readonly verb: Verb
  /** Ops in one request. */
  readonly ops: number
  /** Who sends the next request when the last is answered: async loops, or connections. */
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

const axes = {
  file: ['empty', 'large'],
  door: ['in-process', 'http'],
  verb: ['create', 'modify'],
  ops: [1, 100],
  callers: [1, 64],
} as const

export const cells: readonly Cell[] = axes.file.flatMap((file) =>
  axes.door.flatMap((door) =>
    axes.verb.flatMap((verb) =>
      axes.ops.flatMap((ops) =>
        axes.callers.map((callers) => ({ file, door, verb, ops, callers })),
      ),
    ),
  ),
)

/** One word for a cell, for `--only` and for the JSON lines. */
export function nameOf({ file, door, verb, ops, callers }: Cell): string {
  return `${file}/${door}/${verb}/${ops}x${callers}`
}

/** Requests a second, before anything has been measured: how many to sign for the first slot. */
export function guessedRate({ ops, callers }: Cell): number {
  return ops > 1 ? 500 : callers > 1 ? 10_000 : 2_000
}
