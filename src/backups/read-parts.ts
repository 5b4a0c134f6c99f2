/**
 * Reads what a plan names, in order, and checks all of it: checksums, the id of the commit log, and
 * that no position and no chunk is missing or comes twice. Throws `not_a_database` otherwise.
 */
import { parsePlain } from '../codec/json.ts'
import { type Fault, fault } from '../core/faults.ts'
import { type Frame, framesIn } from '../store/commit-log/frame.ts'
import { chunkIn } from '../store/snapshots/chunk.ts'
import type { FramesName } from './names.ts'
import { chunkName, endName, type SnapshotName } from './names.ts'
import type { Plan } from './plan.ts'
import type { BackupTarget } from './target.ts'

/** The last object of a snapshot. */
export interface SnapshotEnd {
  /** Of the snapshot and of the commit log, in hex. */
  readonly id: string
  readonly log: string
  readonly seq: number
  readonly last_crc: number
  readonly chunks: number
  readonly bytes: number
}

export interface Source {
  readonly target: BackupTarget
  /** Id of the commit log, in hex. */
  readonly log: string
}

/** The chunks of the snapshot, then the frames up to the position of the plan. */
export async function* framesTo(source: Source, { run, to_seq }: Plan): AsyncGenerator<Frame[]> {
  yield* chunksOf(source, run.snapshot)
  let seq = run.snapshot.seq
  for (const part of run.parts) {
    if (seq >= to_seq) return
    const frames = await readFrames(source, part)
    const wanted = frames.filter((frame) => frame.seq > seq && frame.seq <= to_seq)
    seq = wanted.at(-1)?.seq ?? seq
    yield wanted
  }
}

export async function* chunksOf(
  { target, log }: Source,
  snapshot: SnapshotName,
): AsyncGenerator<Frame[]> {
  const end = endOf(await target.read(endName(snapshot.name)))
  if (end === undefined) throw damaged(target, endName(snapshot.name), 'damaged')
  if (end.log !== log || end.seq !== snapshot.seq) throw foreign(target, snapshot.name)
  const id = Buffer.from(end.id, 'hex')
  let bytes = 0
  for (let number = 1; number <= end.chunks; number++) {
    const name = chunkName(snapshot.name, number)
    const data = await target.read(name)
    const chunk = data && chunkIn(data, id, number)
    if (chunk === undefined) throw damaged(target, name, data === undefined ? 'missing' : 'damaged')
    bytes += chunk.bytes.length
    yield [chunk]
  }
  if (bytes !== end.bytes) throw damaged(target, snapshot.name, 'damaged')
}

/** All frames of a part. */
export async function readFrames({ target, log }: Source, part: FramesName): Promise<Frame[]> {
  const bytes = await target.read(part.name)
  if (bytes === undefined) throw damaged(target, part.name, 'missing')
  const frames = [...framesIn(bytes)]
  let end = 0
  for (const [n, frame] of frames.entries()) {
    if (frame.id.toString('hex') !== log) throw foreign(target, part.name)
    if (frame.at !== end) throw damaged(target, part.name, 'damaged')
    if (frame.seq !== part.first_seq + n) throw foreign(target, part.name)
    end += frame.bytes.length
  }
  if (end !== bytes.length || frames.at(-1)?.seq !== part.last_seq) {
    throw damaged(target, part.name, 'damaged')
  }
  return frames
}

function endOf(bytes: Buffer | undefined): SnapshotEnd | undefined {
  try {
    return bytes && (parsePlain(bytes.toString('utf8')) as SnapshotEnd)
  } catch {
    return undefined
  }
}

function damaged(target: BackupTarget, name: string, how: 'missing' | 'damaged'): Fault {
  const helps = 'restore a position before it, or from a copy of the target'
  return fault('not_a_database', `${name} in ${target.says} is ${how}; ${helps}`)
}

function foreign(target: BackupTarget, name: string): Fault {
  const says = `${name} in ${target.says} has the contents of another part or file`
  return fault('not_a_database', `${says}; restore a position before it, or from a copy`)
}
