/**
 * `npm run proof:rot`: one bit of the data file or of the commit log flips while no process has it
 * open, or a page of the data file is zeroed, swapped, set back or cut off. The next opening is
 * refused with a sentence, or reads what was written; a task whose record is damaged is refused by
 * each read, named by `check`, and can be canceled. Damage to the last frame of the commit log looks
 * like a torn write, so it may cost that commit, and nothing else.
 *
 * Each try runs in a child process (support/disk/rot-child), because LMDB ends a process over bytes that
 * it trusts. A child that ends early, or says nothing for long, is a failure.
 */
import { availableParallelism } from 'node:os'
import { tryInChildren } from '../support/child-tries.ts'
import { type DiskHarness, diskHarness } from '../support/disk/harness.ts'
import type { RotLine, RotPlace } from '../support/disk/rot-child.ts'
import { makeImages } from '../support/disk/rot-image.ts'
import { builtOnce, type Edit } from '../support/store-child.ts'
import type { Experiment, Failure, Given, Outcome, Proof } from './proof.ts'

/** So many tries are worth a process of their own. */
const tries_each_min = 40

const large_too: Edit = {
  file: 'store/lmdb/open.ts',
  from: 'options.quick_bytes ?? quick_bytes_max',
  to: '(globalThis as { quick_bytes?: number }).quick_bytes ?? quick_bytes_max',
}
const without_sums: readonly Edit[] = [
  {
    file: 'store/lmdb/page-sums.ts',
    from: 'return sum === sumOf(fixed) ? undefined : damagedPage(found)',
    to: 'return undefined',
  },
  {
    file: 'store/lmdb/page-sums.ts',
    from: 'if (sum !== sums[at++]) throw',
    to: 'if (at++ < 0) throw',
  },
]
const without_task_sums: readonly Edit[] = [
  {
    file: 'codec/task-bytes.ts',
    from: 'bytes.readUInt32BE(4) === checksum(bytes)',
    to: 'checksum(bytes) >= 0',
  },
]
const without_gaps: readonly Edit[] = [
  {
    file: 'store/commit-log/recovery.ts',
    from: 'if (frame === undefined) throw',
    to: 'if (frame === undefined) break\n    if (seq < 0) throw',
  },
]

/** The images are made once, for the claim and the controls. */
let images: Promise<string> | undefined

async function madeImages({ newFolder }: DiskHarness): Promise<string> {
  const folder = newFolder()
  await makeImages(folder)
  return folder
}

interface How {
  readonly edits?: readonly Edit[]
  readonly where?: RotPlace
}

async function run(
  { n, seed, failures_max, emit }: Given,
  { edits = [], where = 'mixed' }: How,
): Promise<Outcome> {
  const harness = await diskHarness()
  images ??= madeImages(harness)
  const { script } = await builtOnce('disk/rot-child.ts', [large_too, ...edits])
  const folder = await images
  const counts = { refused: 0, named: 0, cut: 0, same: 0, crashes: 0 }
  const failures: Failure[] = []
  let tried = 0
  const report_every = Math.max(1, Math.floor(n / 10))

  function count({ seed, outcome, says }: RotLine): void {
    if (outcome === 'wrong') {
      failures.push({ seed, says })
      emit(`seed ${seed}: ${says}`)
    } else if (outcome !== 'begin') counts[outcome]++
    if (++tried % report_every === 0 && tried < n)
      emit(`${tried} of ${n}, ${failures.length} failures`)
  }

  const workers = Math.min(availableParallelism(), Math.ceil(n / tries_each_min))
  const startOf = (worker: number): number => seed + Math.floor((worker * n) / workers)
  const tryShare = (_: unknown, worker: number): Promise<void> => {
    const own = harness.newFolder()
    const end = startOf(worker + 1)
    return tryInChildren<RotLine>({
      words(after) {
        const next = after === undefined ? startOf(worker) : after.seed + 1
        if (next >= end || failures.length >= failures_max) return undefined
        return [script, folder, own, where, String(next), String(end - next)]
      },
      begins: ({ outcome }) => outcome === 'begin',
      take(line) {
        if (line.outcome !== 'begin') count(line)
        return failures.length >= failures_max ? 'enough' : undefined
      },
      fail({ seed, says }, how) {
        counts.crashes++
        count({ seed, outcome: 'wrong', says: `the process has ended: ${how} ${says}` })
      },
    })
  }
  await Promise.all(Array.from({ length: workers }, tryShare))
  return { tried, faults: tried, failures, figures: counts }
}

const control = (says: string, how: How): Experiment => ({
  says,
  quick: 40,
  long: 100,
  run: (given) => run(given, how),
})

export const proof: Proof = {
  name: 'rot',
  says: 'after damage to the data file or the commit log, nothing wrong is read as ok',
  unit: 'files',
  quick: 20,
  long: 10_000,
  run: (given) => run(given, {}),
  controls: [
    control('pages are not compared with their sums', {
      edits: without_sums,
      where: 'keys',
    }),
    control('records of tasks are not compared with theirs', {
      edits: without_task_sums,
      where: 'anywhere',
    }),
    control('a gap in the commit log is taken for its end', {
      edits: without_gaps,
      where: 'commit_log',
    }),
  ],
}
