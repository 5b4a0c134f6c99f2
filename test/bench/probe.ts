/**
 * What a child measures of itself from `startProbe` to `stopProbe`: sums by row, in one mode at a time,
 * for each disturbs the others. A sample of the main thread counts for the stage of the function
 * nearest to its top that has one.
 */
import fs from 'node:fs'
import { Session } from 'node:inspector/promises'
import { syncBuiltinESMExports } from 'node:module'
import { typeOfKey } from '../../src/codec/keys.ts'
import { keyAt, nextOffset } from '../../src/store/changes/change-encoding.ts'
import { changeOffsets, framesIn } from '../../src/store/commit-log/frame.ts'
import { childrenCpuSeconds, readProc } from './resource-usage.ts'
import { type CallFrame, isWait, stageOf } from './stages.ts'

export type Rows = Readonly<Record<string, number>>
export const probe_modes = ['threads', 'stages', 'bytes', 'allocations'] as const
export type ProbeMode = (typeof probe_modes)[number]
type Stop = () => Promise<Rows> | Rows

let rows: Promise<Rows> | Rows | undefined
let stop: Stop = () => ({})

export const probeCalls = {
  async startProbe(mode: ProbeMode | undefined): Promise<void> {
    rows = undefined
    stop = mode === undefined ? () => ({}) : await probes[mode]()
  },
  /** The same rows again until the next start. */
  stopProbe(): Promise<Rows> | Rows {
    rows ??= stop()
    return rows
  },
}

const probes: Readonly<Record<ProbeMode, () => Promise<Stop> | Stop>> = {
  threads() {
    const [before, before_s] = [threadTimes(), childrenCpuSeconds()]
    return () => {
      const spent = newSums()
      for (const [tid, { name, cpu_us }] of threadTimes()) {
        spent.add(name, cpu_us - (before.get(tid)?.cpu_us ?? 0))
      }
      spent.add('checkpoint process', (childrenCpuSeconds() - before_s) * 1e6)
      return spent.rows()
    }
  },

  async stages() {
    const session = newSession()
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: 200 })
    await session.post('Profiler.start')
    const mainCpuUs = (): number => threadTimes().get(String(process.pid))?.cpu_us ?? 0
    const before_us = mainCpuUs()
    return async () => {
      const cpu_us = mainCpuUs() - before_us
      const { profile } = await session.post('Profiler.stop')
      session.disconnect()
      const { nodes, startTime, endTime } = profile
      const by_id = new Map(nodes.map((node) => [node.id, node]))
      const hits = sumsByStage(nodes[0] as (typeof nodes)[0], ({ hitCount = 0, children = [] }) => [
        hitCount,
        children.flatMap((id) => by_id.get(id) ?? []),
      ])
      const busy = sumOf(hits, (stage) => !isWait(stage))
      const elapsed_us = (endTime - startTime) / sumOf(hits)
      return mapRows(hits, (count, of) => count * (isWait(of) ? elapsed_us : cpu_us / busy))
    }
  },

  /** Of all writes, then of the changes in the log by type of key. */
  bytes() {
    const { write, writeSync } = fs
    const [written, before] = [newSums(), diskBytes()]
    let last_seq = 0
    const counted = <T extends (...args: never[]) => unknown>(call: T): T =>
      ((...args: Parameters<T>) => {
        const blocks: unknown = args[1]
        if (Buffer.isBuffer(blocks)) count(blocks)
        return call(...args)
      }) as T
    const count = (blocks: Buffer): void => {
      const frames = [...framesIn(blocks)]
      written.add(frames.length > 0 ? 'log: blocks' : 'log: zeros ahead', blocks.length)
      // The first block of a write has earlier frames too.
      const newer = frames.filter(({ seq }) => seq > last_seq)
      last_seq = frames.at(-1)?.seq ?? last_seq
      for (const offset of changeOffsets(newer)) {
        const type = typeOfKey(keyAt(blocks, offset))
        written.add(`log: ${type}`, nextOffset(blocks, offset) - offset)
      }
    }
    Object.assign(fs, { write: counted(write), writeSync: counted(writeSync) })
    syncBuiltinESMExports()
    return () => {
      Object.assign(fs, { write, writeSync })
      syncBuiltinESMExports()
      const { 'log: blocks': blocks = 0, 'log: zeros ahead': zeros = 0 } = written.rows()
      return { ...written.rows(), 'file: pages': diskBytes() - before - blocks - zeros }
    }
  },

  async allocations() {
    const session = newSession()
    await session.post('HeapProfiler.startSampling', {
      samplingInterval: 16_384,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    })
    return async () => {
      const { profile } = await session.post('HeapProfiler.stopSampling')
      session.disconnect()
      return sumsByStage(profile.head, ({ selfSize, children }) => [selfSize, children])
    }
  },
}

function newSession(): Session {
  const session = new Session()
  session.connect()
  return session
}

function sumsByStage<N extends { readonly callFrame: CallFrame }>(
  root: N,
  split: (node: N) => readonly [own: number, children: readonly N[]],
): Rows {
  const sums = newSums()
  const visit = (node: N, of_caller: string): void => {
    const stage = stageOf(node.callFrame) ?? of_caller
    const [own, children] = split(node)
    sums.add(stage, own)
    for (const child of children) visit(child, stage)
  }
  visit(root, 'Node and V8')
  return sums.rows()
}

function newSums(): { add(name: string, amount: number): void; rows(): Rows } {
  const sums = new Map<string, number>()
  return {
    add: (name, amount) => void sums.set(name, (sums.get(name) ?? 0) + amount),
    rows: () => Object.fromEntries(sums),
  }
}

export function sumOf(rows: Rows, isIn: (name: string) => boolean = () => true): number {
  return Object.entries(rows).reduce((sum, [name, value]) => sum + (isIn(name) ? value : 0), 0)
}

export function mapRows(rows: Rows, change: (value: number, name: string) => number): Rows {
  return Object.fromEntries(
    Object.entries(rows).map(([name, value]) => [name, change(value, name)]),
  )
}

/** As Node 24 names its threads; the first also compile. */
const thread_names: Readonly<Record<string, string>> = {
  V8Worker: 'GC threads',
  'libuv-worker': 'thread pool',
}

/** Of this process, by thread; none where the system has no /proc. */
function threadTimes(): Map<string, { readonly name: string; readonly cpu_us: number }> {
  const tids = fs.existsSync('/proc/self/task') ? fs.readdirSync('/proc/self/task') : []
  return new Map(
    tids.map((tid) => {
      const [cpu_ns] = readProc(`self/task/${tid}/schedstat`).split(' ')
      const of_thread = thread_names[readProc(`self/task/${tid}/comm`).trim()] ?? 'other threads'
      const name = tid === String(process.pid) ? 'main thread' : of_thread
      return [tid, { name, cpu_us: Number(cpu_ns) / 1e3 }]
    }),
  )
}

/** Written by this process and by its children that have ended. */
function diskBytes(): number {
  return Number(/^write_bytes: (\d+)/m.exec(readProc('self/io'))?.[1] ?? 0)
}
