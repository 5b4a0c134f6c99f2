/**
 * The log beside a file, judged before anything else is done with the file.
 *
 * What was acknowledged is a chain of whole frames, from the one behind the head's sequence on. A
 * frame that is not whole ends it where none follows: it was never acknowledged, or not before the
 * power went. Where one follows, an acknowledged one in between is lost, and the file is refused;
 * so is a log that belongs to another file or to another state of this one, and a tree alone whose
 * head says that a log must be there. Nothing is changed here, so whatever is refused is left as it
 * is. Frames without a change where the tree knows of no log are what an opening left that did not
 * come to its end.
 */
import { existsSync } from 'node:fs'
import { open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Fault, fault } from '../../core/faults.ts'
import { fileFault } from '../file-system.ts'
import { block_bytes } from './blocks.ts'
import { type Frame, framesIn } from './frame.ts'
import type { Manifest } from './manifest.ts'

const zeros = Buffer.alloc(block_bytes)

/** A segment as it was left, and those of its frames that are not in the tree, in order. */
export interface RecoveredSegment {
  readonly bytes: Buffer
  readonly frames: readonly Frame[]
}

/** The two files of the log of the data file at `path`. */
export function segmentPaths(path: string): readonly [string, string] {
  return [`${path}-log-0`, `${path}-log-1`]
}

/**
 * What a log that was left holds; undefined where there is none. Throws `not_possible` or
 * `not_a_database` with a sentence that says what to do. Nobody else may have the file.
 */
export async function recoverLog(
  path: string,
  head: Manifest | undefined,
): Promise<readonly [RecoveredSegment, RecoveredSegment] | undefined> {
  const paths = segmentPaths(path)
  const [first, second] = await Promise.all([readSegment(paths[0]), readSegment(paths[1])])
  if (head?.is_open === true) {
    if (first === undefined || second === undefined) throw missing(path)
    const frames = judge(path, [first, second], head)
    return [foundIn(path, first, frames), foundIn(path, second, frames)]
  }
  for (const segment of [first, second]) {
    for (const { id, seq, count } of segment === undefined ? [] : framesIn(segment)) {
      if (count > 0 && !(head?.id.equals(id) && seq <= head.seq)) throw stranger(path)
    }
  }
  return undefined
}

/** The frames that are not yet in the tree, in order. */
function judge(path: string, found: readonly Buffer[], { id, seq }: Manifest): Frame[] {
  const by_seq = new Map<number, Frame>()
  let last_seq = 0
  for (const frame of found.flatMap((segment) => [...framesIn(segment)])) {
    if (!frame.id.equals(id)) throw stranger(path)
    by_seq.set(frame.seq, frame)
    last_seq = Math.max(last_seq, frame.seq)
  }
  // The frame that opened a log was there before the head told of it.
  if (by_seq.size === 0 || last_seq < seq) throw stranger(path)
  const frames: Frame[] = []
  for (let next = seq + 1; next <= last_seq; next++) {
    const frame = by_seq.get(next)
    if (frame === undefined) throw isLater(found, seq) ? stranger(path) : broken(path)
    frames.push(frame)
  }
  return frames
}

/** They were written one behind the other, and the last block of the file never. */
function foundIn(path: string, bytes: Buffer, all: readonly Frame[]): RecoveredSegment {
  const frames = all.filter(({ segment }) => segment === bytes)
  if (!bytes.subarray(-block_bytes).equals(zeros)) throw cut(path)
  for (const [n, { at }] of frames.entries()) {
    const before = frames[n - 1]
    if (before !== undefined && at !== before.at + before.bytes.length) throw broken(path)
  }
  return { bytes, frames }
}

/** Whether nothing is damaged where the frame behind `seq` would stand, and it is not there. */
function isLater(found: readonly Buffer[], seq: number): boolean {
  return found.every((segment) => {
    const [first] = framesIn(segment)
    return first === undefined || (first.at === 0 && first.seq > seq + 1)
  })
}

/** Does nothing where none is there. */
export async function removeSegments(path: string): Promise<void> {
  const found = segmentPaths(path).filter((segment) => existsSync(segment))
  for (const segment of found) await rm(segment, { force: true })
  if (found.length > 0) await syncFolder(path)
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

function cut(path: string): Fault {
  const says = `the log of ${path} was cut short, and what was acknowledged may be lost`
  return fault('not_a_database', `${says}; put a backup in its place, without the log`)
}

function broken(path: string): Fault {
  const says = `the log of ${path} is damaged in its middle, and what was acknowledged is lost`
  return fault('not_a_database', `${says}; put a backup in its place, without the log`)
}
