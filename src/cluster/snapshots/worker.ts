/** The script of a node's snapshot thread, which writes to the database by its own connection. */
import { parentPort, workerData } from 'node:worker_threads'
import { steadyClock } from '../../core/clock.ts'
import { runSnapshot, type SnapshotSource } from '../../store/snapshots/script.ts'
import { newConnection } from '../database/connection.ts'
import { databaseOf } from '../database/url.ts'
import { completeSnapshot, type SnapshotSize, writeSnapshot } from './rows.ts'
import { truncate } from './truncation.ts'

export interface SnapshotJob extends SnapshotSource {
  readonly url: string
  readonly node: string
  readonly unsafe: boolean
  readonly partition: number
  readonly epoch: number
  readonly answer_ms_max: number
  /** As `TruncationOptions.behind_bytes_max`. */
  readonly behind_bytes_max: number
}

export interface WrittenSnapshot extends SnapshotSize {
  readonly seq: number
}

if (parentPort !== null) {
  const job = workerData as SnapshotJob
  const { partition, epoch, behind_bytes_max } = job
  const connection = newConnection({
    database: databaseOf(job.url, job.node, job.unsafe),
    ...{ purpose: 'snapshot', clock: steadyClock, answer_ms_max: job.answer_ms_max },
  })
  const tidy = (step: () => Promise<void>): Promise<unknown> =>
    truncate({ connection, partition, epoch, behind_bytes_max, step })
  await runSnapshot<WrittenSnapshot>(parentPort, job, {
    prepare: tidy,
    async write({ id, seq, last_crc, chunks, step }) {
      const draft = { partition, epoch, id, seq, last_crc }
      const size = await writeSnapshot(connection, draft, chunks, step)
      await completeSnapshot(connection.query, draft, size)
      return { seq, ...size }
    },
    finish: tidy,
    close: () => connection.close(),
  })
}
