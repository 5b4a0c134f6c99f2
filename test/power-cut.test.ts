/**
 * The power is cut at every moment of a run that commits, checkpoints, closes and opens again.
 * Whatever the disk may hold then opens, with every acknowledged group and no group in part.
 *
 * The disk is a model (support/power-disk states what it covers), built from all writes and syncs
 * of the process. Programs that sync less are run too, and must be seen to lose data.
 *
 * A short run tries a sample of the images; `CONVEYOR_SLOW=1` all of them, and more random ones.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  assertState,
  closedState,
  groupOf,
  openTree,
  openWithCommitLog,
} from './support/commit-log-setup.ts'
import {
  type Cut,
  cutsOf,
  type Fate,
  type Folder,
  fatesOf,
  folderAfter,
  newChance,
  sector_bytes,
} from './support/power-disk.ts'
import { type DiskEvent, traceDisk } from './support/power-trace.ts'
import { buildChild, type Edit } from './support/store-child.ts'
import { quickFolder } from './support/store-folder.ts'
import { canTrace } from './support/store-strace.ts'

const is_slow = process.env.CONVEYOR_SLOW === '1'
const images_max = is_slow ? 20_000 : 180
/** Of the programs that sync enough: the others end with the first image that lost something. */
const good_images_max = is_slow ? 20_000 : 110
const by_chance = is_slow ? 30 : 1
const skip = !canTrace() && 'strace is missing or may not trace here'

/** Small bounds, for frequent preallocation and synchronous writes. */
const small: readonly Edit[] = [
  {
    file: 'store/commit-log/segment.ts',
    from: 'ahead_bytes = 1024 * 1024',
    to: 'ahead_bytes = 8192',
  },
  { file: 'store/commit-log/segment.ts', from: 'took_ms_max: 0.3', to: 'took_ms_max: 1000' },
]
const unsynced_commit_log: Edit = {
  file: 'store/commit-log/segment-file.ts',
  from: 'constants.O_DSYNC :',
  to: 'constants.O_NOATIME :',
}

const unnamed: Edit = {
  file: 'store/commit-log/segments.ts',
  from: 'await syncFolder(path)',
  to: 'void path',
}
const removed_first: Edit = {
  file: 'store/commit-log/tree.ts',
  from: 'const is_finished = can_finish',
  to: `await files?.remove()
    const is_finished = can_finish`,
}
const counted_first: Edit = {
  file: 'store/commit-log/checkpoint.ts',
  from: 'if (slice.length > 0) commitSlice(tree, own, slice)',
  to: 'if (slice.length > 0) commitSlice(tree, own, slice, job.manifest)',
}

let folder: string
before(async () => {
  folder = await quickFolder('conveyor-power-')
})
after(() => rm(folder, { recursive: true, force: true }))

async function run(edits: readonly Edit[]): Promise<DiskEvent[]> {
  const child = await buildChild('power-child.ts', edits)
  try {
    const place = join(child.folder, 'disk')
    mkdirSync(place)
    return await traceDisk([child.script, join(place, 'db')], join(place, 'db'))
  } finally {
    await child.remove()
  }
}

/** Number of groups acknowledged before a cut. */
function ackedBefore(events: readonly DiskEvent[], { line }: Cut): number {
  const said = events.flatMap((event) =>
    event.what === 'said' && event.began <= line ? [Number(event.text.split(' ')[1])] : [],
  )
  return Math.max(0, ...said)
}

function writeImage(image: Folder): string {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const [name, bytes] of image) writeFileSync(join(folder, name), bytes, { mode: 0o600 })
  return join(folder, 'db')
}

/** What is wrong with an image, as a sentence. With `goes_on` it is also written to. */
async function mistakeIn(image: Folder, acked: number, goes_on: boolean): Promise<string> {
  const path = writeImage(image)
  try {
    if (goes_on) {
      const tree = await openWithCommitLog(path)
      const next = Number(tree.get('last') ?? 0) + 1
      await tree.commit(groupOf(next))
      await tree.close()
      assertState(await closedState(path), Math.max(acked + 1, next), acked + 2)
    } else assertState(await closedState(path), acked, acked + 1)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

interface Judged {
  readonly cuts: number
  readonly images: number
  readonly with_loose: number
  readonly mistakes: readonly string[]
}

type FatesOf = (cut: Cut) => Iterable<readonly Fate[]>

async function judge(
  events: readonly DiskEvent[],
  fatesOfCut: FatesOf,
  chance: () => number,
  mistakes_max: number,
  images_max: number,
): Promise<Judged> {
  const cuts = cutsOf(events)
  const all = cuts.flatMap((cut) => [...fatesOfCut(cut)].map((fates) => ({ cut, fates })))
  const step = Math.max(1, all.length / images_max)
  const mistakes: string[] = []
  let [images, with_loose] = [0, 0]
  const sample: typeof all = []
  for (let at = Math.floor(step * chance()); at < all.length; at += step) {
    sample.push(all[Math.floor(at)] as (typeof all)[number])
  }
  // Every eighth first: what is lost at one moment is lost at those beside it.
  const order = [...sample.keys()].sort((one, other) => (one % 8) - (other % 8))
  for (const at of order) {
    const { cut, fates } = sample[at] as (typeof all)[number]
    const acked = ackedBefore(events, cut)
    const image = folderAfter(cut, fates)
    const mistake = await mistakeIn(image, acked, images++ % 4 === 3)
    if (cut.loose.length > 0) with_loose++
    if (mistake === '') continue
    mistakes.push(`line ${cut.line}, ${acked} acknowledged: ${mistake}`)
    if (mistakes.length >= mistakes_max) break
  }
  return { cuts: cuts.length, images, with_loose, mistakes }
}

describe('a power cut', { skip, timeout: 1_200_000 }, () => {
  it('loses nothing that was acknowledged', async (t) => {
    const events = await run(small)
    const seed = Date.now() | 0
    const chance = newChance(seed)
    const { cuts, images, with_loose, mistakes } = await judge(
      events,
      (cut) => fatesOf(cut, by_chance, chance),
      chance,
      5,
      good_images_max,
    )
    assert.deepEqual(mistakes, [], `seed ${seed}`)
    assert.ok(with_loose > images / 4, 'nothing was at risk')
    t.diagnostic(`${events.length} events, ${cuts} cuts, ${images} images, ${with_loose} at risk`)
  })

  // In a short run at every third, by turns before it and behind it.
  it('a file whose first write was torn at any sector is new', async () => {
    await (await openTree(writeImage(new Map()))).close()
    const whole = readFileSync(join(folder, 'db'))
    const sectors = whole.length / sector_bytes
    for (let torn = 0; torn < 2 * sectors; torn += is_slow ? 1 : 3) {
      const image = Buffer.from(whole)
      const place = (torn >> 1) * sector_bytes
      if (torn % 2 === 0) image.fill(0, place)
      else image.fill(0, 0, place)
      assert.equal(await mistakeIn(new Map([['db', image]]), 0, true), '', `${torn}`)
    }
  })

  const unsynced_tree: Edit = {
    file: 'store/lmdb/database.ts',
    from: 'noSubdir: true,',
    to: 'noSubdir: true, noSync: true,',
  }
  const worse: [what: string, edits: readonly Edit[]][] = [
    ['a commit log without its sync', [...small, unsynced_commit_log]],
    ['a database without its sync', [...small, unsynced_tree]],
    ['a commit log whose folder is not synced', [...small, unnamed]],
    ['a commit log that is removed before the manifest says so', [...small, removed_first]],
    ['a manifest ahead of its checkpoint', [...small, counted_first]],
  ]
  for (const [what, edits] of worse) {
    it(`${what} is seen to lose data`, async (t) => {
      // Unsynced writes are lost as a whole: LMDB kills the process for some parts of them.
      const events = await run(edits)
      const allGone = ({ loose }: Cut): Fate[][] => [loose.map(() => 'gone')]
      const { images, mistakes } = await judge(events, allGone, newChance(1), 1, images_max)
      assert.ok(mistakes.length > 0)
      t.diagnostic(`image ${images}; ${mistakes[0]?.slice(0, 200)}`)
    })
  }
})
