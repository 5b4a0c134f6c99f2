/**
 * What it costs to have an engine watched (see watches), and to keep replays of requests: cells
 * without a rival, in-process, over HTTP and over gRPC, with each of these, with all, and with none.
 * A repetition measures all of these one after the other, so that noise of the machine falls on all.
 * Traces are compared with the SDK alone too, which is the embedder's: what is more is the engine's.
 */
import { type Cell, cellName, cells, type Scale, serverOf } from './cells.ts'
import type { BenchFolder } from './folder.ts'
import type { OnOffLine } from './lives.ts'
import { startLoadClients } from './load-clients.ts'
import { rotated } from './measure.ts'
import type { Side } from './side.ts'
import { type OurForm, startOurs } from './side-ours.ts'
import { type SideSlot, type Summary, summaryOf } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import { makeTemplates } from './templates.ts'

interface WatchedRun {
  readonly folder: BenchFolder
  readonly isChosen: (name: string) => boolean
  readonly scale: Scale
  readonly is_quick: boolean
  readonly slot_s: number | undefined
}

/** Slots that outweigh the opening of their file, so that all cells take ten minutes. */
const usual_span = { warmup_s: 0.1, slot_s: 0.5 }
const usual_reps = 5

type Form = Pick<OurForm, 'watches' | 'replay'>

/** [what is told of, what is on, what it is compared with] */
const forms: readonly (readonly [string, Form, readonly string[]])[] = [
  ['off', {}, []],
  ['logs', { watches: ['logs'] }, ['off']],
  ['metrics', { watches: ['metrics'] }, ['off']],
  ['sdk', { watches: ['sdk'] }, ['off']],
  ['traces', { watches: ['traces'] }, ['off', 'sdk']],
  ['all', { watches: ['logs', 'metrics', 'traces'] }, ['off', 'sdk']],
  ['no replays', { replay: 'off' }, []],
  ['replays', { replay: 'answer' }, ['no replays']],
]

const servers = ['in-process', 'http', 'grpc'] as const

/** The cells of small files; a stream and a burst of batches add nothing that these do not show. */
function isWatched({ file, refs, kind, verb, transport, ops, callers }: Cell): boolean {
  const is_small = file === 'empty' && refs === 'random' && kind === 'usual' && verb !== 'read'
  return is_small && transport !== 'grpc-stream' && ops * callers <= 100
}

export async function* watchedOnAndOff(given: WatchedRun): AsyncGenerator<OnOffLine> {
  const { folder, scale, isChosen, is_quick, slot_s = usual_span.slot_s } = given
  const span = is_quick ? scale : { ...usual_span, slot_s }
  const clients = startLoadClients(folder)
  const templates = makeTemplates(folder, () => {})
  const run = { folder, scale, clients, templates, engine_flags: [] }
  try {
    for (const server of servers) {
      const chosen = cells.filter(
        (cell) => serverOf(cell) === server && isWatched(cell) && isChosen(cellName(cell)),
      )
      if (chosen.length === 0) continue
      const group = { file: 'empty', refs: 'random', server, cells: chosen } as const
      const sides = await Promise.all(
        forms.map(async ([name, form]) => {
          return [name, await startOurs(run, group, { name: 'ours', ...form })] as const
        }),
      )
      for (const cell of chosen) yield* linesOf(cell, sides, span, is_quick ? 1 : usual_reps)
      for (const [, side] of sides) await side.stop()
    }
  } finally {
    await clients.stop()
  }
}

async function* linesOf(
  cell: Cell,
  sides: readonly (readonly [string, Side])[],
  span: Span,
  reps: number,
): AsyncGenerator<OnOffLine> {
  const slots = new Map<string, SideSlot[]>(sides.map(([name]) => [name, []]))
  // The first repetition warms up, and does not count.
  for (let rep = 0; rep <= reps; rep++) {
    for (const [name, side] of rotated(sides, rep)) {
      const slot = await side.measure(cell, span)
      if (rep > 0) slots.get(name)?.push(slot)
    }
  }
  for (const [name, , others] of forms) {
    for (const other of others) {
      const what = `${cellName(cell)} ${name}${other === 'sdk' ? ' over sdk' : ''}`
      yield lineOf(what, slots.get(name) ?? [], slots.get(other) ?? [])
    }
  }
}

function lineOf(cell: string, on: readonly SideSlot[], off: readonly SideSlot[]): OnOffLine {
  const over = (of: (slot: SideSlot) => number): Summary =>
    summaryOf(on.map((slot, rep) => of(slot) / of(off[rep] as SideSlot)))
  return {
    ...{ kind: 'on-off', cell, ratio: over(rateOf), cpu: over(cpuOf) },
    on_per_s: summaryOf(on.map(rateOf)).median,
    off_per_s: summaryOf(off.map(rateOf)).median,
  }
}

const rateOf = ({ whole }: SideSlot): number => whole.ops / whole.seconds
const cpuOf = ({ cpu_s = Number.NaN, whole }: SideSlot): number => cpu_s / whole.ops
