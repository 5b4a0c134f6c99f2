/**
 * Measures the chosen cells, group by group. A repetition measures each cell of the group once, on
 * one side after the other; each repetition starts with another side.
 */
import { type Cell, cellName, type SideName, serverOf, sidesOf, spanOf } from './cells.ts'
import type { Group, Run, Side } from './side.ts'
import { startFileSide } from './side-file.ts'
import { startFloor } from './side-floor.ts'
import { startOurs } from './side-ours.ts'
import type { SideSlot } from './statistics.ts'
import type { Span } from './stopwatch.ts'

/** A cell with its slots by side: slots of one index are of one repetition. */
export interface Measured {
  readonly cell: Cell
  readonly slots: ReadonlyMap<SideName, readonly SideSlot[]>
}

/** Yields the cells of each group when the group is done. */
export async function* measureAll(
  run: Run,
  chosen: readonly Cell[],
  has_sqlite: boolean,
): AsyncGenerator<readonly Measured[]> {
  for (const group of groupsOf(chosen)) {
    yield await measureGroup(run, group, has_sqlite)
  }
}

function groupsOf(chosen: readonly Cell[]): Group[] {
  const groups = new Map<string, Group & { cells: Cell[] }>()
  for (const cell of chosen) {
    const { file, refs } = cell
    const server = serverOf(cell)
    const key = [file, refs, server].join(' ')
    const group = groups.get(key) ?? { file, refs, server, cells: [] }
    group.cells.push(cell)
    groups.set(key, group)
  }
  return [...groups.values()]
}

async function measureGroup(run: Run, group: Group, has_sqlite: boolean): Promise<Measured[]> {
  const { reps, has_trial_rep } = run.scale
  const sides = new Map<SideName, Side>()
  const measured = group.cells.map((cell) => {
    const names = sidesOf(cell).filter((name) => has_sqlite || !name.startsWith('sqlite'))
    return { cell, slots: new Map(names.map((name) => [name, [] as SideSlot[]])) }
  })
  const measure = (name: SideName, cell: Cell, span: Span): Promise<SideSlot> =>
    (sides.get(name) as Side).measure(cell, span).catch((error) => {
      throw new Error(`${cellName(cell)}, ${name}: ${error.stack}`)
    })
  try {
    for (const name of new Set(measured.flatMap(({ slots }) => [...slots.keys()]))) {
      sides.set(name, await startSide(run, group, name))
    }
    for (const { cell, slots } of has_trial_rep ? measured : []) {
      const { warmup_s, slot_s } = spanOf(cell, run.scale)
      for (const name of slots.keys()) await measure(name, cell, { warmup_s, slot_s: slot_s / 4 })
    }
    for (let rep = 0; rep < reps; rep++) {
      for (const { cell, slots } of measured) {
        for (const [name, side_slots] of rotated([...slots], rep)) {
          side_slots.push(await measure(name, cell, spanOf(cell, run.scale)))
        }
      }
    }
  } finally {
    for (const side of sides.values()) await side.stop()
  }
  return measured
}

/** The list, rotated to start at index `by`. */
export function rotated<T>(list: readonly T[], by: number): T[] {
  const at = by % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

function startSide(run: Run, group: Group, name: SideName): Promise<Side> {
  switch (name) {
    case 'floor':
      return startFloor(run, group)
    case 'sqlite':
    case 'sqlite-nodes':
    case 'sqlite-tuned':
      return startFileSide(run, group, name)
    default:
      return startOurs(run, group, { name })
  }
}
