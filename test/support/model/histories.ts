/**
 * Histories of seeds that follow each other. Many of them run in child processes under plain Node,
 * as many at a time as there are processors, each with a share of the seeds; few run here.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { limitsWith } from '../../../src/core/limits.ts'
import { newCodeExecutor } from '../../../src/executors/code.ts'
import { type Failure, type Given, type Outcome, tryEach } from '../../proof/proof.ts'
import { fakeChance } from '../fake-clock.ts'
import { type BuiltChild, buildChild } from '../store-child.ts'
import { fileDisk, memoryDisk } from './harness.ts'
import { type RunCode, runHistory } from './history.ts'

/** Of so many histories one is on a data file, and one has its code run in the sandbox. */
const seeds_per_file = 200
const seeds_per_sandbox = 40

/** So few are tried before children are built. */
const here_max = 200
/** Of a failure, before the end tells it whole. */
const told_chars = 1_000
/** The share of a child, which tells how far it is by its end. */
const share_max = 2_500
const failures_max = 20
/** No two histories are alike, so code that is optimized for one is thrown away in the next. */
export const child_flags = ['--no-opt', '--max-semi-space-size=64']

export interface Met extends Outcome {
  /** How often each thing was met. */
  readonly met: Readonly<Record<string, number>>
}

export const tryHistories = (given: Given): Promise<Met> =>
  given.n <= here_max ? tryHere(given) : tryInChildren(given)

export async function tryHere(given: Given): Promise<Met> {
  const met: Record<string, number> = {}
  const needs_code = Array.from({ length: Math.min(given.n, seeds_per_sandbox) }).some((_, at) =>
    isSandboxed(given.seed + at),
  )
  const code = needs_code ? await newCodeExecutor(limitsWith({}), fakeChance()) : undefined
  const runCode: RunCode | undefined = code && ((order) => code.run(order))
  try {
    const outcome = await tryEach(given, async (seed) => {
      const disk = seed % seeds_per_file === 0 ? await fileDisk() : memoryDisk()
      const found = await runHistory(seed, disk, isSandboxed(seed) ? runCode : undefined)
      for (const [what, times] of found.met) met[what] = (met[what] ?? 0) + times
      return { faults: found.faults }
    })
    return { ...outcome, met }
  } finally {
    await code?.close()
  }
}

const isSandboxed = (seed: number): boolean => seed % seeds_per_sandbox === 1

async function tryInChildren({ n, seed, emit }: Given): Promise<Met> {
  const child = await buildChild('model/histories-child.ts')
  const met: Record<string, number> = {}
  const failures: Failure[] = []
  let [begun, tried, faults] = [0, 0, 0]
  const workers = availableParallelism()
  const share = Math.min(share_max, Math.ceil(n / workers))
  const work = async (): Promise<void> => {
    while (begun < n && failures.length < failures_max) {
      const [from, count] = [seed + begun, Math.min(share, n - begun)]
      begun += count
      const found = await shareOf(child, from, count)
      tried += found.tried
      faults += found.faults
      failures.push(...found.failures)
      for (const { seed, says } of found.failures)
        emit(`seed ${seed}: ${says.slice(0, told_chars)}`)
      for (const [what, times] of Object.entries(found.met)) met[what] = (met[what] ?? 0) + times
      emit(`${tried} of ${n}, ${failures.length} failures`)
    }
  }
  try {
    await Promise.all(Array.from({ length: workers }, work))
    return { tried, faults, failures, met }
  } finally {
    await child.remove()
  }
}

/** A process that ends without its answer is a failure of its first seed. */
async function shareOf(child: BuiltChild, seed: number, n: number): Promise<Met> {
  const args = [...child_flags, child.script, String(seed), String(n)]
  const running = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  running.stdout.on('data', (chunk) => {
    text += chunk
  })
  const [code, signal] = await once(running, 'close')
  if (code === 0) return JSON.parse(text) as Met
  const says = `the process of ${n} seeds has ended with ${code ?? signal}: ${text}`
  return { tried: n, faults: 0, failures: [{ seed, says }], met: {} }
}
