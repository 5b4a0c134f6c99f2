/**
 * Writes groups into a store, says so behind each, closes it, and does it all again, so that a
 * trace of it has every kind of write there is: `power-child PATH log|plain [OPTIONS]`. OPTIONS, as
 * JSON, are laid over those of LMDB, to show what a database opened in a worse way does.
 */
import { writeSync } from 'node:fs'
import { open } from 'lmdb'
import { lmdbOptions } from '../../src/store/lmdb-options.ts'
import { treeOver } from '../../src/store/lmdb-tree.ts'
import type { LogBounds } from '../../src/store/log/tree.ts'
import type { Tree } from '../../src/store/store.ts'
import { groupOf, lastOf, openFolded, openLogged, stateOf } from './log-bed.ts'

const groups_of_round = [30, 25]
const bounds: LogBounds = {
  merge_bytes: 3_000,
  bytes_max: 9_000,
  slice: { changes_max: 12, bytes_max: 2_000 },
}

const [path = '', form, worse] = process.argv.slice(2)

async function openAs(): Promise<Tree> {
  if (worse !== undefined) {
    return treeOver(open(path, { ...lmdbOptions, ...JSON.parse(worse) }), path)
  }
  return form === 'log' ? openLogged(path, bounds) : openFolded(path)
}

for (const groups of groups_of_round) {
  const tree = await openAs()
  const from = lastOf(stateOf(tree))
  for (let n = from + 1; n <= from + groups; n++) {
    await tree.commit(groupOf(n), n % 2 === 0)
    writeSync(1, `durable ${n}\n`)
  }
  await tree.close()
}
