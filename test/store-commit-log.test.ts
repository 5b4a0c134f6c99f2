/**
 * The tree with a commit log passes the suite of every tree, also with a checkpoint at all times.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import type { CommitLogBounds } from '../src/store/commit-log/bounds.ts'
import { copy_mark } from '../src/store/commit-log/log-mark.ts'
import { decodeManifest, manifest_key } from '../src/store/commit-log/manifest.ts'
import { openCommitLogTree } from '../src/store/commit-log/open.ts'
import { segmentPaths } from '../src/store/commit-log/recovery.ts'
import type { Tree } from '../src/store/tree.ts'
import { assertState, groupOf, stateOf } from './support/commit-log-setup.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { quickFolder } from './support/store-folder.ts'
import { storeSuite, type TreeHarness } from './support/store-suite.ts'
import { turns } from './support/store-trees.ts'

let folder: string
let quick: string
let count = 0
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'conveyor-commit-log-'))
  quick = await quickFolder('conveyor-commit-log-')
})
after(async () => {
  for (const one of [folder, quick]) await rm(one, { recursive: true, force: true })
})

const id = Buffer.alloc(8, 7)

function harnessWith(
  bounds: Partial<CommitLogBounds>,
  folder: () => string,
): () => Promise<TreeHarness> {
  return async () => {
    const path = join(folder(), `${count++}.conveyor`)
    const opened: Tree[] = []
    return {
      lasts: true,
      open: async () => {
        const below = await openInProcess(path, { backup_mark: copy_mark })
        const tree = await openCommitLogTree(below, path, { id, bounds })
        opened.push(tree)
        return tree
      },
      remove: async () => {
        for (const tree of opened) await tree.close()
        for (const end of [path, `${path}-lock`, ...segmentPaths(path)])
          await rm(end, { force: true })
      },
    }
  }
}

const tiny: CommitLogBounds = {
  checkpoint_bytes: 1,
  bytes_max: 20_000,
  slice: { changes_max: 3, bytes_max: 1_000 },
}
const is_slow = process.env.CONVEYOR_SLOW === '1'
// On a real disk, which may take direct writes.
storeSuite(
  'commit log',
  harnessWith({}, () => folder),
  is_slow ? 100 : 25,
)
storeSuite(
  'commit log with a checkpoint at all times',
  harnessWith(tiny, () => quick),
  is_slow ? 100 : 12,
)

it('changes committed during a checkpoint get one of their own, without a further commit', async () => {
  const path = join(folder, 'behind.conveyor')
  const below = await openInProcess(path, { backup_mark: copy_mark })
  const tree = await openCommitLogTree(below, path, { id, bounds: tiny })
  for (let n = 1; n <= 5; n++) await tree.commit(groupOf(n))
  // One for each group, behind the first frame of the commit log.
  const last_seq = 6
  while (decodeManifest(below.get(manifest_key) as Buffer).seq < last_seq) {
    await turns()
    below.refresh()
  }
  assertState(stateOf(below), 5)
  await tree.close()
})
