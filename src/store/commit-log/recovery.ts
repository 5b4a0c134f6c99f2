/**
 * Recovery: reads and checks the commit log of the last process. It changes nothing, so a refused
 * file stays as it is.
 *
 * The acknowledged commits are the unbroken sequence of valid frames after the manifest's sequence
 * number. An invalid frame at the end is a torn, unacknowledged write and is cut off. A valid frame
 * after an invalid one means that an acknowledged commit is lost: the file is refused. Also
 * refused: a commit log of another file or another state of this one, and a data file without its
 * required commit log. If none is required, segments with empty or merged frames are left by an
 * interrupted open or close.
 */
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { type Fault, fault } from '../../core/faults.ts'
import { type ChangeBuffer, newChangeBuffer } from '../changes/change-buffer.ts'
import { keyAt, keyBytesAt, type Offset, valueAt } from '../changes/change-encoding.ts'
import { fileFault, settledUninterrupted, syncFolder } from '../disk/file-system.ts'
import type { FileUsage, LmdbReads } from '../lmdb/lmdb-tree.ts'
import { mergedRange } from '../merged-range.ts'
import type { Tree } from '../tree.ts'
import { slice_bounds } from './bounds.ts'
import { changeOffsets, type Frame, framesIn } from './frame.ts'
import { readLogMark, readTail, type Tail } from './log-mark.ts'
import { decodeManifest, type Manifest, manifest_key } from './manifest.ts'
import { block_bytes, endOfBlock } from './segment-file.ts'

const zeros = Buffer.alloc(block_bytes)

/** The bytes of a segment, and its frames that LMDB lacks, in order. */
export interface RecoveredSegment {
  readonly bytes: Buffer
  readonly frames: readonly Frame[]
  /** Whether it has the last frame of the commit log. */
  readonly is_last: boolean
}

export function segmentPaths(path: string): readonly [string, string] {
  return [`${path}-log-0`, `${path}-log-1`]
}

/** What a data file records of its commit log. */
export interface KnownLog {
  /** LMDB lacks the frames after its `seq`. */
  readonly manifest: Manifest
  /** Where the file itself has them, and the number of the last. */
  readonly tail?: Tail & { readonly seq: number }
  readonly state?: 'open' | 'closed'
}

/** Undefined for a new file or a copy. Throws `not_a_database`. */
export async function knownLog(
  tree: Pick<LmdbReads, 'get'> & { usage(): Pick<FileUsage, 'end_bytes'> },
  path: string,
): Promise<KnownLog | undefined> {
  const stored_bytes = tree.get(manifest_key)
  const stored = stored_bytes && decodeManifest(stored_bytes)
  const mark = await readLogMark(path)
  if (mark === undefined) {
    if (stored === undefined && (await hasTailAt(path, tree.usage().end_bytes)))
      throw tailDamaged(path)
    return stored && { manifest: stored }
  }
  if (mark.state === 'copy') return undefined
  const { state } = mark
  const id = Buffer.from(mark.id, 'hex')
  const merged_seq = stored?.id.equals(id) === true ? stored.seq : 0
  if (state === 'open') {
    return { manifest: { id, seq: Math.max(merged_seq, mark.seq), is_open: true }, state }
  }
  const { tail, seq } = mark
  if (tail === undefined) return { manifest: { id, seq, is_open: false }, state }
  const manifest = { id, seq: Math.max(merged_seq, tail.first_seq - 1), is_open: true }
  return { manifest, tail: { ...tail, seq }, state }
}

/** Whether frames are where a close puts them, though no record says so. */
async function hasTailAt(path: string, end_bytes: number): Promise<boolean> {
  const bytes = await readTail(path, { at: endOfBlock(end_bytes), bytes: slice_bounds.bytes_max })
  return !framesIn(bytes).next().done
}

/**
 * The commit log of an earlier process, if any. Throws `not_possible` or `not_a_database` with a
 * sentence that says what to do. The caller must hold the file's lock.
 */
export async function recoverCommitLog(
  path: string,
  known: KnownLog | undefined,
): Promise<readonly [RecoveredSegment, RecoveredSegment] | undefined> {
  const { manifest, tail } = known ?? {}
  const paths = segmentPaths(path)
  const files = await Promise.all([readSegment(paths[0]), readSegment(paths[1])])
  if (manifest?.is_open === true && tail === undefined) {
    const [first, second] = files
    if (first === undefined || second === undefined) throw missing(path)
    const found = framesOf(path, [first, second], manifest)
    return [segmentWith(path, first, found), segmentWith(path, second, found)]
  }
  const last_seq = tail?.seq ?? manifest?.seq ?? 0
  for (const segment of files) {
    for (const { id, seq, count } of segment === undefined ? [] : framesIn(segment)) {
      if (count > 0 && !(manifest?.id.equals(id) && seq <= last_seq)) throw foreign(path)
    }
  }
  if (manifest === undefined || tail === undefined) return undefined
  const [first, second] = await segmentsOfTail(path, tail)
  let found: Found
  try {
    found = framesOf(path, [first, second], manifest)
  } catch {
    throw tailDamaged(path)
  }
  if (found.last?.seq !== tail.seq) throw tailDamaged(path)
  return [segmentWith(path, first, found), segmentWith(path, second, found)]
}

/** As the two files would be, with a last block that was never written. */
async function segmentsOfTail(path: string, tail: Tail): Promise<[Buffer, Buffer]> {
  const frames = await readTail(path, tail)
  const first = Buffer.alloc(endOfBlock(tail.bytes) + block_bytes)
  first.set(frames)
  return [first, Buffer.alloc(block_bytes)]
}

/**
 * Creates the two files from the frames in the data file; durable when it resolves. Rejects with
 * the system's error.
 */
export async function restoreSegments(
  path: string,
  recovered: readonly RecoveredSegment[],
): Promise<void> {
  await removeSegments(path)
  try {
    for (const [n, { bytes }] of recovered.entries()) {
      const segment = segmentPaths(path)[n] as string
      await writeFile(segment, bytes, { mode: 0o600, flush: true, flag: 'wx' })
    }
    await syncFolder(path)
  } catch (error) {
    await removeSegments(path)
    throw error
  }
}

interface Found {
  /** Those that LMDB lacks, in order. */
  readonly frames: readonly Frame[]
  readonly last: Frame | undefined
}

function framesOf(path: string, segments: readonly Buffer[], { id, seq }: Manifest): Found {
  const by_seq = new Map<number, Frame>()
  let last_seq = 0
  for (const frame of segments.flatMap((segment) => [...framesIn(segment)])) {
    if (!frame.id.equals(id)) throw foreign(path)
    by_seq.set(frame.seq, frame)
    last_seq = Math.max(last_seq, frame.seq)
  }
  // A commit log starts with a frame from before the manifest required it.
  if (by_seq.size === 0 || last_seq < seq) throw foreign(path)
  const frames: Frame[] = []
  for (let next = seq + 1; next <= last_seq; next++) {
    const frame = by_seq.get(next)
    if (frame === undefined) throw isNewer(segments, seq) ? foreign(path) : damaged(path)
    frames.push(frame)
  }
  return { frames, last: by_seq.get(last_seq) }
}

/** Checks that the frames are contiguous and that the last block was never written. */
function segmentWith(path: string, bytes: Buffer, { frames: all, last }: Found): RecoveredSegment {
  const frames = all.filter(({ segment }) => segment === bytes)
  if (!bytes.subarray(-block_bytes).equals(zeros)) throw truncated(path)
  for (const [n, { at }] of frames.entries()) {
    const before = frames[n - 1]
    if (before !== undefined && at !== before.at + before.bytes.length) throw damaged(path)
  }
  return { bytes, frames, is_last: last?.segment === bytes }
}

/** Whether both segments start, undamaged, with frames later than `seq + 1`. */
function isNewer(segments: readonly Buffer[], seq: number): boolean {
  return segments.every((segment) => {
    const [first] = framesIn(segment)
    return first === undefined || (first.at === 0 && first.seq > seq + 1)
  })
}

/** Removes the files that exist. Rejects with `not_possible`. */
export async function removeSegments(path: string): Promise<void> {
  const paths = segmentPaths(path).filter((segment) => existsSync(segment))
  try {
    for (const segment of paths) await rm(segment, { force: true })
    if (paths.length > 0) await syncFolder(path)
  } catch (error) {
    const [one, other] = segmentPaths(path)
    const why = error instanceof Error ? error.message : String(error)
    const says = `${one} and ${other} cannot be removed (${why}); look at the disk`
    throw fault('not_possible', says, { cause: error })
  }
}

async function readSegment(path: string): Promise<Buffer | undefined> {
  try {
    return await settledUninterrupted(() => readFile(path))
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined
    throw fileFault(path, error)
  }
}

/** The file of a running process may have been copied alone, so this names a safe way. */
const restore_help =
  'run `npx conveyor restore BACKUP`; `npx conveyor backup FILE` copies a file that is in use'

function missing(path: string): Fault {
  const [one, other] = segmentPaths(path)
  const says = `${path} was copied without its commit log, or has lost it: ${one} and ${other}`
  return fault(
    'not_possible',
    `${says} are a part of it until it is closed; put both beside it, or ${restore_help}`,
  )
}

function foreign(path: string): Fault {
  const [one, other] = segmentPaths(path)
  const says = `${one} and ${other} are the commit log of another file, or of another copy of`
  const helps = `put the three that go together in place, or ${restore_help}`
  return fault('not_possible', `${says} ${path}; ${helps}`)
}

function truncated(path: string): Fault {
  const says = `the commit log of ${path} was cut short, and what was acknowledged may be lost`
  return fault('not_a_database', `${says}; ${restore_help}`)
}

function tailDamaged(path: string): Fault {
  const says = `${path} is cut short or damaged at its end, where its last commits are`
  return fault('not_a_database', `${says}; ${restore_help}`)
}

function damaged(path: string): Fault {
  const says = `the commit log of ${path} is damaged in its middle, and what was acknowledged is`
  return fault('not_a_database', `${says} lost; ${restore_help}`)
}

type Recovered = readonly RecoveredSegment[] | undefined

export function recoveredFrames(recovered: Recovered): Frame[] {
  const frames = (recovered ?? []).flatMap((segment) => segment.frames)
  return frames.sort((one, other) => one.seq - other.seq)
}

/** For few look-ups: it does not index the frames. */
export function recoveredView(
  tree: Pick<Tree, 'get' | 'range'>,
  recovered: Recovered,
): Pick<Tree, 'get' | 'range'> {
  const frames = recoveredFrames(recovered)
  return {
    get(key) {
      for (const frame of frames.toReversed()) {
        const at = changeOffsets([frame]).findLast(
          (offset) =>
            keyBytesAt(frame.segment, offset as Offset) === key.length &&
            keyAt(frame.segment, offset as Offset) === key,
        )
        if (at !== undefined) return valueAt(frame.segment, at as Offset) ?? undefined
      }
      return tree.get(key)
    },
    range(from, to, reverse) {
      const changes = changesIn(frames)
      return mergedRange([changes.range(from, to, reverse), tree.range(from, to, reverse)], reverse)
    },
  }
}

export function changesIn(frames: readonly Frame[]): ChangeBuffer {
  const changes = newChangeBuffer()
  for (const frame of frames) {
    for (const offset of changeOffsets([frame])) {
      changes.put(keyAt(frame.segment, offset), valueAt(frame.segment, offset))
    }
  }
  return changes
}
