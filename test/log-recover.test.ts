/**
 * What an opening makes of a log that was left: everything acknowledged is there and nothing by
 * half, or the files are refused and stay as they are.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ChangeBuffer, changesOf } from '../src/store/change-buffer.ts'
import {
  assertOpens,
  assertRefused,
  assertState,
  breaking,
  changed,
  commits,
  type DiedStep,
  died,
  foldedState,
  groupOf,
  type Image,
  imageOf,
  lastOf,
  layDown,
  openLogged,
  openTree,
  type Place,
  stateAfter,
  stateOf,
  tiny_bounds,
} from './support/log-setup.ts'
import { quickPaths } from './support/store-folder.ts'
import { turns } from './support/store-trees.ts'

const newPath = quickPaths('conveyor-recover-')

describe('a process that died', () => {
  it('at many moments, with merges under way', async (t) => {
    const path = newPath()
    const tree = await openLogged(path, tiny_bounds)
    const groups = process.env.CONVEYOR_SLOW === '1' ? 600 : 150
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
      layDown(image, copy)
      const below = await openTree(copy)
      const merged = stateOf(below)
      if (!isWhole(merged)) in_merge++
      if (lastOf(merged) < from) ahead++
      await below.close()
      assertState(await foldedState(copy), from, to, `image ${place}`)
    }
    // How many images fall into a merge is chance; the rows below have one in the middle of each.
    assert.ok(ahead > 0, 'no image needs its log')
    t.diagnostic(`${seen.length} images, ${in_merge} in a merge, ${ahead} with more in the log`)
  })

  const forms: [what: string, steps: DiedStep[], folded: number][] = [
    ['before its first group', [], 0],
    ['with its first group', commits(1), 0],
    ['before anything was merged', commits(12), 0],
    ['as it turned over', [...commits(6), 'turn'], 0],
    ['before the first merge began', [...commits(6), 'turn', ...commits(3)], 0],
    ['in the first merge', [...commits(6), 'turn', ...commits(3), 'slices'], 0],
    ['behind the first merge', [...commits(6), 'turn', ...commits(3), 'merge'], 0],
    ['behind it, with nothing since', [...commits(6), 'turn', 'merge'], 0],
    [
      'in the second segment of a second round',
      [...commits(6), 'turn', 'merge', ...commits(2), 'turn', ...commits(3), 'slices'],
      0,
    ],
    [
      'over longer old frames',
      [...commits(20), 'turn', 'merge', 'commit', 'turn', 'merge', 'commit'],
      0,
    ],
    ['in a later log, before its first group', [], 7],
    ['in a later log', [...commits(3), 'turn', 'commit', 'slices'], 7],
  ]
  for (const [what, steps, folded] of forms) {
    it(what, async () => {
      const { image, groups } = await died(newPath(), steps, { folded })
      await assertOpens(newPath(), image, groups, what)
      const path = newPath()
      layDown(image, path)
      const tree = await openLogged(path)
      assertState(stateOf(tree), groups)
      await tree.commit(groupOf(groups + 1))
      assertState(stateOf(tree), groups + 1)
      await tree.close()
      assertState(await foldedState(path), groups + 1, groups + 1, 'goes on')
    })
  }
})

const isWhole = (state: ReadonlyMap<string, string>): boolean => {
  const whole = stateAfter(lastOf(state))
  return whole.size === state.size && [...whole].every(([key, value]) => state.get(key) === value)
}

/** All of them, or in a short run every third. */
function* some<T>(all: Iterable<T>): Generator<T> {
  let at = 0
  for (const one of all) if (at++ % 3 === 0 || process.env.CONVEYOR_SLOW === '1') yield one
}

/** Each way in which a frame is not what it was. */
function* damages({ at, bytes }: Place): Generator<[what: string, (file: Buffer) => Buffer]> {
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
  const forms: [what: string, steps: DiedStep[]][] = [
    ['in the first segment', commits(8)],
    ['in the second', [...commits(5), 'turn', ...commits(3), 'slices']],
    [
      'over old frames that were longer',
      [...commits(20), 'turn', ...commits(3), 'merge', 'turn', 'merge', ...commits(2)],
    ],
    ['at the beginning of a segment', [...commits(5), 'turn', 'merge', 'commit']],
  ]
  for (const [what, steps] of forms) {
    it(what, async (t) => {
      const { image, places, groups } = await died(newPath(), steps)
      const place = places.get(groups) as Place
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

describe('a broken middle', () => {
  const forms: [what: string, steps: DiedStep[]][] = [
    ['in one segment', commits(6)],
    ['in two', [...commits(4), 'turn', ...commits(3)]],
    ['in two, half merged', [...commits(4), 'turn', ...commits(3), 'slices']],
    ['behind a merge', [...commits(4), 'turn', ...commits(3), 'merge']],
  ]
  for (const [what, steps] of forms) {
    it(what, async (t) => {
      const bed = await died(newPath(), steps)
      const merged = steps.includes('merge') ? steps.indexOf('turn') : 0
      let images = 0
      for (const [group, place] of bed.places) {
        let at = 0
        for (const [how, damage] of damages(place)) {
          // Every way is tried on some group, and every group in some way.
          if (at++ % 5 !== group % 5 || group === bed.groups) continue
          const broken = changed(bed.image, place.end, damage)
          const row = `group ${group}, ${how}`
          if (group > merged) await assertRefused(newPath(), broken, 'not_a_database', row)
          else await assertOpens(newPath(), broken, bed.groups, row)
          images++
        }
      }
      t.diagnostic(`${images} images`)
    })
  }
})

describe('folding in what was left, broken off', () => {
  const steps: DiedStep[] = [...commits(9), 'turn', ...commits(4), 'slices']
  /** All here and not in a thread, in small commits. */
  const here = { slice: { changes_max: 3, bytes_max: Number.MAX_SAFE_INTEGER } }
  const large = { slice: { ...here.slice, changes_max: 1_024 } }
  /** The n-th commit of opening and closing fails, if there are so many. */
  const breakOff = async (path: string, n: number, writes_all: boolean, bounds = here) => {
    let is_broken = false
    const tree = await openLogged(path, bounds, (below) => breaking(below, n, writes_all)).catch(
      () => undefined,
    )
    tree?.onBroken?.(() => {
      is_broken = true
    })
    await tree?.close().catch(() => {
      is_broken = true
    })
    return tree !== undefined && !is_broken
  }

  it('at each commit, and done again, ends the same', async (t) => {
    const { image, groups } = await died(newPath(), steps)
    let n = 1
    for (let is_done = false; !is_done; n++) {
      for (const writes_all of [false, true]) {
        const path = newPath()
        layDown(image, path)
        is_done = await breakOff(path, n, writes_all)
        assertState(await foldedState(path), groups, groups, `broken off at ${n}`)
      }
    }
    assert.ok(n > 6, 'nothing was broken off')
    t.diagnostic(`${n - 1} commits, each cut before and behind`)
  })

  it('in the middle of a large one, and done again, ends the same', async (t) => {
    const path = newPath()
    const tree = await openLogged(path)
    for (let group = 0; group < 4; group++) await tree.commit(largeGroup(group))
    const image = imageOf(path)
    await tree.close()
    let cuts = 0
    for (let n = 1; ; n++) {
      layDown(image, path)
      const is_done = await breakOff(path, n, false, large)
      const again = await openLogged(path)
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
