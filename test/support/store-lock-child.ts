/**
 * Tries to lock a file, prints `held` or `refused`, and keeps the lock until it is killed or its
 * input ends; after `refused` it tries again for each byte of input. With `work` it also opens LMDB
 * and commits in a loop, as an owner does.
 */
import { writeSync } from 'node:fs'
import { type FileLock, lockFile } from '../../src/store/disk/file-lock.ts'
import { openInProcess } from './in-process-tree.ts'

const [path = '', mode] = process.argv.slice(2)
let lock: FileLock | undefined
await tryLock()
process.stdin.on('data', tryLock)
process.stdin.on('end', () => void lock?.release())
if (mode === 'work') {
  const tree = await openInProcess(path)
  for (let n = 0; ; n++) {
    tree.commit((batch) => batch.put('n', Buffer.from(String(n))))
    if (n === 0) writeSync(1, 'working\n')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function tryLock(): Promise<void> {
  lock ??= await lockFile(path)
  writeSync(1, lock === undefined ? 'refused\n' : 'held\n')
}
