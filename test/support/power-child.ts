/**
 * Commits groups to a store, prints a line after each, closes it, and repeats, so that its trace
 * has every kind of write: `power-child PATH`.
 */
import { writeSync } from 'node:fs'
import type { CommitLogBounds } from '../../src/store/commit-log/bounds.ts'
import { groupOf, lastOf, openWithCommitLog, stateOf } from './commit-log-setup.ts'

const groups_of_round = [30, 25]
const bounds: CommitLogBounds = {
  checkpoint_bytes: 3_000,
  bytes_max: 9_000,
  slice: { changes_max: 12, bytes_max: 2_000 },
}

const [path = ''] = process.argv.slice(2)
for (const groups of groups_of_round) {
  const tree = await openWithCommitLog(path, bounds)
  const from = lastOf(stateOf(tree))
  for (let n = from + 1; n <= from + groups; n++) {
    await tree.commit(groupOf(n))
    writeSync(1, `durable ${n}\n`)
  }
  await tree.close()
}
