/**
 * A log that is not the one of its file is refused, one that an opening or a closing left is cleared
 * away, and neither a closed file nor a copy has any.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { framesIn } from '../src/store/log/frame.ts'
import { manifest_key } from '../src/store/log/manifest.ts'
import { segmentPaths } from '../src/store/log/recovery.ts'
import {
  assertOpens,
  assertRefused,
  assertState,
  changed,
  commits,
  type DiedBed,
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
  putInto,
  stateOf,
  tiny_bounds,
} from './support/log-setup.ts'
import { quickPaths } from './support/store-folder.ts'
import { turns } from './support/store-trees.ts'

const newPath = quickPaths('conveyor-stranger-')

describe('a log that is not the one of its file', () => {
  const none = (): undefined => undefined
  const empty = (): Buffer => Buffer.alloc(0)
  /** The log of one, the data file of another. */
  const mixed = (log: DiedBed, tree: DiedBed): Image => {
    const data = tree.image.get('') as Buffer
    return changed(log.image, '', () => data)
  }
  const plainFile = async (groups: number, head_seq?: number): Promise<Image> => {
    const path = newPath()
    if (head_seq !== undefined) await died(path, [], { folded: head_seq })
    if (head_seq !== undefined) await foldedState(path)
    const tree = await openTree(path)
    for (let n = 1; n <= groups; n++) putInto(tree, groupOf(n))
    await tree.close()
    return imageOf(path)
  }
  const others = Buffer.alloc(8, 9)
  const round: DiedStep[] = [...commits(3), 'turn', 'merge']
  const rows: [what: string, make: () => Promise<Image>][] = [
    [
      'of another file',
      async () => mixed(await died(newPath(), commits(3), { id: others }), await bedOf(commits(3))),
    ],
    [
      'of another file, beside one that was closed',
      async () =>
        new Map([
          ...(await died(newPath(), commits(3), { id: others })).image,
          ...(await plainFile(0, 5)),
        ]),
    ],
    [
      'of another file, beside one that never had any',
      async () => new Map([...(await bedOf(commits(3))).image, ...(await plainFile(2))]),
    ],
    [
      'of an older state of the file',
      async () => mixed(await bedOf(commits(3)), await bedOf([...round, ...round])),
    ],
    [
      'newer than the file',
      async () => mixed(await bedOf([...round, ...round, 'commit']), await bedOf(commits(1))),
    ],
    [
      'newer than the file, which was closed',
      async () => mixed(await died(newPath(), commits(3), { folded: 9 }), await closedBed(4)),
    ],
    [
      'without its first segment',
      async () => changed((await bedOf(commits(3))).image, '-log-0', none),
    ],
    [
      'without its second segment',
      async () => changed((await bedOf(commits(3))).image, '-log-1', none),
    ],
    [
      'without any',
      async () => changed(changed((await bedOf(commits(3))).image, '-log-0', none), '-log-1', none),
    ],
    [
      'with nothing in it',
      async () =>
        changed(changed((await bedOf(commits(3))).image, '-log-0', empty), '-log-1', empty),
    ],
    [
      'with nothing in it, behind a merge',
      async () => changed(changed((await bedOf(round)).image, '-log-0', empty), '-log-1', empty),
    ],
    [
      'with zeros in it',
      async () => changed((await bedOf(commits(3))).image, '-log-0', (file) => file.fill(0)),
    ],
  ]
  const bedOf = (steps: readonly DiedStep[]) => died(newPath(), steps)
  const closedBed = async (folded: number): Promise<DiedBed> => {
    const path = newPath()
    const bed = await died(path, [], { folded })
    await foldedState(path)
    return { ...bed, image: imageOf(path) }
  }
  for (const [what, make] of rows) {
    it(what, async () => assertRefused(newPath(), await make(), 'not_possible', what))
  }
})

describe('what an opening or a closing left that was cut short', () => {
  const rows: [what: string, folded: number, leave: (image: Image, closed: Image) => Image][] = [
    ['files without a frame', 0, (_, closed) => empties(closed)],
    ['files without a frame, of a later log', 4, (_, closed) => empties(closed)],
    ['one file', 4, (image, closed) => withFiles(closed, image, '-log-0')],
    ['the other file', 4, (image, closed) => withFiles(closed, image, '-log-1')],
    ['the opening frame', 0, (image, closed) => withFiles(closed, image, '-log-0', '-log-1')],
    ['the same of a later log', 4, (image, closed) => withFiles(closed, image, '-log-0', '-log-1')],
  ]
  const withFiles = (closed: Image, image: Image, ...ends: string[]): Image =>
    new Map([...closed, ...ends.map((end) => [end, image.get(end) as Buffer] as const)])
  const empties = (closed: Image): Image =>
    new Map([...closed, ['-log-0', Buffer.alloc(0)], ['-log-1', Buffer.alloc(4096)]])
  for (const [what, folded, leave] of rows) {
    it(`opening: ${what}`, async () => {
      const path = newPath()
      const { image } = await died(path, [], { folded })
      // What the data file was before the head told of a log.
      const closed = imageOfTree(await closedImage(path, folded))
      await assertOpens(newPath(), leave(image, closed), folded, what)
    })
  }

  for (const ends of [['-log-0', '-log-1'], ['-log-0'], ['-log-1']]) {
    it(`closing: ${ends.join(' and ')}`, async () => {
      for (const steps of [commits(4), [...commits(4), 'turn', ...commits(2), 'merge'] as const]) {
        const path = newPath()
        const { image, groups } = await died(path, steps)
        assertState(await foldedState(path), groups)
        const left = withFiles(imageOf(path), image, ...ends)
        await assertOpens(newPath(), left, groups, 'once')
        layDown(left, path)
        const tree = await openLogged(path)
        assertState(stateOf(tree), groups)
        await tree.close()
      }
    })
  }

  const imageOfTree = (image: Image): Image => new Map([['', image.get('') as Buffer]])
  /** A head only where there was a log before. */
  const closedImage = async (path: string, folded: number): Promise<Image> => {
    if (folded > 0) {
      await foldedState(path)
      return imageOf(path)
    }
    const fresh = newPath()
    await (await openTree(fresh)).close()
    return imageOf(fresh)
  }
})

describe('closing', () => {
  it('leaves one file and its lock', async () => {
    const alone = newPath()
    await mkdir(alone)
    const path = join(alone, 'tasks.lmdb')
    for (const bounds of [{}, tiny_bounds]) {
      const tree = await openLogged(path, bounds)
      for (const segment of segmentPaths(path)) assert.ok(existsSync(segment))
      const from = lastOf(stateOf(tree))
      for (let n = from + 1; n <= from + 40; n++) await tree.commit(groupOf(n))
      await tree.close()
      assert.deepEqual((await readdir(alone)).sort(), ['tasks.lmdb', 'tasks.lmdb-lock'])
      const below = await openTree(path)
      assertState(stateOf(below), from + 40)
      await below.close()
    }
  })
})

describe('a copy made meanwhile', () => {
  for (const copies of [1, 2, 3]) {
    it(`lets the last frame stand until there is another, made ${copies} times`, async () => {
      const path = newPath()
      const tree = await openLogged(path, tiny_bounds)
      await tree.commit(groupOf(1))
      const segments = () => segmentPaths(path).map((segment) => readFileSync(segment))
      const lastOf = (segment: Buffer) => Math.max(...[...framesIn(segment)].map(({ seq }) => seq))
      const last = Math.max(...segments().map(lastOf))
      for (let made = 0; made < copies; made++) await tree.backup(newPath())
      const before = segments()
      await tree.commit(groupOf(2))
      const stands = segments().filter((segment, at) => segment.equals(before[at] as Buffer))
      assert.deepEqual(stands.map(lastOf), [last])
      await tree.close()
    })
  }

  it('holds all that was acknowledged before, whole groups alone, and knows of no log', async () => {
    const path = newPath()
    const tree = await openLogged(path, tiny_bounds)
    let acked = 0
    let is_on = true
    const writing = (async () => {
      for (let n = 1; is_on; n++) {
        await tree.commit(groupOf(n))
        acked = n
      }
    })()
    const copies: { target: string; from: number; to: number }[] = []
    for (let at = 0; at < 8; at++) {
      await turns(20)
      const target = newPath()
      const from = acked
      await tree.backup(target)
      copies.push({ target, from, to: acked + 1 })
    }
    is_on = false
    await writing
    await tree.close()
    for (const { target, from, to } of copies) {
      const below = await openTree(target)
      assert.equal(below.get(manifest_key), undefined)
      const state = stateOf(below)
      await below.close()
      assertState(state, from, to)
      assertState(await foldedState(target), lastOf(state))
      const logged = await openLogged(target)
      await logged.commit(groupOf(lastOf(state) + 1))
      await logged.close()
      assertState(await foldedState(target), lastOf(state) + 1)
    }
    assert.ok((copies.at(-1)?.from ?? 0) > 0)
  })
})
