/**
 * Writes the state of a closed data file as the first snapshot of an empty partition. The file is
 * read under its lock and never changed; a stopped node's file works too. One transaction at the
 * end completes the import, only if no node has ever owned the partition. The log begins with an
 * empty frame after position 1, so each node sees that it must load the snapshot.
 */
import { systemChance } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import { frameBytes, sealFrame } from '../../store/commit-log/frame.ts'
import { decodeManifest, manifest_key } from '../../store/commit-log/manifest.ts'
import { openReadOnly, type ReadOnlyFile } from '../../store/read-only.ts'
import { chunksOf, snapshot_id_bytes, stateIn } from '../../store/snapshots/chunk.ts'
import type { Entry } from '../../store/store.ts'
import type { Connection } from '../database/connection.ts'
import { checkedCluster } from '../database/schema.ts'
import { type OwnerRow, readOwnerRow } from '../ownership/owner-row.ts'
import {
  completeSnapshot,
  type SnapshotDraft,
  type SnapshotSize,
  writeSnapshot,
} from '../snapshots/rows.ts'
import { truncate } from '../snapshots/truncation.ts'
import { lostReason, whileLocked } from './detach-file.ts'

export interface ImportFileOptions {
  readonly partition: number
  /** Throws for the state of another program or a newer format. */
  check(file: ReadOnlyFile): void
  /** Default 1 MiB. */
  readonly chunk_bytes?: number
}

export interface ImportedFile extends SnapshotSize {
  /** Position of the state in the log of the partition. */
  readonly seq: number
}

/** A node without data is behind a log that begins here. */
const first_seq = 2

/** Rejects with `not_possible`, `file_held` or `not_a_database`. */
export async function importFile(
  connection: Connection,
  path: string,
  options: ImportFileOptions,
): Promise<ImportedFile> {
  return whileLocked(path, async (real_path) => {
    const row = await emptyPartition(connection, options.partition)
    const file = await openReadOnly(real_path, { takes_nodes: true })
    try {
      options.check(file)
      if (file.node !== undefined && !(await lostReason(connection, file.node, path))) {
        throw nothingLost(path)
      }
      return await write(connection, file, options, row.log_id)
    } finally {
      await file.close()
    }
  })
}

async function emptyPartition(connection: Connection, partition: number): Promise<OwnerRow> {
  await checkedCluster(connection)
  const row = await readOwnerRow(connection, partition)
  const { rows } = await connection.query<{ is_used: boolean }>({
    text: `SELECT EXISTS (SELECT 1 FROM conveyor.log WHERE partition = $1) AS is_used`,
    values: [partition],
  })
  if (row.epoch > 0 || rows[0]?.is_used === true) throw notEmpty(partition)
  return row
}

async function write(
  connection: Connection,
  file: ReadOnlyFile,
  { partition, chunk_bytes }: ImportFileOptions,
  log_id: Buffer,
): Promise<ImportedFile> {
  const seq = Math.max(first_seq, lastSeq(file) + 1)
  const parts = { id: log_id, seq, count: 0, change_bytes: 0 }
  const frame = sealFrame(Buffer.alloc(frameBytes(0)), 0, parts)
  const id = systemChance.bytes(snapshot_id_bytes)
  const last_crc = frame.readUInt32BE(4)
  const draft: SnapshotDraft = { partition, epoch: 0, id, seq, last_crc }
  // Removes the rest of an unfinished import.
  await truncate({ connection, partition, epoch: 0, behind_bytes_max: 0, step: async () => {} })
  const chunks = chunksOf(stateIn(entriesOf(file)), id, chunk_bytes)
  const size = await writeSnapshot(connection, draft, chunks)
  await connection.inTransaction(async (ask) => {
    // The new `renewal` makes a node that waits to be the first owner check again.
    const { rowCount } = await ask({
      text: `UPDATE conveyor.owner SET renewal = renewal + 1 WHERE partition = $1 AND epoch = 0
        AND NOT EXISTS (SELECT 1 FROM conveyor.log WHERE partition = $1)`,
      values: [partition],
    })
    if (rowCount !== 1) throw notEmpty(partition)
    await ask({
      text: 'INSERT INTO conveyor.log (partition, seq, epoch, frame) VALUES ($1, $2, 0, $3)',
      values: [partition, seq, frame],
    })
    await completeSnapshot(ask, draft, size)
  })
  return { seq, ...size }
}

function lastSeq(file: ReadOnlyFile): number {
  const stored = file.get(manifest_key)
  return (stored === undefined ? 0 : decodeManifest(stored).seq) + file.commits
}

const page_entries = 1_000

function* entriesOf(file: ReadOnlyFile): Generator<Entry> {
  let from = ''
  for (;;) {
    const page = file.scan({ from, to: '\xff', limit: page_entries })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < page_entries) return
    from = `${last.key}\0`
  }
}

/** Otherwise two partitions would continue one state. */
function nothingLost(path: string): Fault {
  const says = `the cluster of ${path} is in this database, with all that the file has`
  return fault('not_possible', `${says}: start the node with it, or import a backup of it`)
}

function notEmpty(partition: number): Fault {
  const says = `partition ${partition} of the cluster is not empty`
  return fault('not_possible', `${says}: a file is imported before its first node starts`)
}
