/**
 * Each system call of `conveyor serve` on its data files fails in turn while it serves a script of
 * 500 requests: opening, reading, writing, syncing, mapping, asking, removing, in every thread. It
 * fails once, or with all of its kind from there on. support/io-faults states what must hold.
 *
 * The calls of the checkpoint process are among them. Failing writes come first, where not all are
 * tried: whichever fails, the server is not killed.
 *
 * The points are those that two runs without a fault have both reached. A run that goes another way
 * may miss one, which is then tried again, and told if it is missed always. Not among them are locks,
 * and the process of its own that opens a file first. What has failed is kept in the folder for
 * temporary files, where a run with its seed finds it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type IoBed,
  type IoFault,
  isWrite,
  makeIoBed,
  type Point,
  type State,
  states,
} from '../support/io-faults.ts'
import { whyNoIoLibrary } from '../support/io-library.ts'
import { newChance } from '../support/power-disk.ts'
import type { Edit } from '../support/store-child.ts'
import type { Failure, Given, Outcome, Proof } from './proof.ts'

/** By kind of call, the errors that it may end with. */
const errors: Readonly<Record<Point['kind'], readonly IoFault['error'][]>> = {
  reads: ['EIO', 'EINTR'],
  writes: ['EIO', 'ENOSPC', 'EINTR', 'short'],
  other: ['EIO'],
}
const hows = ['once', 'ever'] as const
/** One more than there are processors: a server that stops waits more than it works. */
const at_once = availableParallelism() + 1
const tries_max = 3
const failures_max = 20

/** What a server that a kill has left begins with differs in the beginning alone. */
const killed_n_max = 3

function faultsOf(points: ReadonlyMap<State, readonly Point[]>): IoFault[] {
  return states.flatMap((on) =>
    (points.get(on) ?? [])
      .filter(({ n }) => on === 'closed' || n <= killed_n_max)
      .flatMap(({ call, end, n, kind }) =>
        errors[kind]
          .filter((error) => error !== 'short' || call.includes('write'))
          .flatMap((error) => hows.map((how) => ({ call, end, n, error, how, on }))),
      ),
  )
}

async function run(given: Given): Promise<Outcome> {
  const bed = await makeIoBed()
  try {
    return await runOn(bed, given)
  } finally {
    await bed.remove()
  }
}

/** So few are chosen from the writes of one run. */
const few = 10
const keptPath = (seed: number): string => join(tmpdir(), `conveyor-io-${seed}.json`)

/** All that may be tried, or what is to be tried again. */
async function findFaults(bed: IoBed, { n, seed }: Given): Promise<readonly IoFault[]> {
  if (n === 1 && existsSync(keptPath(seed))) {
    return [JSON.parse(readFileSync(keptPath(seed), 'utf8')) as IoFault]
  }
  const points = new Map<State, readonly Point[]>()
  for (const [at, on] of states.entries()) {
    if (n > few) points.set(on, await pointsOf(bed, on, 2))
    else if (seed % states.length === at) points.set(on, await pointsOf(bed, on, 1))
  }
  const all = faultsOf(points)
  return n > few ? all : all.filter(isWrite)
}

async function runOn(bed: IoBed, given: Given): Promise<Outcome> {
  const { n, seed, emit } = given
  const all = await findFaults(bed, given)
  const [chance, others] = [newChance(seed), newChance(seed + 1)]
  const chosen = [
    ...shuffled(all.filter(isWrite), chance),
    ...shuffled(
      all.filter((fault) => !isWrite(fault)),
      others,
    ),
  ].slice(0, n)
  const failures: Failure[] = []
  const ends = { 'went on': 0, stopped: 0, 'did not start': 0, 'killed by LMDB': 0 }
  let [tried, missed, refused, stopped_ms_max, writes, of_child] = [0, 0, 0, 0, 0, 0]
  const next = chosen.values()
  const work = async (): Promise<void> => {
    for (const fault of next) {
      if (failures.length >= failures_max) return
      let result = await bed.attempt(fault, fault.on)
      for (let again = 1; !result.is_reached && again < tries_max; again++) {
        if (result.wrong !== undefined) break
        result = await bed.attempt(fault, fault.on)
      }
      tried++
      if (!result.is_reached) missed++
      if (result.refused > 0) refused++
      if (isWrite(fault)) writes++
      if (fault.call.startsWith('child.')) of_child++
      ends[result.end]++
      stopped_ms_max = Math.max(stopped_ms_max, result.stopped_ms ?? 0)
      const { call, end, error, how, on } = fault
      const what = `${on}: ${call} ${end} ${fault.n} ${error} ${how}`
      if (result.wrong !== undefined) {
        const own_seed = n === 1 ? seed : seed + failures.length
        writeFileSync(keptPath(own_seed), JSON.stringify(fault))
        failures.push({ seed: own_seed, says: `${what}: ${result.wrong}` })
      }
      if (tried % 100 === 0) emit(`${tried} of ${chosen.length}, ${failures.length} failures`)
    }
  }
  await Promise.all(Array.from({ length: at_once }, work))
  const figures = {
    ...{ points: all.length, missed, refused, stopped_ms_max: Math.round(stopped_ms_max) },
    ...{ went_on: ends['went on'], stopped: ends.stopped, did_not_start: ends['did not start'] },
    ...{ killed_by_lmdb: ends['killed by LMDB'], writes, of_child },
  }
  return { tried, faults: tried - missed, failures, figures }
}

/** The points that so many runs without a fault have all reached. */
async function pointsOf(bed: IoBed, on: State, count: 1 | 2): Promise<readonly Point[]> {
  const keyOf = ({ call, end, n }: Point): string => `${call} ${end} ${n}`
  const runs = await Promise.all(Array.from({ length: count }, () => bed.attempt(undefined, on)))
  for (const { wrong } of runs)
    if (wrong !== undefined) throw new Error(`without a fault: ${wrong}`)
  const [one, other = one] = runs.map(({ points }) => points)
  const reached = new Set(other?.map(keyOf))
  return (one ?? []).filter((point) => reached.has(keyOf(point)))
}

function shuffled<T>(all: readonly T[], chance: () => number): T[] {
  return all
    .map((one) => ({ one, at: chance() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)
}

/** It takes a write that failed for one that was done. */
const ignored: readonly Edit[] = [
  {
    file: 'store/commit-log/segment-file.ts',
    from: 'if (error !== null) reject(error)',
    to: 'if (error !== null) resolve()',
  },
]

/** LMDB writes in the server itself, as it did before there was a checkpoint process. */
const in_process: readonly Edit[] = [
  {
    file: 'store/data-file.ts',
    from: `const reads = await openLmdbTree(path, { ...others, backup_mark: copy_mark })
  const writer = newCheckpointProcess(path, lock_fd)`,
    to: `const { openWritableTree } = await import('./lmdb/commits.ts')
    const { runWriteJob } = await import('./commit-log/checkpoint.ts')
    // LMDB opens a file once in a process, to read it alone or to write it too.
    await (await openLmdbTree(path, others)).close()
    const reads = await openWritableTree(path, { ...others, backup_mark: copy_mark })
    const writer: ReturnType<typeof newCheckpointProcess> = {
      async write(job, onCommit) {
        runWriteJob(reads, { ...job, frames: job.frames.map((one) => Buffer.from(one)) }, onCommit)
      },
      async close() {},
    }
    void [newCheckpointProcess, lock_fd]`,
  },
  // The message of a failed write is longer than its memory where the numbers in it are.
  {
    file: 'store/commit-log/checkpoint.ts',
    from: 'putAll(writer, arena, slice)\n',
    to: `putAll(writer, arena, slice)
    for (const n of [1, 2, 3]) writer.put(\`\\xf0\${n}\`, Buffer.alloc(3_000_000))\n`,
  },
]
/** The C library ends a process that has written behind its memory, where it sees it. */
const checked_memory = { LD_PRELOAD: 'libc_malloc_debug.so.0', MALLOC_CHECK_: '3' }

export const proof: Proof = {
  name: 'io',
  unit: 'failing calls',
  says: 'whatever system call of a server fails, no answer is wrong, it goes on or stops at once with one line, and the file opens with everything that was answered',
  quick: 1,
  long: 1_000_000,
  missing: whyNoIoLibrary,
  run,
  controls: [
    {
      says: 'failed writes of the commit log are taken for done',
      quick: 1,
      long: 4,
      async run({ n }) {
        const bed = await makeIoBed(ignored)
        const failures: Failure[] = []
        try {
          for (let at = 0; at < n; at++) {
            const point = { call: 'pwrite', end: '-log-0', n: 20 + at }
            const { wrong } = await bed.attempt(
              { ...point, error: 'EIO', how: 'ever', on: 'closed' },
              'closed',
            )
            if (wrong !== undefined) failures.push({ seed: at, says: wrong })
          }
        } finally {
          await bed.remove()
        }
        return { tried: n, faults: n, failures }
      },
    },
    {
      says: 'LMDB writes in the process of the engine, whose memory a failed write corrupts',
      quick: 0,
      // What lies behind that memory is another thing in each run.
      long: 200,
      async run({ n, seed }) {
        const bed = await makeIoBed(in_process, checked_memory)
        const failures: Failure[] = []
        let tried = 0
        try {
          while (tried < n && failures.length === 0) {
            // Of several buffers, whose sizes are in the message.
            const at = 1 + (tried++ % 20)
            const point = { call: 'writev', end: 'file', n: at, error: 'EIO', how: 'once' } as const
            const { wrong, end } = await bed.attempt({ ...point, on: 'closed' }, 'closed')
            if (end === 'killed by LMDB') failures.push({ seed: seed + at, says: `${wrong}` })
          }
        } finally {
          await bed.remove()
        }
        return { tried, faults: tried, failures }
      },
    },
  ],
}
