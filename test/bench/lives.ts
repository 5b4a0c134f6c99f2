/**
 * The cells of whole lives (see lives-child.ts): sustained load on ours and on better-sqlite3 by hand,
 * alternately, each slot on a copy of the same file. They are what an embedding application gets, so
 * they are measured and reported first. `minute` has long slots, for the worst request; `bytes` tells
 * what a task takes on disk; `watched` what ours is without all that can be switched off.
 */

import type { Refs } from './cells.ts'
import { startChild } from './child.ts'
import type { BenchFolder } from './folder.ts'
import type { CallbackOrder } from './life-order.ts'
import type { LivesCalls, LivesSide, LivesSlot, TaskBytes } from './lives-child.ts'
import { rotated } from './measure.ts'
import { removeFiles } from './resource-usage.ts'
import { type Summary, summaryOf } from './statistics.ts'

export interface LivesLine {
  readonly kind: 'lives'
  readonly cell: string
  readonly ours: LivesSummary
  readonly sqlite: LivesSummary
  /** Ours over SQLite's, within a repetition. */
  readonly over: LivesSummary
}

export type LivesSummary = Readonly<Record<keyof LivesSlot, Summary>>

/** Bytes on disk a task: of waiting tasks as made, and after as many lives. */
export interface BytesLine {
  readonly kind: 'bytes'
  readonly cell: string
  readonly waiting: Readonly<Record<'ours' | 'sqlite', TaskBytes>>
  readonly lived: Readonly<Record<'ours' | 'sqlite', TaskBytes>>
}

/** A cell with something that can be switched off, and without. */
export interface OnOffLine {
  readonly kind: 'on-off'
  readonly cell: string
  /** Medians of lives, or of tasks, a second. */
  readonly on_per_s: number
  readonly off_per_s: number
  /** With over without, within a repetition. */
  readonly ratio: Summary
  /** The same of the engine's CPU time for an op, which a busy disk does not blur. */
  readonly cpu?: Summary
}

interface LivesCell {
  readonly part: 'lives' | 'minute' | 'watched'
  readonly tasks: number
  readonly order: CallbackOrder
  readonly refs: Refs
  readonly ops: number
  readonly callers: number
  /** Of a minute there are few slots, and of what is compared with nothing else shorter ones. */
  readonly slot_s: number
  readonly reps: number
}

const usual = { part: 'lives', refs: 'random', slot_s: 10, reps: 5 } as const
const any_order = { order: 'random', refs: 'random' } as const
const watched = { part: 'watched', tasks: 20_000, ...any_order, slot_s: 5, reps: 5 } as const
const minute = { part: 'minute', ...any_order, slot_s: 60, reps: 3 } as const
const points = [
  { ops: 1, callers: 1 },
  { ops: 1, callers: 64 },
  { ops: 100, callers: 4 },
] as const
const cells: readonly LivesCell[] = [
  ...points.flatMap((point) =>
    (['random', 'in-order'] as const).map((order) => ({
      ...usual,
      tasks: 20_000,
      order,
      ...point,
    })),
  ),
  // The order in which SQLite does best.
  { ...usual, tasks: 20_000, order: 'in-order', refs: 'ascending', ops: 1, callers: 64 },
  { ...usual, tasks: 1_000_000, order: 'random', ops: 1, callers: 64 },
  { ...usual, tasks: 1_000_000, order: 'random', ops: 1, callers: 1 },
  { ...minute, tasks: 20_000, ops: 1, callers: 64 },
  ...points.map((point) => ({ ...watched, ...point })),
]

const livesName = ({ part, tasks, order, refs, ops, callers }: LivesCell): string =>
  [part, tasks, `${ops}x${callers}`, order, refs].filter((name) => name !== 'random').join('/')

interface LivesRun {
  readonly folder: BenchFolder
  readonly isChosen: (name: string) => boolean
  readonly is_quick: boolean
  readonly slot_s: number | undefined
}

/** Slots of one side for each repetition. */
type Slots = Readonly<Partial<Record<LivesSide, readonly LivesSlot[]>>>

export async function* livesCells(run: LivesRun): AsyncGenerator<LivesLine> {
  const chosen = cells.filter(({ part }) => part !== 'watched')
  for await (const [{ name }, slots] of measured(run, chosen, ['ours', 'sqlite'])) {
    const { ours = [], sqlite = [] } = slots
    yield {
      ...{ kind: 'lives', cell: name, ours: summary((of) => ours.map((slot) => slot[of])) },
      sqlite: summary((of) => sqlite.map((slot) => slot[of])),
      over: summary((of) => ratios(ours, sqlite, of)),
    }
  }
}

/**
 * What can be switched off, with it and without, alternately: the history of tasks and the feed of
 * changes, and with these the log and scraped metrics; only the last with `together`.
 */
export async function* livesOnAndOff(run: LivesRun, together: boolean): AsyncGenerator<OnOffLine> {
  const chosen = cells.filter(({ part }) => part === 'watched')
  const sides = ['off', 'watched', ...(together ? [] : (['ours'] as const))] as const
  for await (const [{ name }, slots] of measured(run, chosen, sides)) {
    const { off = [], watched = [], ours = [] } = slots
    if (!together) yield onOffLine(`${name} history and feed`, ours, off)
    yield onOffLine(`${name} all but traces`, watched, off)
  }
}

function onOffLine(cell: string, on: readonly LivesSlot[], off: readonly LivesSlot[]): OnOffLine {
  const rateOf = (slots: readonly LivesSlot[]): number =>
    summaryOf(slots.map(({ lives_per_s }) => lives_per_s)).median
  return {
    ...{ kind: 'on-off', cell, on_per_s: rateOf(on), off_per_s: rateOf(off) },
    ratio: summaryOf(ratios(on, off, 'lives_per_s')),
    cpu: summaryOf(ratios(on, off, 'cpu_us_per_op')),
  }
}

async function* measured(
  { folder, isChosen, is_quick, slot_s: given_s }: LivesRun,
  of: readonly LivesCell[],
  sides: readonly LivesSide[],
): AsyncGenerator<readonly [cell: LivesCell & { readonly name: string }, Slots]> {
  const files = new Map<string, Promise<string>>()
  const fileOf = (side: LivesSide, tasks: number, refs: Refs): Promise<string> => {
    const key = `${side === 'sqlite' ? side : 'ours'} ${tasks} ${refs}`
    const file = files.get(key) ?? makeFile(folder, side, tasks, refs).then(({ path }) => path)
    files.set(key, file)
    return file
  }
  for (const cell of of) {
    const name = livesName(cell)
    if (!isChosen(name)) continue
    const { order, refs, ops, callers } = cell
    const tasks = is_quick ? Math.ceil(cell.tasks / 200) : cell.tasks
    const slot_s = is_quick ? 0.1 : (given_s ?? cell.slot_s)
    const slots = new Map(sides.map((side) => [side, [] as LivesSlot[]]))
    for (let rep = 0; rep < (is_quick ? 1 : cell.reps); rep++) {
      for (const [side, of_side] of rotated([...slots], rep)) {
        const path = await folder.copy(await fileOf(side, tasks, refs))
        const child = startChild<LivesCalls>(folder.script('lives-child'))
        of_side.push(
          await child.call('run', { side, path, tasks, order, refs, ops, callers, slot_s }),
        )
        await child.stop()
        await removeFiles(path)
      }
    }
    yield [{ ...cell, name }, Object.fromEntries(slots)]
  }
}

export async function makeFile(
  folder: BenchFolder,
  side: LivesSide,
  tasks: number,
  refs: Refs,
): Promise<{ path: string; bytes: TaskBytes }> {
  const path = folder.newPath()
  const child = startChild<LivesCalls>(folder.script('lives-child'))
  const bytes = await child.call('make', { side, path, tasks, refs })
  await child.stop()
  return { path, bytes }
}

const bytes_tasks = 200_000
const bytes_cell = `bytes/${bytes_tasks}`

/** Files that are made, and then live as many lives, so that half of their tasks have ended. */
export async function* bytesCell(run: LivesRun): AsyncGenerator<BytesLine> {
  const { folder, isChosen, is_quick } = run
  if (!isChosen(bytes_cell)) return
  const tasks = is_quick ? bytes_tasks / 200 : bytes_tasks
  const of = async (side: LivesSide): Promise<readonly [waiting: TaskBytes, lived: TaskBytes]> => {
    const { path, bytes } = await makeFile(folder, side, tasks, 'random')
    const child = startChild<LivesCalls>(folder.script('lives-child'))
    const load = { ops: 100, callers: 4, slot_s: Number.POSITIVE_INFINITY, lives_max: tasks }
    const lived = await child.call('run', { side, path, tasks, ...load })
    await child.stop()
    await removeFiles(path)
    return [bytes, lived]
  }
  const [ours, sqlite] = [await of('ours'), await of('sqlite')]
  yield {
    ...{ kind: 'bytes', cell: bytes_cell, waiting: { ours: ours[0], sqlite: sqlite[0] } },
    lived: { ours: ours[1], sqlite: sqlite[1] },
  }
}

export const lives_names: readonly string[] = [...cells.map(livesName), bytes_cell]

function summary(valuesOf: (of: keyof LivesSlot) => readonly number[]): LivesSummary {
  const of = (name: keyof LivesSlot): Summary => summaryOf(valuesOf(name))
  return {
    ...{ lives_per_s: of('lives_per_s'), p99_ms: of('p99_ms'), worst_ms: of('worst_ms') },
    ...{ cpu_us_per_op: of('cpu_us_per_op'), memory_bytes: of('memory_bytes') },
    ...{ file_bytes: of('file_bytes'), disk_bytes: of('disk_bytes') },
  }
}

/** One side over the other, within each repetition. */
function ratios(
  ours: readonly LivesSlot[],
  other: readonly LivesSlot[],
  of: keyof LivesSlot,
): number[] {
  return ours.map((slot, rep) => slot[of] / (other[rep]?.[of] ?? Number.NaN))
}
