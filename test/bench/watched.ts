/**
 * What it costs to have an engine watched (see watches): cells without a rival, in-process, over HTTP
 * and over gRPC, with logs, metrics and traces each, with all of them, and with none. A repetition
 * measures all of these one after the other, so that noise of the machine falls on all.
 */
import { type Cell, cellName, cells, type Scale, serverOf } from './cells.ts'
import type { BenchFolder } from './folder.ts'
import type { OnOffLine } from './lives.ts'
import { startLoadClients } from './load-clients.ts'
import { rotated } from './measure.ts'
import type { Side } from './side.ts'
import { startOurs } from './side-ours.ts'
import { type SideSlot, type Summary, summaryOf } from './statistics.ts'
import { makeTemplates } from './templates.ts'
import { type WatchName, watch_names } from './watches.ts'

interface WatchedRun {
  readonly folder: BenchFolder
  readonly isChosen: (name: string) => boolean
  readonly scale: Scale
  readonly is_quick: boolean
}

/** [what is told of, the watches that are on] */
const forms: readonly (readonly [string, readonly WatchName[]])[] = [
  ['off', []],
  ...watch_names.map((name) => [name, [name]] as const),
  ['all', watch_names],
]

const servers = ['in-process', 'http', 'grpc'] as const

/** The cells of small files; a stream and a burst of batches add nothing that these do not show. */
function isWatched({ file, refs, kind, verb, transport, ops, callers }: Cell): boolean {
  const is_small = file === 'empty' && refs === 'random' && kind === 'usual' && verb !== 'read'
  return is_small && transport !== 'grpc-stream' && ops * callers <= 100
}

export async function* watchedOnAndOff(given: WatchedRun): AsyncGenerator<OnOffLine> {
  const { folder, scale, isChosen, is_quick } = given
  const clients = startLoadClients(folder)
  const templates = makeTemplates(folder, () => {})
  const run = { folder, scale, clients, templates, engine_flags: [], print: () => {} }
  try {
    for (const server of servers) {
      const chosen = cells.filter(
        (cell) => serverOf(cell) === server && isWatched(cell) && isChosen(cellName(cell)),
      )
      if (chosen.length === 0) continue
      const group = { file: 'empty', refs: 'random', server, cells: chosen } as const
      const sides = await Promise.all(
        forms.map(async ([name, watches]) => {
          const form = { name: 'ours', server, uses_library: false, watches } as const
          return [name, await startOurs(run, group, form)] as const
        }),
      )
      for (const cell of chosen) yield* linesOf(cell, sides, scale, is_quick ? 1 : 9)
      for (const [, side] of sides) await side.stop()
    }
  } finally {
    await clients.stop()
  }
}

async function* linesOf(
  cell: Cell,
  sides: readonly (readonly [string, Side])[],
  { warmup_s, slot_s }: Scale,
  reps: number,
): AsyncGenerator<OnOffLine> {
  const slots = new Map<string, SideSlot[]>(sides.map(([name]) => [name, []]))
  // The first repetition warms up, and does not count.
  for (let rep = 0; rep <= reps; rep++) {
    for (const [name, side] of rotated(sides, rep)) {
      const slot = await side.measure(cell, { warmup_s, slot_s })
      if (rep > 0) slots.get(name)?.push(slot)
    }
  }
  const off = slots.get('off') ?? []
  for (const [name, on] of slots) {
    if (name === 'off') continue
    const over = (of: (slot: SideSlot) => number): Summary =>
      summaryOf(on.map((slot, rep) => of(slot) / of(off[rep] as SideSlot)))
    const [on_per_s, off_per_s] = [
      summaryOf(on.map(rateOf)).median,
      summaryOf(off.map(rateOf)).median,
    ]
    const ratios = {
      ratio: over(rateOf),
      cpu: over(({ cpu_s = Number.NaN, whole }) => cpu_s / whole.ops),
    }
    yield { kind: 'on-off', cell: `${cellName(cell)} ${name}`, on_per_s, off_per_s, ...ratios }
  }
}

const rateOf = ({ whole }: SideSlot): number => whole.ops / whole.seconds
