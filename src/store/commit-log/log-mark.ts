/**
 * The record of the commit log in the data file (lmdb/marks), written at open and close without a
 * commit of LMDB:
 *
 *     open     the file is incomplete without the two segment files of the commit log of this id
 *     closed   it is complete; `tail` locates the last frames in it, if any
 *     copy     a copy of another file, with that file's manifest and node mark
 *
 * A close with little left to write puts the frames behind LMDB's last page; the next open first
 * makes a segment of them. A new file, and a node's copy, have no record.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { parsePlain } from '../../codec/json.ts'
import { settledUninterrupted } from '../disk/file-system.ts'
import { placedMark, readMark } from '../lmdb/marks.ts'
import { page_bytes_max, readMetas } from '../lmdb/pages.ts'

export type LogMark =
  /** Ids in hex. Frames up to `seq` are not needed: the file had them at its open. */
  | { readonly state: 'open'; readonly id: string; readonly seq: number }
  | { readonly state: 'closed'; readonly id: string; readonly seq: number; readonly tail?: Tail }
  | { readonly state: 'copy' }

export const copy_mark: Buffer = bytesOf({ state: 'copy' })

export interface Tail {
  readonly at: number
  readonly bytes: number
  readonly first_seq: number
}

export async function readLogMark(path: string): Promise<LogMark | undefined> {
  return using(path, constants.O_RDONLY, async (file) => (await readIn(file)).mark)
}

/** Durable when it resolves. Rejects with the system's error. */
export async function writeLogMark(path: string, mark: LogMark): Promise<void> {
  await using(path, constants.O_RDWR, (file) => putMark(file, mark))
}

/** Closes the file with these frames in it, at `at`. Durable when it resolves. */
export async function writeTail(
  path: string,
  frames: Buffer,
  { id, seq, ...place }: { readonly id: string; readonly seq: number } & Omit<Tail, 'bytes'>,
): Promise<void> {
  await using(path, constants.O_RDWR, async (file) => {
    await writeAll(file, frames, place.at)
    await settledUninterrupted(() => file.datasync())
    await putMark(file, { state: 'closed', id, seq, tail: { ...place, bytes: frames.length } })
  })
}

/** Shorter than recorded if the file was cut. */
export async function readTail(
  path: string,
  { at, bytes }: Pick<Tail, 'at' | 'bytes'>,
): Promise<Buffer> {
  return using(path, constants.O_RDONLY, async (file) => {
    const frames = Buffer.alloc(bytes)
    const { bytesRead } = await file.read(frames, 0, bytes, at)
    return frames.subarray(0, bytesRead)
  })
}

async function putMark(file: FileHandle, mark: LogMark): Promise<void> {
  const { page_bytes, generation } = await readIn(file)
  const payload = bytesOf(mark)
  const placed = placedMark(page_bytes, 'commit_log', { generation: generation + 1, payload })
  await writeAll(file, placed.bytes, placed.at)
  await settledUninterrupted(() => file.datasync())
}

function bytesOf(mark: LogMark): Buffer {
  return Buffer.from(JSON.stringify(mark))
}

async function readIn(file: FileHandle): Promise<{
  readonly page_bytes: number
  readonly generation: number
  readonly mark: LogMark | undefined
}> {
  const start = Buffer.alloc(2 * page_bytes_max)
  const { bytesRead } = await settledUninterrupted(() => file.read(start, 0, start.length, 0))
  const [meta] = readMetas(start.subarray(0, bytesRead)) ?? []
  if (meta === undefined) return { page_bytes: 0, generation: 0, mark: undefined }
  const { page_bytes } = meta
  const found = readMark(file.fd, page_bytes, 'commit_log')
  const mark = found && (parsePlain(found.payload.toString('utf8')) as LogMark)
  return { page_bytes, generation: found?.generation ?? 0, mark }
}

async function using<T>(
  path: string,
  flags: number,
  work: (file: FileHandle) => Promise<T>,
): Promise<T> {
  const file = await open(path, flags)
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const left = bytes.subarray(from)
    const { bytesWritten } = await file.write(left, 0, left.length, at + from)
    if (bytesWritten === 0) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
    from += bytesWritten
  }
}
