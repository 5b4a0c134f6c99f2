/**
 * A commit log that does not belong to its data file is refused. What an interrupted open or close
 * left is cleared away. Neither a closed file nor a backup has a commit log.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { framesIn } from '../src/store/commit-log/frame.ts'
import { readLogMark } from '../src/store/commit-log/log-mark.ts'
import { segmentPaths } from '../src/store/commit-log/recovery.ts'
import {
  assertOpens,
  assertRefused,
  assertState,
  type CrashedFile,
  type CrashStep,
  changed,
  closedState,
  commits,
  crashed,
  groupOf,
  type Image,
  imageOf,
  lastOf,
  openTree,
  openWithCommitLog,
  putInto,
  stateAlone,
  stateOf,
  tiny_bounds,
  writeImage,
} from './support/commit-log-setup.ts'
import { quickPaths } from './support/store-folder.ts'
import { turns } from './support/store-trees.ts'

const newPath = quickPaths('conveyor-foreign-')

describe('a commit log that does not belong to its data file', () => {
  const none = (): undefined => undefined
  const empty = (): Buffer => Buffer.alloc(0)
  /** The commit log of one, the data file of another. */
  const mixed = (commit_log: CrashedFile, tree: CrashedFile): Image => {
    const data = tree.image.get('') as Buffer
    return changed(commit_log.image, '', () => data)
  }
  const plainFile = async (groups: number, manifest_seq?: number): Promise<Image> => {
    const path = newPath()
    if (manifest_seq !== undefined) await crashed(path, [], { merged_groups: manifest_seq })
    if (manifest_seq !== undefined) await closedState(path)
    const tree = await openTree(path)
    for (let n = 1; n <= groups; n++) putInto(tree, groupOf(n))
    await tree.close()
    return imageOf(path)
  }
  const others = Buffer.alloc(8, 9)
  const round: CrashStep[] = [...commits(3), 'rotate', 'checkpoint']
  const rows: [what: string, make: () => Promise<Image>][] = [
    [
      'of another file',
      async () =>
        mixed(await crashed(newPath(), commits(3), { id: others }), await crashedAfter(commits(3))),
    ],
    [
      'of another file, beside one that was closed',
      async () =>
        new Map([
          ...(await crashed(newPath(), commits(3), { id: others })).image,
          ...(await plainFile(0, 5)),
        ]),
    ],
    [
      'of another file, beside one that never had a commit log',
      async () => new Map([...(await crashedAfter(commits(3))).image, ...(await plainFile(2))]),
    ],
    [
      'of an older state of the file',
      async () => mixed(await crashedAfter(commits(3)), await crashedAfter([...round, ...round])),
    ],
    [
      'newer than the file',
      async () =>
        mixed(await crashedAfter([...round, ...round, 'commit']), await crashedAfter(commits(1))),
    ],
    [
      'newer than the file, which was closed',
      async () =>
        mixed(await crashed(newPath(), commits(3), { merged_groups: 9 }), await closedFile(4)),
    ],
    [
      'without its first segment',
      async () => changed((await crashedAfter(commits(3))).image, '-log-0', none),
    ],
    [
      'without its second segment',
      async () => changed((await crashedAfter(commits(3))).image, '-log-1', none),
    ],
    [
      'without any',
      async () =>
        changed(changed((await crashedAfter(commits(3))).image, '-log-0', none), '-log-1', none),
    ],
    [
      'with nothing in it',
      async () =>
        changed(changed((await crashedAfter(commits(3))).image, '-log-0', empty), '-log-1', empty),
    ],
    [
      'with nothing in it, after a checkpoint',
      async () =>
        changed(changed((await crashedAfter(round)).image, '-log-0', empty), '-log-1', empty),
    ],
    [
      'with zeros in it',
      async () => changed((await crashedAfter(commits(3))).image, '-log-0', (file) => file.fill(0)),
    ],
  ]
  const crashedAfter = (steps: readonly CrashStep[]) => crashed(newPath(), steps)
  const closedFile = async (merged_groups: number): Promise<CrashedFile> => {
    const path = newPath()
    const harness = await crashed(path, [], { merged_groups })
    await closedState(path)
    return { ...harness, image: imageOf(path) }
  }
  for (const [what, make] of rows) {
    it(what, async () => assertRefused(newPath(), await make(), 'not_possible', what))
  }
})

describe('what an interrupted open or close left', () => {
  const rows: [
    what: string,
    merged_groups: number,
    leave: (image: Image, closed: Image) => Image,
  ][] = [
    ['files without a frame', 0, (_, closed) => empties(closed)],
    ['files without a frame, of a later commit log', 4, (_, closed) => empties(closed)],
    ['one file', 4, (image, closed) => withFiles(closed, image, '-log-0')],
    ['the other file', 4, (image, closed) => withFiles(closed, image, '-log-1')],
    ['the first frame', 0, (image, closed) => withFiles(closed, image, '-log-0', '-log-1')],
    [
      'the same of a later commit log',
      4,
      (image, closed) => withFiles(closed, image, '-log-0', '-log-1'),
    ],
  ]
  const withFiles = (closed: Image, image: Image, ...ends: string[]): Image =>
    new Map([...closed, ...ends.map((end) => [end, image.get(end) as Buffer] as const)])
  const empties = (closed: Image): Image =>
    new Map([...closed, ['-log-0', Buffer.alloc(0)], ['-log-1', Buffer.alloc(4096)]])
  for (const [what, merged_groups, leave] of rows) {
    it(`open: ${what}`, async () => {
      const path = newPath()
      const { image } = await crashed(path, [], { merged_groups })
      // The data file before the manifest required a commit log.
      const closed = imageOfTree(await closedImage(path, merged_groups))
      await assertOpens(newPath(), leave(image, closed), merged_groups, what)
    })
  }

  for (const ends of [['-log-0', '-log-1'], ['-log-0'], ['-log-1']]) {
    it(`close: ${ends.join(' and ')}`, async () => {
      for (const steps of [
        commits(4),
        [...commits(4), 'rotate', ...commits(2), 'checkpoint'] as const,
      ]) {
        const path = newPath()
        const { image, groups } = await crashed(path, steps)
        assertState(await closedState(path), groups)
        const left = withFiles(imageOf(path), image, ...ends)
        await assertOpens(newPath(), left, groups, 'once')
        writeImage(left, path)
        const tree = await openWithCommitLog(path)
        assertState(stateOf(tree), groups)
        await tree.close()
      }
    })
  }

  const imageOfTree = (image: Image): Image => new Map([['', image.get('') as Buffer]])
  /** With a manifest only if there was a commit log before. */
  const closedImage = async (path: string, merged_groups: number): Promise<Image> => {
    if (merged_groups > 0) {
      await closedState(path)
      return imageOf(path)
    }
    const fresh = newPath()
    await (await openTree(fresh)).close()
    return imageOf(fresh)
  }
})

describe('close', () => {
  it('leaves the data file and its lock file', async () => {
    const alone = newPath()
    await mkdir(alone)
    const path = join(alone, 'tasks.lmdb')
    for (const bounds of [{}, tiny_bounds]) {
      const tree = await openWithCommitLog(path, bounds)
      for (const segment of segmentPaths(path)) assert.ok(existsSync(segment))
      const from = lastOf(stateOf(tree))
      for (let n = from + 1; n <= from + 40; n++) await tree.commit(groupOf(n))
      await tree.close()
      assert.deepEqual((await readdir(alone)).sort(), ['tasks.lmdb', 'tasks.lmdb-lock'])
      assertState(await stateAlone(path), from + 40)
    }
  })
})

describe('a backup during commits', () => {
  for (const copies of [1, 2, 3]) {
    it(`keeps the last frame until there is another, after ${copies} copies`, async () => {
      const path = newPath()
      const tree = await openWithCommitLog(path, tiny_bounds)
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

  it('holds every group that was acknowledged before, none in part, and says that it is a copy', async () => {
    const path = newPath()
    const tree = await openWithCommitLog(path, tiny_bounds)
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
      assert.deepEqual(await readLogMark(target), { state: 'copy' })
      const state = stateOf(below)
      await below.close()
      assertState(state, from, to)
      assertState(await closedState(target), lastOf(state))
      const copied = await openWithCommitLog(target)
      await copied.commit(groupOf(lastOf(state) + 1))
      await copied.close()
      assertState(await closedState(target), lastOf(state) + 1)
    }
    assert.ok((copies.at(-1)?.from ?? 0) > 0)
  })
})
