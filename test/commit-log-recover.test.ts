/**
 * Recovery of the commit log that a process left: every acknowledged group is there and none in
 * part, or the files are refused and stay unchanged.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ChangeBuffer, changesOf } from '../src/store/changes/change-buffer.ts'
import {
  assertOpens,
  assertRefused,
  assertState,
  type CrashStep,
  changed,
  closedState,
  commits,
  crashed,
  type FramePosition,
  failingAt,
  groupOf,
  type Image,
  imageOf,
  lastOf,
  openTree,
  openWithCommitLog,
  stateAfter,
  stateOf,
  tiny_bounds,
  writeImage,
} from './support/commit-log-setup.ts'
import { quickPaths } from './support/store-folder.ts'
import { turns } from './support/store-trees.ts'

const sector_bytes = 512
const is_slow = process.env.CONVEYOR_SLOW === '1'
const newPath = quickPaths('conveyor-recover-')

describe('a process that crashed', () => {
  it('at many moments, with checkpoints running', async (t) => {
    const path = newPath()
    const tree = await openWithCommitLog(path, tiny_bounds)
    const groups = is_slow ? 600 : 90
    let acked = 0
    const seen: { image: Image; from: number; to: number }[] = []
    for (let n = 1; n <= groups; n++) {
      const done = tree.commit(groupOf(n)).then(() => {
        acked = n
      })
      await turns(n % 5)
      if (n % 3 === 0) {
        const from = acked
        seen.push({ image: imageOf(path), from, to: n })
      }
      await done
    }
    await tree.close()
    let [in_merge, ahead] = [0, 0]
    for (const [place, { image, from, to }] of seen.entries()) {
      const copy = newPath()
      writeImage(image, copy)
      const below = await openTree(copy)
      const merged = stateOf(below)
      if (!isWhole(merged)) in_merge++
      if (lastOf(merged) < from) ahead++
      await below.close()
      assertState(await closedState(copy), from, to, `image ${place}`)
    }
    // How many images fall into a merge is chance; the rows below have one in the middle of each.
    assert.ok(ahead > 0, 'no image needs its commit log')
    t.diagnostic(
      `${seen.length} images, ${in_merge} in a checkpoint, ${ahead} with more in the commit log`,
    )
  })

  const forms: [what: string, steps: CrashStep[], merged_groups: number][] = [
    ['before its first group', [], 0],
    ['with its first group', commits(1), 0],
    ['before the first checkpoint', commits(12), 0],
    ['as it rotated', [...commits(6), 'rotate'], 0],
    ['before the first checkpoint began', [...commits(6), 'rotate', ...commits(3)], 0],
    [
      'in the first checkpoint',
      [...commits(6), 'rotate', ...commits(3), 'part of a checkpoint'],
      0,
    ],
    ['after the first checkpoint', [...commits(6), 'rotate', ...commits(3), 'checkpoint'], 0],
    ['after it, with nothing since', [...commits(6), 'rotate', 'checkpoint'], 0],
    [
      'in the second segment of a second round',
      [
        ...commits(6),
        'rotate',
        'checkpoint',
        ...commits(2),
        'rotate',
        ...commits(3),
        'part of a checkpoint',
      ],
      0,
    ],
    [
      'over longer frames of an earlier round',
      [...commits(20), 'rotate', 'checkpoint', 'commit', 'rotate', 'checkpoint', 'commit'],
      0,
    ],
    ['in a later commit log, before its first group', [], 7],
    ['in a later commit log', [...commits(3), 'rotate', 'commit', 'part of a checkpoint'], 7],
  ]
  for (const [what, steps, merged_groups] of forms) {
    it(what, async () => {
      const { image, groups } = await crashed(newPath(), steps, { merged_groups })
      await assertOpens(newPath(), image, groups, what)
      const path = newPath()
      writeImage(image, path)
      const tree = await openWithCommitLog(path)
      assertState(stateOf(tree), groups)
      await tree.commit(groupOf(groups + 1))
      assertState(stateOf(tree), groups + 1)
      await tree.close()
      assertState(await closedState(path), groups + 1, groups + 1, 'goes on')
    })
  }
})

const isWhole = (state: ReadonlyMap<string, string>): boolean => {
  const whole = stateAfter(lastOf(state))
  return whole.size === state.size && [...whole].every(([key, value]) => state.get(key) === value)
}

/** All of them, or in a short run every fifth. */
function* some<T>(all: Iterable<T>): Generator<T> {
  let at = 0
  for (const one of all) if (at++ % 5 === 0 || is_slow) yield one
}

/** Each way in which a frame is not what it was. */
function* damages({
  at,
  bytes,
}: FramePosition): Generator<[what: string, (file: Buffer) => Buffer]> {
  for (let cut = at; cut < at + bytes; cut += 64) {
    yield [`zeros from ${cut}`, (file) => file.fill(0, cut, at + bytes)]
    yield [`other bytes from ${cut}`, (file) => file.fill('other', cut, at + bytes)]
    yield [`zeros up to ${cut + 64}`, (file) => file.fill(0, at, cut + 64)]
    yield [`64 bytes of zeros less one at ${cut}`, (file) => file.fill(0xa5, cut, cut + 63)]
  }
  for (let bit = 0; bit < 8 * 40; bit += 7) yield flip(at, bit)
  for (let part = 0; part < 64; part++) yield flip(at, Math.floor((part * 8 * bytes) / 64) + 3)
}

function flip(at: number, bit: number): [string, (file: Buffer) => Buffer] {
  return [
    `bit ${bit} turned`,
    (file) => {
      const place = at + (bit >> 3)
      file.writeUInt8(file.readUInt8(place) ^ (1 << (bit & 7)), place)
      return file
    },
  ]
}

describe('a torn tail', () => {
  const forms: [what: string, steps: CrashStep[]][] = [
    ['in the first segment', commits(8)],
    ['in the second', [...commits(5), 'rotate', ...commits(3), 'part of a checkpoint']],
    [
      'over longer frames of an earlier round',
      [
        ...commits(20),
        'rotate',
        ...commits(3),
        'checkpoint',
        'rotate',
        'checkpoint',
        ...commits(2),
      ],
    ],
    ['at the beginning of a segment', [...commits(5), 'rotate', 'checkpoint', 'commit']],
  ]
  for (const [what, steps] of forms) {
    it(what, async (t) => {
      const { image, places, groups } = await crashed(newPath(), steps)
      const place = places.get(groups) as FramePosition
      let images = 0
      for (const [how, damage] of some(damages(place))) {
        await assertOpens(newPath(), changed(image, place.end, damage), groups - 1, how)
        images++
      }
      for (let end = place.at; end < place.at + place.bytes; end += 64) {
        const shorter = changed(image, place.end, (file) => file.subarray(0, end + 33))
        await assertRefused(newPath(), shorter, 'not_a_database', `cut at ${end + 33}`)
        images++
      }
      t.diagnostic(`${images} images`)
    })
  }
})

describe('a torn first write behind a start that had nothing to merge', () => {
  const round: CrashStep[] = [...commits(3), 'rotate', 'checkpoint']
  const forms: [what: string, steps: CrashStep[]][] = [
    ['with the last frame in the first segment', round],
    ['with the last frame in the second', [...round, ...round]],
    ['with the last frame in the first again', [...round, ...round, ...round]],
  ]
  for (const [what, steps] of forms) {
    it(what, async () => {
      const { image, groups } = await crashed(newPath(), steps)
      const path = newPath()
      writeImage(image, path)
      const tree = await openWithCommitLog(path)
      // Deletes of what is not there make it longer than a sector.
      const deletes = Array.from({ length: 8 }, (_, n) => [`${n}`.padEnd(400), null] as const)
      await tree.commit(changesOf(new Map([...groupOf(groups + 1), ...deletes])))
      const written = imageOf(path)
      await tree.close()
      let torn = 0
      for (const end of ['-log-0', '-log-1']) {
        const now = written.get(end) as Buffer
        for (let at = 0; at < 8 * sector_bytes; at += sector_bytes) {
          const sector = now.subarray(at, at + sector_bytes)
          if (sector.equals(image.get(end)?.subarray(at, at + sector_bytes) as Buffer)) continue
          const cut = changed(image, end, (file) => file.fill(sector, at, at + sector_bytes))
          await assertOpens(newPath(), cut, groups, `${end} has new bytes at ${at} alone`)
          torn++
        }
      }
      assert.ok(torn > 1, 'the write is of one sector')
    })
  }
})

describe('a broken middle', () => {
  const forms: [what: string, steps: CrashStep[]][] = [
    ['in one segment', commits(6)],
    ['in two', [...commits(4), 'rotate', ...commits(3)]],
    ['in two, in a checkpoint', [...commits(4), 'rotate', ...commits(3), 'part of a checkpoint']],
    ['after a checkpoint', [...commits(4), 'rotate', ...commits(3), 'checkpoint']],
  ]
  for (const [what, steps] of forms) {
    it(what, async (t) => {
      const harness = await crashed(newPath(), steps)
      const merged = steps.includes('checkpoint') ? steps.indexOf('rotate') : 0
      const stride = is_slow ? 5 : 9
      let images = 0
      for (const [group, place] of harness.places) {
        let at = 0
        for (const [how, damage] of damages(place)) {
          // Every way (in a short run most) is tried on some group, and every group in some way.
          if (at++ % stride !== group % stride || group === harness.groups) continue
          const broken = changed(harness.image, place.end, damage)
          const row = `group ${group}, ${how}`
          if (group > merged) await assertRefused(newPath(), broken, 'not_a_database', row)
          else await assertOpens(newPath(), broken, harness.groups, row)
          images++
        }
      }
      t.diagnostic(`${images} images`)
    })
  }
})

describe('a recovery whose checkpoint fails', () => {
  const steps: CrashStep[] = [...commits(9), 'rotate', ...commits(4), 'part of a checkpoint']
  /** Everything in this process, in small commits. */
  const here = { slice: { changes_max: 3, bytes_max: Number.MAX_SAFE_INTEGER } }
  // More than a close leaves behind the pages.
  const large = { slice: { changes_max: 1_024, bytes_max: 20_000 } }
  /** Opens and closes; the n-th commit of LMDB fails. True if there were fewer. */
  const openWithFailure = async (path: string, n: number, writes_all: boolean, bounds = here) => {
    let is_broken = false
    const tree = await openWithCommitLog(path, bounds, {
      over: (below) => failingAt(below, n, writes_all),
    }).catch(() => undefined)
    tree?.onBroken?.(() => {
      is_broken = true
    })
    await tree?.close().catch(() => {
      is_broken = true
    })
    return tree !== undefined && !is_broken
  }

  it('at each commit: the next one ends the same', async (t) => {
    const { image, groups } = await crashed(newPath(), steps)
    let n = 1
    for (let is_done = false; !is_done; n++) {
      for (const writes_all of [false, true]) {
        const path = newPath()
        writeImage(image, path)
        is_done = await openWithFailure(path, n, writes_all)
        assertState(await closedState(path), groups, groups, `failed at ${n}`)
      }
    }
    assert.ok(n > 6, 'no commit failed')
    t.diagnostic(`${n - 1} commits, each cut before and behind`)
  })

  it('in the middle of a large one: the next one ends the same', async (t) => {
    const path = newPath()
    const tree = await openWithCommitLog(path)
    for (let group = 0; group < 4; group++) await tree.commit(largeGroup(group))
    const image = imageOf(path)
    await tree.close()
    let cuts = 0
    for (let n = 1; ; n++) {
      writeImage(image, path)
      const is_done = await openWithFailure(path, n, false, large)
      const again = await openWithCommitLog(path)
      assert.equal([...again.range('key', 'kez', false)].length, 4 * large_keys)
      await again.close()
      if (is_done) break
      cuts++
    }
    assert.ok(cuts > 3, `it had ${cuts} commits alone`)
    t.diagnostic(`${cuts} commits`)
  })

  const large_keys = 3_000
  const largeGroup = (group: number): ChangeBuffer =>
    changesOf(
      Array.from({ length: large_keys }, (_, n) => [`key ${n} ${group}`, Buffer.alloc(10, group)]),
    )
})
