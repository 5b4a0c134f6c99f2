/**
 * Commits a few times and says so each time: `store-sync-child PATH COMMITS [log|in_place|OPTIONS]`. OPTIONS,
 * as JSON, are laid over ours, to show what a database opened in a worse way does. With a log it is
 * merged in between.
 */
import { writeSync } from 'node:fs'
import { open } from 'lmdb'
import { storeOf } from '../../src/store/group.ts'
import { lmdbOptions } from '../../src/store/lmdb-options.ts'
import { openLmdbTree, treeOver } from '../../src/store/lmdb-tree.ts'
import type { Tree } from '../../src/store/store.ts'
import { openLogged } from './log-bed.ts'

const [path = '', commits = '1', worse] = process.argv.slice(2)
const bounds = { merge_bytes: 1, bytes_max: 50_000, slice: { changes_max: 30, bytes_max: 20_000 } }

async function openAs(): Promise<Tree> {
  if (worse === undefined) return openLmdbTree(path)
  if (worse === 'in_place') return openLmdbTree(path, { in_place: true })
  if (worse === 'log') return openLogged(path, bounds)
  return treeOver(open(path, { ...lmdbOptions, ...JSON.parse(worse) }), path)
}

const store = storeOf(await openAs())
for (let n = 0; n < Number(commits); n++) {
  await store.update((tx) => {
    tx.put('last', Buffer.from(String(n)))
    for (let key = 0; key < 30; key++) tx.put(`${n} ${key}`, Buffer.alloc(300, 'x'))
  })
  writeSync(1, `durable ${n}\n`)
  // Time for a merge.
  if (worse === 'log') await new Promise((resolve) => setTimeout(resolve, 10))
}
await store.close()
