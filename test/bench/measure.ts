/**
 * Measures the chosen cells, group by group. A repetition measures each cell of the group once, on
 * one side after the other; each repetition starts with another side.
 */
import {
  type Cell,
  cellName,
  type ServerName,
  type ServerRivalName,
  type SideName,
  serverOf,
  sidesOf,
  spanOf,
} from './cells.ts'
import type { Group, Run, Side } from './side.ts'
import { startFileSide } from './side-file.ts'
import { startFloor } from './side-floor.ts'
import { type OurForm, startOurs } from './side-ours.ts'
import { startRival } from './side-rival.ts'
import type { SideSlot } from './statistics.ts'
import type { Span } from './stopwatch.ts'

/** A cell with its slots by side: slots of one index are of one repetition. */
export interface Measured {
  readonly cell: Cell
  readonly slots: ReadonlyMap<SideName, readonly SideSlot[]>
}

export interface Available {
  readonly servers: readonly ServerRivalName[]
  readonly has_sqlite: boolean
}

/** Yields the cells of each group when the group is done. */
export async function* measureAll(
  run: Run,
  chosen: readonly Cell[],
  available: Available,
): AsyncGenerator<readonly Measured[]> {
  for (const group of groupsOf(chosen)) {
    yield await measureGroup(run, group, available)
  }
}

function groupsOf(chosen: readonly Cell[]): Group[] {
  const groups = new Map<string, Group & { cells: Cell[] }>()
  for (const cell of chosen) {
    const { file, refs, kind } = cell
    const server = serverOf(cell)
    const key = [file, refs, server, kind === 'servers'].join(' ')
    const group = groups.get(key) ?? { file, refs, server, cells: [] }
    group.cells.push(cell)
    groups.set(key, group)
  }
  return [...groups.values()]
}

async function measureGroup(run: Run, group: Group, available: Available): Promise<Measured[]> {
  const { reps, has_trial_rep } = run.scale
  const sides = new Map<SideName, Side>()
  const measured = group.cells.map((cell) => {
    const names = sidesOf(cell, available.servers).filter(
      (name) => available.has_sqlite || !name.startsWith('sqlite'),
    )
    return { cell, slots: new Map(names.map((name) => [name, [] as SideSlot[]])) }
  })
  /** A failure of a rival with a server leaves the rival out; any other failure ends the run. */
  const orSkip = async <T>(name: SideName, promise: Promise<T>): Promise<T | undefined> => {
    try {
      return await promise
    } catch (error) {
      if (!available.servers.some((rival) => rival === name)) throw error
      run.print(`left out: ${name}: ${error}`)
      for (const { slots } of measured) slots.delete(name)
      return undefined
    }
  }
  const measure = (name: SideName, cell: Cell, span: Span): Promise<SideSlot | undefined> => {
    const slot = (sides.get(name) as Side).measure(cell, span).catch((error) => {
      throw new Error(`${cellName(cell)}, ${name}: ${error.stack}`)
    })
    return orSkip(name, slot)
  }
  try {
    for (const name of new Set(measured.flatMap(({ slots }) => [...slots.keys()]))) {
      const side = await orSkip(name, startSide(run, group, name))
      if (side !== undefined) sides.set(name, side)
    }
    for (const { cell, slots } of has_trial_rep ? measured : []) {
      const { warmup_s, slot_s } = spanOf(cell, run.scale)
      for (const name of slots.keys()) await measure(name, cell, { warmup_s, slot_s: slot_s / 4 })
    }
    for (let rep = 0; rep < reps; rep++) {
      for (const { cell, slots } of measured) {
        for (const [name, side_slots] of rotated([...slots], rep)) {
          const slot = await measure(name, cell, spanOf(cell, run.scale))
          if (slot !== undefined) side_slots.push(slot)
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
    case 'bullmq':
    case 'pg-boss':
    case 'dbos':
    case 'restate':
      return startRival(run, name)
    default:
      return startOurs(run, group, ourForm(name, group.server))
  }
}

function ourForm(name: OurForm['name'], of_group: ServerName): OurForm {
  const server = name === 'embedded' ? 'in-process' : of_group
  return { name, server, uses_library: name === 'client' }
}
