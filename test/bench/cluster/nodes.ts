/**
 * The cells of several nodes: how far a standby is behind an owner under a steady load, and how long a
 * new node takes to have a large state while the owner is under the load of 64 callers. A standby's lag
 * is told in positions, and in seconds: how long ago the owner had come past the standby's position.
 */
import { stat } from 'node:fs/promises'
import { type Child, startChild } from '../child.ts'
import type { BenchFolder } from '../folder.ts'
import { startPostgresBackend } from '../rival-backends.ts'
import type { NodeCalls, NodeSample } from './node-child.ts'

export type NodesLine = StandbyLine | JoinLine

export interface StandbyLine {
  readonly kind: 'standby'
  readonly wanted_per_s: number
  /** What the owner has done. */
  readonly ops_per_s: number
  readonly seconds: number
  readonly lag_s: Spread
  readonly lag_positions: Spread
}

export interface JoinLine {
  readonly kind: 'join'
  /** Of the owner's data file, before. */
  readonly bytes: number
  /** From the start of the new node until it was less than this many seconds behind. */
  readonly seconds: number
  readonly caught_up_s: number
  /** Of the owner. */
  readonly ops_per_s_before: number
  readonly ops_per_s_during: number
}

interface Spread {
  readonly median: number
  readonly p99: number
  readonly max: number
}

interface NodesRun {
  readonly folder: BenchFolder
  readonly isChosen: (name: string) => boolean
  readonly is_quick: boolean
}

const wanted_per_s = 20_000
const caught_up_s = 1
const join_s_max = 1_800
/** With its record, index and share of pages a task takes about 1.2 KB. */
const state = { tasks: 850_000, more_bytes: 800 }

export async function* nodesCells(run: NodesRun): AsyncGenerator<NodesLine> {
  if (run.isChosen('cluster/standby')) yield await withNodes(run, standbyLine)
  if (run.isChosen('cluster/join')) yield await withNodes(run, joinLine)
}

/** An owner, and what opens another node. */
interface Nodes {
  readonly owner: Child<NodeCalls>
  readonly owner_path: string
  startStandby(): Promise<Child<NodeCalls>>
}

async function withNodes<T>(
  run: NodesRun,
  measure: (nodes: Nodes, run: NodesRun) => Promise<T>,
): Promise<T> {
  const { folder } = run
  const server = await startPostgresBackend()
  const url = `postgres://postgres@${server.host}:${server.port}/postgres?sslmode=disable`
  const nodes: Child<NodeCalls>[] = []
  const start = async (path: string): Promise<Child<NodeCalls>> => {
    const child = startChild<NodeCalls>(folder.script('cluster/node-child'))
    nodes.push(child)
    if (nodes.length === 1) await child.call('init', { url })
    await child.call('open', { url, node: `node-${nodes.length}`, path })
    return child
  }
  try {
    const owner_path = folder.newPath()
    const owner = await start(owner_path)
    await owner.call('own')
    return await measure({ owner, owner_path, startStandby: () => start(folder.newPath()) }, run)
  } finally {
    // Standbys first, so that none takes over.
    for (const node of nodes.toReversed()) {
      await node.call('close')
      await node.stop()
    }
    await server.stop()
  }
}

async function standbyLine(
  { owner, startStandby }: Nodes,
  { is_quick }: NodesRun,
): Promise<StandbyLine> {
  const [warmup_s, slot_s] = is_quick ? [0.5, 1] : [10, 60]
  const standby = await startStandby()
  await owner.call('startLoad', { callers: 64, ops: 10, ops_per_s: wanted_per_s })
  await pauseSeconds(warmup_s)
  await Promise.all([owner.call('takeSamples'), standby.call('takeSamples')])
  await pauseSeconds(slot_s)
  const followed = await standby.call('takeSamples')
  const led = await owner.call('takeSamples')
  await owner.call('stopLoad')
  const lags = lagsOf(led, followed)
  return {
    ...{ kind: 'standby', wanted_per_s, ops_per_s: rateOf(led), seconds: slot_s },
    lag_s: spreadOf(lags.map(({ seconds }) => seconds)),
    lag_positions: spreadOf(lags.map(({ positions }) => positions)),
  }
}

async function joinLine(
  { owner, owner_path, startStandby }: Nodes,
  { is_quick }: NodesRun,
): Promise<JoinLine> {
  const part = is_quick ? 100 : 1
  await owner.call('fill', { ...state, tasks: state.tasks / part })
  await owner.call('startLoad', { callers: 64, ops: 1 })
  await pauseSeconds(is_quick ? 0.2 : 5)
  await owner.call('takeSamples')
  await pauseSeconds(is_quick ? 0.5 : 20)
  const ops_per_s_before = rateOf(await owner.call('takeSamples'))
  const { size: bytes } = await stat(owner_path)
  const start_ms = performance.now()
  const joining = await startStandby()
  const led: NodeSample[] = []
  for (;;) {
    await pauseSeconds(0.2)
    const joined = await joining.call('takeSamples')
    led.push(...(await owner.call('takeSamples')))
    const seconds = (performance.now() - start_ms) / 1_000
    const behind_s = lagsOf(led, joined.slice(-1))[0]?.seconds ?? Number.POSITIVE_INFINITY
    if (seconds > join_s_max) throw new Error(`a new node is still behind after ${join_s_max} s`)
    if (behind_s >= caught_up_s || (joined.at(-1)?.seq ?? 0) === 0) continue
    await owner.call('stopLoad')
    const ops_per_s_during = rateOf(led)
    return { kind: 'join', bytes, seconds, caught_up_s, ops_per_s_before, ops_per_s_during }
  }
}

interface Lag {
  readonly seconds: number
  readonly positions: number
}

/** Of each sample of a standby that is not later than the owner's last. */
export function lagsOf(led: readonly NodeSample[], followed: readonly NodeSample[]): Lag[] {
  const lags: Lag[] = []
  for (const { at_ms, seq } of followed) {
    const past = led.find((one) => one.seq > seq)
    const now = led.findLast((one) => one.at_ms <= at_ms)
    if (now === undefined) continue
    const seconds = past === undefined ? 0 : Math.max(0, at_ms - past.at_ms) / 1_000
    lags.push({ seconds, positions: Math.max(0, now.seq - seq) })
  }
  return lags
}

function rateOf(samples: readonly NodeSample[]): number {
  const [first, last] = [samples[0], samples.at(-1)]
  if (first === undefined || last === undefined) return Number.NaN
  return (last.ops - first.ops) / ((last.at_ms - first.at_ms) / 1_000)
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number): number => sorted[Math.ceil(share * (sorted.length - 1))] ?? Number.NaN
  return { median: at(0.5), p99: at(0.99), max: at(1) }
}

function pauseSeconds(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
}
