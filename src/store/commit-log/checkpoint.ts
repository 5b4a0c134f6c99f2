/**
 * A checkpoint: writes the last change of each key of a segment into LMDB, in key order, so that
 * neighbours share pages, in commits of bounded size. The last commit also writes the manifest that
 * counts the frames as merged, so an interrupted checkpoint is repeated. Little disk space means
 * smaller commits, none means `no_space`.
 */
import { fault } from '../../core/faults.ts'
import type { ChangeBuffer } from '../changes/change-buffer.ts'
import { keyBytesAt, keyStart, type Offset, valueBytesAt } from '../changes/change-encoding.ts'
import { hasRoomFor, type Load, large_value_bytes } from '../lmdb/disk-space.ts'
import { lastOfRuns, putFences, removeFences } from '../lmdb/full-pages.ts'
import type { LmdbTree, LmdbWriter, WritableTree, WriteJob } from '../lmdb/lmdb-tree.ts'
import { checkKeyBytes } from '../tree.ts'
import {
  changeOffsets,
  changesAt,
  commit_log_id_bytes,
  type Frame,
  frameBytes,
  framesIn,
  sealFrame,
} from './frame.ts'
import { sortLastByKey } from './key-sort.ts'
import { encodeManifest, type Manifest, manifest_key } from './manifest.ts'

type Target = Pick<WritableTree, 'commit' | 'freeBytes' | 'usage' | 'range' | 'refresh'>
type Bounds = NonNullable<WriteJob['slice']>

/**
 * All is durable when it returns. `frames` are in unshared memory, as LMDB needs. `onCommit`
 * follows each commit but the last. Throws `no_space`, an LMDB error, or an error for frames that
 * are corrupt.
 */
export function runWriteJob(tree: Target, job: WriteJob, onCommit = (): void => {}): void {
  const [only = nothing, ...others] = job.frames
  const own = others.length === 0 ? only : Buffer.concat(job.frames)
  const frames = checkedFrames(own, job)
  const offsets = sortLastByKey(own, changeOffsets(frames))
  const last_crc = frames.at(-1)?.crc
  const manifest = job.manifest && { ...job.manifest, last_crc }
  if (job.slice === undefined) {
    commitAll(tree, own, offsets, { manifest, goes_on: job.goes_on })
    return
  }
  let slice: Slice = new Uint32Array()
  for (const next of slicesOf(own, offsets, job.slice)) {
    if (slice.length > 0) {
      commitSlice(tree, own, slice)
      onCommit()
    }
    slice = next
  }
  commitSlice(tree, own, slice, manifest)
}

const nothing = Buffer.alloc(0)

/** Writes changes without a commit log. False if the disk has no room. */
export async function writeDirectly(
  tree: Pick<LmdbTree, 'write' | 'freeBytes' | 'usage'>,
  changes: ChangeBuffer,
): Promise<boolean> {
  let large_bytes = 0
  for (const [, value] of changes) {
    if (value !== null && value.length >= large_value_bytes) large_bytes += value.length
  }
  if (!hasRoomFor({ changes: changes.size, bytes: changes.bytes(), large_bytes }, tree))
    return false
  await tree.write({ frames: [frameOf(changes)] })
  return true
}

/** The changes as a frame of no commit log. */
export function frameOf(changes: ChangeBuffer): Buffer {
  const change_bytes = changes.bytes()
  const frame = Buffer.alloc(frameBytes(change_bytes))
  changes.copyTo(frame, changesAt(0))
  return sealFrame(frame, 0, { id: no_id, seq: 0, count: changes.count(), change_bytes })
}

const no_id = Buffer.alloc(commit_log_id_bytes)

function checkedFrames(bytes: Buffer, { commit_log }: WriteJob): Frame[] {
  const frames: Frame[] = []
  let next_seq = commit_log?.first_seq ?? 0
  let end = 0
  for (const frame of framesIn(bytes)) {
    if (frame.at !== end) break
    if (commit_log !== undefined && (frame.seq !== next_seq || !frame.id.equals(commit_log.id)))
      break
    next_seq++
    end += frame.bytes.length
    frames.push(frame)
  }
  if (end !== bytes.length || (commit_log !== undefined && next_seq !== commit_log.last_seq + 1)) {
    throw new Error('the commit log is not what was written')
  }
  return frames
}

type Slice = Uint32Array

const split_min = 32

/** Commits the slice, in halves while the disk lacks room for the whole. */
function commitSlice(tree: Target, arena: Buffer, slice: Slice, manifest?: Manifest): void {
  if (!hasRoomFor(loadOf(arena, slice), tree)) {
    if (slice.length <= split_min) throw fault('no_space')
    const half = slice.length >> 1
    commitSlice(tree, arena, slice.subarray(0, half))
    commitSlice(tree, arena, slice.subarray(half), manifest)
    return
  }
  commitAll(tree, arena, slice, { manifest, goes_on: manifest === undefined })
}

interface CommitEnd {
  readonly manifest: Manifest | undefined
  readonly goes_on?: boolean | undefined
}

function commitAll(
  tree: Target,
  arena: Buffer,
  slice: Slice,
  { manifest, goes_on = false }: CommitEnd,
): void {
  const last_keys = lastOfRuns(tree, arena, slice)
  tree.commit((writer) => {
    putFences(writer, last_keys)
    putAll(writer, arena, slice)
    removeFences(writer, last_keys)
    if (manifest !== undefined) writer.put(manifest_key, encodeManifest(manifest))
  }, goes_on)
}

function loadOf(arena: Buffer, slice: Slice): Load {
  let [bytes, large_bytes] = [0, 0]
  for (let at = 0; at < slice.length; at++) {
    const offset = slice[at] as Offset
    const value_bytes = Math.max(0, valueBytesAt(arena, offset))
    bytes += keyBytesAt(arena, offset) + value_bytes
    if (value_bytes >= large_value_bytes) large_bytes += value_bytes
  }
  return { changes: slice.length, bytes, large_bytes }
}

function* slicesOf(arena: Buffer, sorted: Uint32Array, bounds: Bounds): Generator<Slice> {
  let from = 0
  let bytes = 0
  for (let next = 1; next <= sorted.length; next++) {
    const offset = sorted[next - 1] as Offset
    const key_bytes = keyBytesAt(arena, offset)
    checkKeyBytes(key_bytes)
    bytes += key_bytes + Math.max(0, valueBytesAt(arena, offset))
    if (next - from < bounds.changes_max && bytes < bounds.bytes_max) continue
    yield sorted.subarray(from, next)
    from = next
    bytes = 0
  }
  if (from < sorted.length) yield sorted.subarray(from)
}

function putAll(writer: LmdbWriter, arena: Buffer, slice: Slice): void {
  for (let at = 0; at < slice.length; at++) {
    const offset = slice[at] as Offset
    const value_bytes = valueBytesAt(arena, offset)
    writer.putSlice(arena, keyStart(offset), keyBytesAt(arena, offset), value_bytes)
  }
}
