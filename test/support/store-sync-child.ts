/**
 * Commits a few times and says so each time: `store-sync-child PATH COMMITS [OPTIONS]`. OPTIONS, as
 * JSON, are laid over ours, to show what a database opened in a worse way does.
 */
import { writeSync } from 'node:fs'
import { open } from 'lmdb'
import { storeOf } from '../../src/store/group.ts'
import { lmdbOptions } from '../../src/store/lmdb-options.ts'
import { openLmdbTree, treeOver } from '../../src/store/lmdb-tree.ts'

const [path = '', commits = '1', worse] = process.argv.slice(2)
const tree =
  worse === undefined
    ? await openLmdbTree(path)
    : treeOver(open(path, { ...lmdbOptions, ...JSON.parse(worse) }), path)
const store = storeOf(tree)
for (let n = 0; n < Number(commits); n++) {
  await store.update((tx) => {
    tx.put('last', Buffer.from(String(n)))
    for (let key = 0; key < 30; key++) tx.put(`${n} ${key}`, Buffer.alloc(300))
  })
  writeSync(1, `durable ${n}\n`)
}
await store.close()
