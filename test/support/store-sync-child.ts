/**
 * Commits a few times and prints a line for each: `store-sync-child PATH COMMITS FIRST`, by default
 * from number 0 on. Checkpoints run in between.
 */
import { writeSync } from 'node:fs'
import { storeOf } from '../../src/store/group-commit.ts'
import { openAsEngine } from './commit-log-setup.ts'

const [path = '', commits = '1', first = '0'] = process.argv.slice(2)
const bounds = {
  checkpoint_bytes: 1,
  bytes_max: 50_000,
  slice: { changes_max: 30, bytes_max: 20_000 },
}

const store = storeOf(await openAsEngine(path, bounds))
for (let n = Number(first); n < Number(first) + Number(commits); n++) {
  await store.update((tx) => {
    tx.put('last', Buffer.from(String(n)))
    for (let key = 0; key < 30; key++) tx.put(`${n} ${key}`, Buffer.alloc(300, 'x'))
  })
  writeSync(1, `durable ${n}\n`)
  // Time for a merge.
  await new Promise((resolve) => setTimeout(resolve, 10))
}
await store.close()
