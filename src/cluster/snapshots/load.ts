/**
 * Loads the newest snapshot into a node's data file: empties it, writes the chunks in key order,
 * and the position last. Until then the mark has `is_loading`, so a killed node starts again.
 * Memory holds a few chunks.
 */
import type { Emit } from '../../core/events.ts'
import { type Fault, fault } from '../../core/faults.ts'
import { newChangeBuffer } from '../../store/changes/change-buffer.ts'
import { frameOf } from '../../store/commit-log/checkpoint.ts'
import type { Frame } from '../../store/commit-log/frame.ts'
import { manifest_key } from '../../store/commit-log/manifest.ts'
import { node_mark_key } from '../../store/commit-log/node-mark.ts'
import type { LmdbTree } from '../../store/lmdb/lmdb-tree.ts'
import { chunkIn } from '../../store/snapshots/chunk.ts'
import { writeFrames } from '../../store/snapshots/write-frames.ts'
import type { Connection } from '../database/connection.ts'
import { untilAnswered, type Waiting, waitEnded } from '../database/waiting.ts'
import { type NodeFile, writeNodeFile } from '../node/file.ts'
import { newestSnapshot, readChunk, type Snapshot } from './rows.ts'

export interface SnapshotLoad extends Waiting {
  readonly connection: Connection
  readonly partition: number
  readonly tree: LmdbTree
  readonly file: NodeFile
  readonly emit: Emit
  readonly node: string
  /** Before the first chunk; from then on the log after the snapshot must stay. */
  onBegin(snapshot: Snapshot): Promise<void> | void
  onLoaded(loaded: LoadedBytes): void
}

export interface LoadedBytes {
  readonly bytes: number
  readonly of_bytes: number
}

/** Of one commit of LMDB; at least a chunk. */
const commit_bytes = 4 * 1024 * 1024
const clear_keys = 4_096

/** The loaded file; empty, at position 0, without a snapshot. */
export async function loadSnapshot(load: SnapshotLoad): Promise<NodeFile> {
  const { tree, file, partition, connection } = load
  const id = file.manifest.id
  const mark = { ...file.mark, is_loading: true }
  await tree.verified()
  await writeNodeFile(tree, { mark, manifest: { id, seq: 0, is_open: true } })
  for (;;) {
    await clear(load)
    const snapshot = await untilAnswered(load, () => newestSnapshot(connection, partition))
    if (snapshot !== undefined && !(await loadChunks(load, snapshot))) continue
    const { seq = 0, last_crc } = snapshot ?? {}
    const manifest = { id, seq, is_open: true, last_crc }
    const loaded = { mark: { ...mark, is_loading: false }, manifest }
    await writeNodeFile(tree, loaded)
    return loaded
  }
}

/** In slices, all of which leave the mark `is_loading`. */
async function clear({ tree, hasLeft }: SnapshotLoad): Promise<void> {
  for (;;) {
    const changes = newChangeBuffer()
    for (const { key } of tree.range('', '\xff', false)) {
      if (key !== manifest_key && key !== node_mark_key) changes.put(key, null)
      if (changes.size === clear_keys) break
    }
    if (changes.size === 0) return
    await tree.write({ frames: [frameOf(changes)], goes_on: true })
    if (hasLeft()) throw waitEnded()
  }
}

/** False if a later snapshot replaced this one. */
async function loadChunks(load: SnapshotLoad, snapshot: Snapshot): Promise<boolean> {
  const { partition, tree, clock, emit, node, connection } = load
  const { chunks, bytes: of_bytes, seq } = snapshot
  const began_ms = clock.now_ms()
  emit('snapshot_loading', { node, seq, bytes: of_bytes })
  load.onLoaded({ bytes: 0, of_bytes })
  await load.onBegin(snapshot)
  const read = (chunk: number): Promise<Buffer | undefined> => {
    const reading = untilAnswered(load, () => readChunk(connection, partition, snapshot, chunk))
    reading.catch(() => {})
    return reading
  }
  let bytes = 0
  let gathered: Frame[] = []
  let gathered_bytes = 0
  let next = chunks > 0 ? read(1) : Promise.resolve(undefined)
  for (let chunk = 1; chunk <= chunks; chunk++) {
    const data = await next
    const frame = data && chunkIn(data, snapshot.id, chunk)
    if (frame === undefined) {
      const newest = await untilAnswered(load, () => newestSnapshot(connection, partition))
      if (newest?.id.equals(snapshot.id) === true) throw damaged(snapshot.seq, chunk, data)
      return false
    }
    if (chunk < chunks) next = read(chunk + 1)
    gathered.push(frame)
    gathered_bytes += frame.bytes.length
    bytes += frame.bytes.length
    if (chunk < chunks && gathered_bytes < commit_bytes) continue
    await writeFrames(tree, gathered, true)
    load.onLoaded({ bytes, of_bytes })
    gathered = []
    gathered_bytes = 0
  }
  emit('snapshot_loaded', { node, seq, bytes, ms: Math.round(clock.now_ms() - began_ms) })
  return true
}

function damaged(seq: number, chunk: number, data: Buffer | undefined): Fault {
  const how = data === undefined ? 'missing' : 'damaged'
  const says = `chunk ${chunk} of the snapshot at position ${seq} in the database is ${how}`
  return fault('not_a_database', `${says}: wait for the next snapshot, or restore the database`)
}
