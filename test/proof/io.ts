/**
 * Each system call of `conveyor serve` on its data files fails in turn while it serves a script of
 * 500 requests: opening, reading, writing, syncing, mapping, asking, removing, in every thread. It
 * fails once, or with all of its kind from there on. support/disk/io-faults states what must hold.
 *
 * The calls of the checkpoint process are among them, and those of the process that first opens a
 * file, but no locks. Failing writes come first, where not all are tried: whichever fails, the server
 * is not killed.
 *
 * The points are those that two runs without a fault have both reached. A run that takes another
 * path may miss one, which is then tried again, and counted as missed if it is missed always. What
 * has failed is kept (kept.ts).
 */
import { availableParallelism } from 'node:os'
import { whyNoIoLibrary } from '../support/disk/harness.ts'
import {
  attempt,
  type IoFault,
  type IoProgram,
  isWrite,
  type Point,
  type State,
  states,
} from '../support/disk/io-faults.ts'
import { fractionsOf, shuffled } from '../support/fractions.ts'
import type { Edit } from '../support/store-child.ts'
import { keep, kept } from './kept.ts'
import { type Given, type Outcome, type Proof, type Tried, tryEach } from './proof.ts'

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

/** So few are chosen from the writes of one run. */
const few = 10

/** All that may be tried, or what is to be tried again. */
async function findFaults({ n, seed }: Given): Promise<readonly IoFault[]> {
  const again = kept<IoFault>('io', { n, seed })
  if (again !== undefined) return [again]
  const points = new Map<State, readonly Point[]>()
  for (const [at, on] of states.entries()) {
    if (n > few) points.set(on, await pointsOf(on, 2))
    else if (seed % states.length === at) points.set(on, await pointsOf(on, 1))
  }
  const all = faultsOf(points)
  return n > few ? all : all.filter(isWrite)
}

async function run(given: Given): Promise<Outcome> {
  const { n, seed } = given
  const all = await findFaults(given)
  const chosen = [
    ...shuffled(all.filter(isWrite), fractionsOf(seed)),
    ...shuffled(
      all.filter((fault) => !isWrite(fault)),
      fractionsOf(seed + 1),
    ),
  ].slice(0, n)
  const ends = { 'went on': 0, stopped: 0, 'did not start': 0, 'killed by LMDB': 0 }
  let [missed, refused, stopped_ms_max, writes, of_child] = [0, 0, 0, 0, 0]
  const tryOne = async (own_seed: number): Promise<Tried> => {
    const fault = chosen[own_seed - seed] as IoFault
    let result = await attempt(fault, fault.on)
    for (let again = 1; !result.is_reached && again < tries_max; again++) {
      if (result.wrong !== undefined) break
      result = await attempt(fault, fault.on)
    }
    if (!result.is_reached) missed++
    if (result.refused > 0) refused++
    if (isWrite(fault)) writes++
    if (fault.call.startsWith('child.')) of_child++
    ends[result.end]++
    stopped_ms_max = Math.max(stopped_ms_max, result.stopped_ms ?? 0)
    const faults = result.is_reached ? 1 : 0
    if (result.wrong === undefined) return { faults }
    keep('io', own_seed, fault)
    const { call, end, error, how, on } = fault
    const what = `${on}: ${call} ${end} ${fault.n} ${error} ${how}`
    return { faults, failure: `${what}: ${result.wrong}` }
  }
  const outcome = await tryEach({ ...given, n: chosen.length }, tryOne, at_once)
  const figures = {
    ...{ points: all.length, missed, refused, stopped_ms_max: Math.round(stopped_ms_max) },
    ...{ went_on: ends['went on'], stopped: ends.stopped, did_not_start: ends['did not start'] },
    ...{ killed_by_lmdb: ends['killed by LMDB'], writes, of_child },
  }
  return { ...outcome, figures }
}

/** The points that so many runs without a fault have all reached. */
async function pointsOf(on: State, count: 1 | 2): Promise<readonly Point[]> {
  const keyOf = ({ call, end, n }: Point): string => `${call} ${end} ${n}`
  const runs = await Promise.all(Array.from({ length: count }, () => attempt(undefined, on)))
  for (const { wrong } of runs)
    if (wrong !== undefined) throw new Error(`without a fault: ${wrong}`)
  const [one, other = one] = runs.map(({ points }) => points)
  const reached = new Set(other?.map(keyOf))
  return (one ?? []).filter((point) => reached.has(keyOf(point)))
}

/** It takes a write that failed for one that was done. */
const ignored: Edit = {
  file: 'store/commit-log/segment-file.ts',
  from: 'if (error !== null) reject(error)',
  to: 'if (error !== null) resolve()',
}

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

type Found = Awaited<ReturnType<typeof attempt>>

/** The n-th try of a control has the fault at one point of a closed file. */
const control = (
  given: Given,
  program: IoProgram,
  faultOf: (at: number) => Omit<IoFault, 'error' | 'on'>,
  failureOf: (found: Found) => string | undefined,
): Promise<Outcome> =>
  tryEach(given, async (seed) => {
    const fault = { ...faultOf(seed - given.seed), error: 'EIO', on: 'closed' } as const
    const failure = failureOf(await attempt(fault, 'closed', program))
    return { faults: 1, ...(failure !== undefined && { failure }) }
  })

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
      run: (given) =>
        control(
          given,
          { edits: [ignored] },
          (at) => ({ call: 'pwrite', end: '-log-0', n: 20 + at, how: 'ever' }),
          ({ wrong }) => wrong,
        ),
    },
    {
      says: 'LMDB writes in the process of the engine, whose memory a failed write corrupts',
      quick: 0,
      // What lies behind that memory is another thing in each run.
      long: 200,
      run: (given) =>
        control(
          { ...given, failures_max: 1 },
          { edits: in_process, env: checked_memory },
          // Of several buffers, whose sizes are in the message.
          (at) => ({ call: 'writev', end: 'file', n: 1 + (at % 20), how: 'once' }),
          ({ wrong, end }) => (end === 'killed by LMDB' ? `${wrong}` : undefined),
        ),
    },
  ],
}
