/**
 * The cells of the comparison on one PostgreSQL: `npm run bench -- --cluster`. Creates, and the
 * callbacks of the tasks created before, in the process of the callers and over HTTP. A repetition
 * measures all sides of a cell one after the other, and begins with no task that waits.
 *
 * With a network in between (see network.ts) our file takes no part, and there are more callers too.
 */
import pg from 'pg'
import type { WriteVerb } from '../cells.ts'
import { startChild } from '../child.ts'
import type { HttpClientCalls } from '../client-http.ts'
import type { BenchFolder } from '../folder.ts'
import { rotated } from '../measure.ts'
import { type RunningBackend, startPostgresBackend } from '../rival-backends.ts'
import { type Slot, summaryOf } from '../statistics.ts'
import {
  type ClusterCell,
  type ClusterLine,
  type ClusterRivalName,
  type ClusterSide,
  clusterLine,
  clusterName,
  type NetworkLine,
} from './line.ts'
import { startFarServer } from './network.ts'
import { isRival, type Side, startSide } from './side.ts'

export interface ClusterRun {
  readonly folder: BenchFolder
  readonly isChosen: (name: string) => boolean
  readonly is_quick: boolean
  readonly slot_s: number | undefined
  readonly rivals: readonly ClusterRivalName[]
  print(text: string): void
}

const usual_reps = 5
const usual_slot_s = 4
const quick_slot_s = 0.2

const points = [
  ['embedded', 64],
  ['http', 64],
] as const
const far_points = [...points, ['embedded', 1_024]] as const
/** In this order: what is created is called back. */
const verbs: readonly WriteVerb[] = ['create', 'modify']

type Slots = Map<ClusterSide, Slot[]>

/** Both verbs of the points of which one is chosen. */
function chosenCells({ isChosen }: ClusterRun, delay_ms: number | undefined): ClusterCell[][] {
  return (delay_ms === undefined ? points : far_points)
    .map(([transport, callers]) => verbs.map((verb) => ({ transport, callers, verb, delay_ms })))
    .filter((of_point) => of_point.some((cell) => isChosen(clusterName(cell))))
}

/** `delay_ms`: of the network in between; by default there is none. */
export async function* clusterCells(
  run: ClusterRun,
  delay_ms: number | undefined,
): AsyncGenerator<ClusterLine | NetworkLine> {
  const { folder, is_quick, isChosen, slot_s = is_quick ? quick_slot_s : usual_slot_s } = run
  const chosen = chosenCells(run, delay_ms)
  if (chosen.length === 0) return
  const own: readonly ClusterSide[] = delay_ms === undefined ? ['ours', 'file'] : ['ours']
  const names: readonly ClusterSide[] = [...own, ...run.rivals, 'floor']
  const newSlots = (): Slots => new Map(names.map((name) => [name, []]))
  const slots = new Map(chosen.flat().map((cell) => [cell, newSlots()]))
  const sides = new Map<ClusterSide, Side>()
  /** A failure of a rival leaves it out; any other ends the run. */
  const orLeaveOut = async (name: ClusterSide, step: Promise<void>): Promise<void> => {
    try {
      await step
    } catch (error) {
      if (!isRival(name)) throw error
      run.print(`left out: ${name}: ${error}`)
      sides.delete(name)
      for (const of_cell of slots.values()) of_cell.delete(name)
    }
  }
  const server =
    delay_ms === undefined
      ? await startPostgresBackend()
      : await startFarServer(folder, delay_ms, run.print)
  const client = startChild<HttpClientCalls>(folder.script('client-http'))
  const start = async (name: ClusterSide): Promise<void> => {
    sides.set(name, await startSide({ folder, server, client }, name))
  }
  const measure = async (name: ClusterSide, side: Side, cells: ClusterCell[], rep: number) => {
    for (const cell of cells) {
      const slot = await side.measure(cell, rep === 0 ? slot_s / 4 : slot_s)
      // The first, shorter repetition is discarded, unless it is the only one.
      if (rep === 0 && !is_quick) continue
      slots.get(cell)?.get(name)?.push(slot)
    }
  }
  try {
    for (const name of names) await orLeaveOut(name, start(name))
    for (let rep = 0; rep <= (is_quick ? 0 : usual_reps); rep++) {
      for (const cells of chosen) {
        for (const [name, side] of rotated([...sides], rep)) {
          await orLeaveOut(name, measure(name, side, cells, rep))
        }
      }
    }
    const trip_ms = delay_ms === undefined ? undefined : await roundTripMs(server)
    for (const [cell, of_cell] of slots) {
      if (isChosen(clusterName(cell))) yield clusterLine(cell, of_cell, trip_ms)
    }
  } finally {
    for (const side of sides.values()) await side.stop()
    await client.stop()
    await server.stop()
  }
}

async function roundTripMs({ host, port }: RunningBackend): Promise<number> {
  const client = new pg.Client({ host, port, user: 'postgres', database: 'postgres' })
  await client.connect()
  const trips_ms: number[] = []
  for (let n = 0; n < 50; n++) {
    const start_ms = performance.now()
    await client.query({ name: 'trip', text: 'SELECT 1' })
    trips_ms.push(performance.now() - start_ms)
  }
  await client.end()
  return summaryOf(trips_ms).median
}
