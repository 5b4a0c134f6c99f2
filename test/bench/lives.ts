/**
 * The cells of whole lives (see lives-child.ts): sustained load on ours and on better-sqlite3 by hand,
 * alternately, each slot on a copy of the same file. They are what an embedding application gets, so
 * they are measured and reported first.
 */
import { type Child, startChild } from './child.ts'
import type { BenchFolder } from './folder.ts'
import type { LivesCalls, LivesSide, LivesSlot } from './lives-child.ts'
import { removeFiles } from './resource-usage.ts'
import { type Summary, summaryOf } from './statistics.ts'
import { type TargetLine, targetLine } from './targets.ts'

export interface LivesLine {
  readonly kind: 'lives'
  readonly cell: string
  readonly ours: LivesSummary
  readonly sqlite: LivesSummary
  /** Ours over SQLite's, within a repetition. */
  readonly lives_per_s: Summary
  readonly p99: Summary
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

interface LivesSummary {
  readonly lives_per_s: Summary
  readonly p99_ms: Summary
}

/** [waiting tasks, ops in a request, callers, target: lives a second over SQLite's] */
const cells: readonly (readonly [number, number, number, number])[] = [
  [20_000, 1, 1, 1],
  [20_000, 1, 64, 1.2],
  [20_000, 100, 1, 1.1],
  [1_000_000, 1, 1, 1],
  [1_000_000, 1, 64, 2],
  [1_000_000, 100, 1, 1.1],
]

const livesName = ([tasks, ops, callers]: (typeof cells)[number]): string =>
  `lives/${tasks}/${ops}x${callers}`

/** Slots of one side for each repetition. */
type Slots = Readonly<Record<LivesSide, LivesSlot[]>>

interface LivesRun {
  readonly folder: BenchFolder
  readonly isChosen: (name: string) => boolean
  readonly is_quick: boolean
  readonly slot_s: number | undefined
}

export async function* livesCells(run: LivesRun): AsyncGenerator<LivesLine> {
  for await (const [cell, { ours, sqlite }] of measured(run, ['ours', 'sqlite'], 5)) {
    yield {
      ...{ kind: 'lives', cell, ours: livesSummary(ours), sqlite: livesSummary(sqlite) },
      lives_per_s: ratiosOf(ours, sqlite, 'lives_per_s'),
      p99: ratiosOf(ours, sqlite, 'p99_ms'),
    }
  }
}

/** What the history of tasks and the feed of changes cost: with both and without, alternately. */
export async function* livesOnAndOff(run: LivesRun): AsyncGenerator<OnOffLine> {
  for await (const [cell, { ours, off }] of measured(run, ['ours', 'off'], 9)) {
    const [on_per_s = 0, off_per_s = 0] = [ours, off].map(
      (slots) => livesSummary(slots).lives_per_s.median,
    )
    const ratio = ratiosOf(ours, off, 'lives_per_s')
    yield { kind: 'on-off', cell, on_per_s, off_per_s, ratio }
  }
}

async function* measured(
  { folder, isChosen, is_quick, slot_s = is_quick ? 0.1 : 10 }: LivesRun,
  sides: readonly LivesSide[],
  reps_full: number,
): AsyncGenerator<readonly [cell: string, Slots]> {
  const reps = is_quick ? 1 : reps_full
  const files = new Map<string, string>()
  for (const cell of cells) {
    if (!isChosen(livesName(cell))) continue
    const [, ops, callers] = cell
    const tasks = is_quick ? Math.ceil(cell[0] / 200) : cell[0]
    const slots: Slots = { ours: [], off: [], sqlite: [] }
    for (let rep = 0; rep < reps; rep++) {
      for (const side of rep % 2 === 0 ? sides : sides.toReversed()) {
        const child = startChild<LivesCalls>(folder.script('lives-child'))
        const path = await folder.copy(await fileOf(child, folder, files, side, tasks))
        const slot = await child.call('run', { side, path, tasks, ops, callers, slot_s })
        slots[side].push(slot)
        await child.stop()
        await removeFiles(path)
      }
    }
    yield [livesName(cell), slots]
  }
}

/** Ours over the other side, within a repetition. */
function ratiosOf(
  ours: readonly LivesSlot[],
  other: readonly LivesSlot[],
  of: keyof LivesSlot,
): Summary {
  return summaryOf(ours.map((slot, rep) => slot[of] / (other[rep]?.[of] ?? Number.NaN)))
}

async function fileOf(
  child: Child<LivesCalls>,
  folder: BenchFolder,
  files: Map<string, string>,
  side: LivesSide,
  tasks: number,
): Promise<string> {
  const key = `${side} ${tasks}`
  const path = files.get(key) ?? folder.newPath()
  if (!files.has(key)) await child.call('make', { side, path, tasks })
  files.set(key, path)
  return path
}

function livesSummary(slots: readonly LivesSlot[]): LivesSummary {
  const of = (name: keyof LivesSlot): Summary => summaryOf(slots.map((slot) => slot[name]))
  return { lives_per_s: of('lives_per_s'), p99_ms: of('p99_ms') }
}

export function livesTargets(lines: readonly LivesLine[]): TargetLine[] {
  return cells.flatMap((cell) => {
    const [tasks, ops, callers, wanted] = cell
    const line = lines.find(({ cell: name }) => name === livesName(cell))
    if (line === undefined) return []
    const what = `whole lives, ${tasks.toLocaleString('en-US')} waiting, ${ops} × ${callers}`
    const rate = targetLine({
      ...{ row: `${what}, over sqlite`, ours: 'ours', wanted, measured: line.lives_per_s },
    })
    if (callers === 1) return [rate]
    const p99 = targetLine({
      ...{ row: `${what}, p99 over sqlite’s`, ours: 'ours', wanted: 1, measured: line.p99 },
      is_upper_bound: true,
    })
    return [rate, p99]
  })
}
