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
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { readChild } from '../support/child-lines.ts'
import type { RotLine, RotPlace } from '../support/disk/rot-child.ts'
import { makeImages } from '../support/disk/rot-image.ts'
import { buildChild, type Edit } from '../support/store-child.ts'
import { quickFolder } from '../support/store-folder.ts'
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

/** Are made once, for the claim and the controls. */
let images: Promise<string> | undefined

function madeImages(): Promise<string> {
  images ??= quickFolder('conveyor-rot-').then(async (folder) => {
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    await makeImages(folder)
    return folder
  })
  return images
}

interface How {
  readonly edits?: readonly Edit[]
  readonly where?: RotPlace
}

async function run(
  { n, seed, failures_max, emit }: Given,
  { edits = [], where = 'mixed' }: How,
): Promise<Outcome> {
  const [child, images] = await Promise.all([
    buildChild('disk/rot-child.ts', [large_too, ...edits]),
    madeImages(),
  ])
  const counts = { refused: 0, named: 0, cut: 0, same: 0, crashes: 0 }
  const failures: Failure[] = []
  let tried = 0
  const told = Math.max(1, Math.floor(n / 10))

  function count({ seed, outcome, says }: RotLine): void {
    if (outcome === 'wrong') {
      failures.push({ seed, says })
      emit(`seed ${seed}: ${says}`)
    } else if (outcome !== 'begin') counts[outcome]++
    if (++tried % told === 0 && tried < n) emit(`${tried} of ${n}, ${failures.length} failures`)
  }

  /** Goes on with a new process after the seed over which one has ended. */
  async function work(from: number, until: number, folder: string): Promise<void> {
    for (let next = from; next < until && failures.length < failures_max; ) {
      const args = [child.script, images, folder, where, String(next), String(until - next)]
      let under_way: RotLine | undefined
      const how = await readChild<RotLine>(args, (line) => {
        under_way = line.outcome === 'begin' ? line : undefined
        if (under_way === undefined) count(line)
        return failures.length >= failures_max ? 'enough' : undefined
      })
      if (how === undefined) return
      if (under_way === undefined) throw new Error(`a child could not begin: ${how}`)
      counts.crashes++
      const { seed, says }: RotLine = under_way
      count({ seed, outcome: 'wrong', says: `the process has ended: ${how} ${says}` })
      next = seed + 1
    }
  }

  try {
    const hands = Math.min(availableParallelism(), Math.ceil(n / tries_each_min))
    const shares = Array.from({ length: hands + 1 }, (_, at) => seed + Math.floor((at * n) / hands))
    const folders = Array.from({ length: hands }, () => mkdtempSync(join(images, 'work-')))
    await Promise.all(
      folders.map((folder, at) => work(shares[at] as number, shares[at + 1] as number, folder)),
    )
  } finally {
    await child.remove()
  }
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
