/**
 * The log beside a file, judged and folded in before anything else is done with the tree.
 *
 * What was acknowledged is a chain of whole frames, from the one behind the head's sequence on. A
 * frame that is not whole ends it where none follows: it was never acknowledged, or not before the
 * power went. Where one follows, an acknowledged one in between is lost, and the file is refused;
 * so is a log that belongs to another file or to another state of this one, and a tree alone whose
 * head says that a log must be there. Whatever is refused is left as it is. Frames without a change
 * where the tree knows of no log are what an opening left that did not come to its end.
 */
import { open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Fault, fault } from '../../words/faults.ts'
import { fileFault } from '../file-faults.ts'
import type { LmdbTree } from '../lmdb-tree.ts'
import { type Frame, framesIn } from './frame.ts'
import { decodeHead, type Head, head_key } from './head.ts'
import { mergeFrames } from './merge.ts'

/** The two files of the log of the data file at `path`. */
export function segmentPaths(path: string): readonly [string, string] {
  return [`${path}-log-0`, `${path}-log-1`]
}

/**
 * Folds in what the log holds and removes it; without a log it does nothing. Throws `not_possible`
 * or `not_a_database` with a sentence that says what to do. Nobody else may have the file.
 */
export async function recoverLog(tree: LmdbTree, path: string): Promise<void> {
  const found = await Promise.all(segmentPaths(path).map(readSegment))
  const bytes = tree.get(head_key)
  const head = bytes === undefined ? undefined : decodeHead(bytes)
  if (head?.is_open !== true && found.every((segment) => segment === undefined)) return
  if (head?.is_open === true && found.includes(undefined)) throw missing(path)
  const frames = judge(path, found, head)
  const last = frames.at(-1)
  if (head !== undefined && last !== undefined) {
    await mergeFrames(tree, frames, { ...head, seq: last.seq })
  }
  await removeLog(tree, path)
}

/** The frames that are not yet in the tree, in order. */
function judge(
  path: string,
  found: readonly (Buffer | undefined)[],
  head: Head | undefined,
): Frame[] {
  const bySeq = new Map<number, Frame>()
  let last_seq = 0
  for (const segment of found) {
    for (const frame of segment === undefined ? [] : framesIn(segment)) {
      if (head?.is_open !== true && frame.count === 0) continue
      if (head === undefined || !frame.id.equals(head.id)) throw stranger(path)
      bySeq.set(frame.seq, frame)
      last_seq = Math.max(last_seq, frame.seq)
    }
  }
  if (head === undefined) return []
  const { seq, is_open } = head
  // The frame that opened a log was there before the head told of it.
  if (is_open ? bySeq.size === 0 || last_seq < seq : last_seq > seq) throw stranger(path)
  const frames: Frame[] = []
  for (let next = seq + 1; next <= last_seq; next++) {
    const frame = bySeq.get(next)
    if (frame === undefined) throw isLater(found, seq) ? stranger(path) : broken(path)
    frames.push(frame)
  }
  return frames
}

/** Whether nothing is damaged where the frame behind `seq` would stand, and it is not there. */
function isLater(found: readonly (Buffer | undefined)[], seq: number): boolean {
  return found.every((segment = Buffer.alloc(0)) => {
    const [first] = framesIn(segment)
    if (first === undefined) return true
    return first.bytes.byteOffset === segment.byteOffset && first.seq > seq + 1
  })
}

/** First the tree's word that there is no log any more, then the files. */
export async function removeLog(tree: LmdbTree, path: string): Promise<void> {
  const bytes = tree.get(head_key)
  const head = bytes === undefined ? undefined : decodeHead(bytes)
  if (head?.is_open === true) await mergeFrames(tree, [], { ...head, is_open: false })
  for (const segment of segmentPaths(path)) await rm(segment, { force: true })
  await syncFolder(path)
}

/** So that the files in it are there, or gone, also after a power cut. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

async function readSegment(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined
    throw fileFault(path, error)
  }
}

function missing(path: string): Fault {
  const [one, other] = segmentPaths(path)
  const says = `${path} goes with its log, ${one} and ${other}; put both beside it, or a backup in`
  return fault('not_possible', `${says} its place`)
}

function stranger(path: string): Fault {
  const [one, other] = segmentPaths(path)
  const says = `${one} and ${other} are the log of another file or of another state of ${path}`
  return fault('not_possible', `${says}; move them away, or put the right file in its place`)
}

function broken(path: string): Fault {
  const says = `the log of ${path} is damaged in its middle, and what was acknowledged is lost`
  return fault('not_a_database', `${says}; put a backup in its place, without the log`)
}
