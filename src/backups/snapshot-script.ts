/** The script of the thread that writes one snapshot into a backup target. */
import { parentPort, workerData } from 'node:worker_threads'
import { systemChance, systemClock } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import { runSnapshot, type SnapshotSource } from '../store/snapshots/script.ts'
import { chunkName, endName, snapshotName } from './names.ts'
import { openTarget } from './open-target.ts'
import type { SnapshotEnd } from './read-parts.ts'

export interface BackupSnapshotJob extends SnapshotSource {
  readonly target: string
  readonly tenure: number
  /** Id of the commit log, in hex. */
  readonly log: string
}

export type WrittenBackupSnapshot = Pick<SnapshotEnd, 'seq' | 'chunks' | 'bytes'>

if (parentPort !== null) {
  const job = workerData as BackupSnapshotJob
  const target = openTarget(job.target, systemChance)
  await runSnapshot<WrittenBackupSnapshot>(parentPort, job, {
    async write({ id, log_id, seq, last_crc, chunks, step }) {
      const own = log_id.toString('hex')
      if (own !== job.log) throw new Error('the data file has the position of another commit log')
      const name = snapshotName(job.tenure, { seq, at_ms: systemClock.now_ms() })
      let [count, bytes] = [0, 0]
      for (const chunk of chunks) {
        count++
        bytes += chunk.length
        await create(chunkName(name, count), chunk)
        await step(bytes)
      }
      const end: SnapshotEnd = {
        ...{ id: id.toString('hex'), log: own, seq, last_crc, chunks: count, bytes },
      }
      await create(endName(name), Buffer.from(JSON.stringify(end)))
      return { seq, chunks: count, bytes }
    },
  })

  async function create(name: string, bytes: Buffer): Promise<void> {
    if (!(await target.create(name, bytes))) throw fault('not_possible', `${name} exists already`)
  }
}
