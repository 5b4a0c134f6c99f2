/**
 * The file of a segment: opened so that each write syncs itself and, where system and disk take it,
 * goes past the system's cache. Where they take one of the two not, the file is written without it,
 * as durable as before and slower, and that is told.
 */
import { close, constants, fdatasync, fstat, open, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import { block_bytes, blockRoom } from './blocks.ts'

export interface SegmentFile {
  /** Whether a write is on disk with itself, and not only with a call behind it. */
  readonly syncs_itself: boolean
  /** Whole blocks of a `blockRoom`, at the start of a block. On disk when it resolves. */
  write(blocks: Buffer, at: number): Promise<void>
  /** The same, here and now; only where it `syncs_itself`. */
  writeNow(blocks: Buffer, at: number): void
  /** Makes the file longer, also while it is written to: so not past the cache, which waits. */
  fill(zeros: Buffer, at: number): Promise<void>
  /** What was written by whoever had the file before is on disk. */
  sync(): Promise<void>
  bytes(): Promise<number>
  close(): Promise<void>
}

/** Told in a sentence what the disk does not take. */
export type OnNotice = (sentence: string) => void

/** Where the system knows the flag each write syncs itself; elsewhere a call does it behind. */
const sync_flag: number | undefined = process.platform === 'linux' ? constants.O_DSYNC : undefined
const past_cache: number | undefined = constants.O_DIRECT
const empty_block = blockRoom(block_bytes).subarray(0, block_bytes)

/** A new file (mode 0600) whose name is not taken. */
export function createFile(path: string, onNotice: OnNotice = ignore): Promise<SegmentFile> {
  const { O_CREAT, O_EXCL } = constants
  return openWith(path, O_CREAT | O_EXCL, onNotice, tryBlock)
}

/** One that is there. Nothing of it is written before its first `write`. */
export function openFile(path: string, onNotice: OnNotice = ignore): Promise<SegmentFile> {
  return openWith(path, 0, onNotice, async () => {})
}

async function openWith(
  path: string,
  flags: number,
  onNotice: OnNotice,
  tryDirect: (fd: number) => Promise<void>,
): Promise<SegmentFile> {
  const synced = await openSynced(path, flags, onNotice)
  try {
    return fileOf(synced.fd, await openDirect(path, synced.flag, onNotice, tryDirect), synced.flag)
  } catch (error) {
    await promisify(close)(synced.fd)
    throw error
  }
}

/** `flag` is what makes a write sync itself, 0 where nothing does. */
async function openSynced(
  path: string,
  flags: number,
  onNotice: OnNotice,
): Promise<{ readonly fd: number; readonly flag: number }> {
  const openIt = (flag: number): Promise<number> =>
    promisify(open)(path, constants.O_RDWR | flags | flag, 0o600)
  if (sync_flag === undefined) return { fd: await openIt(0), flag: 0 }
  try {
    return { fd: await openIt(sync_flag), flag: sync_flag }
  } catch (error) {
    if (!isRefusal(error)) throw error
    const fd = await openIt(0)
    onNotice('the disk takes no O_DSYNC: each commit is synced by a call of its own')
    return { fd, flag: 0 }
  }
}

/**
 * Whether a handle past the cache can be had is not known before a block was written with it: file
 * systems refuse it as they open the file, or for blocks of that size, or not at all.
 */
async function openDirect(
  path: string,
  flag: number,
  onNotice: OnNotice,
  tryIt: (fd: number) => Promise<void>,
): Promise<number | undefined> {
  if (past_cache === undefined) return undefined
  let fd: number | undefined
  try {
    fd = await promisify(open)(path, constants.O_RDWR | flag | past_cache)
    await tryIt(fd)
    return fd
  } catch (error) {
    if (fd !== undefined) await promisify(close)(fd)
    if (!isRefusal(error)) throw error
    onNotice('the disk takes no O_DIRECT: commits go through the system’s cache')
    return undefined
  }
}

function fileOf(cached: number, direct: number | undefined, flag: number): SegmentFile {
  const syncs_itself = flag !== 0
  let fd = direct ?? cached

  /** What a disk takes may change under us, and a room that grew need not be aligned. */
  function giveUpDirect(error: unknown): void {
    if (fd === cached || !isRefusal(error)) throw error
    fd = cached
  }

  return {
    syncs_itself,
    async write(blocks, at) {
      try {
        await writeAll(fd, blocks, at)
      } catch (error) {
        giveUpDirect(error)
        await writeAll(fd, blocks, at)
      }
      if (!syncs_itself) await promisify(fdatasync)(fd)
    },
    writeNow(blocks, at) {
      try {
        writeAllNow(fd, blocks, at)
      } catch (error) {
        giveUpDirect(error)
        writeAllNow(fd, blocks, at)
      }
    },
    fill: (zeros, at) => writeAll(cached, zeros, at),
    sync: () => promisify(fdatasync)(cached),
    bytes: async () => (await promisify(fstat)(cached)).size,
    async close() {
      if (direct !== undefined) await promisify(close)(direct)
      await promisify(close)(cached)
    },
  }
}

function tryBlock(fd: number): Promise<void> {
  return writeAll(fd, empty_block, block_bytes)
}

function writeAll(fd: number, blocks: Buffer, at: number): Promise<void> {
  return new Promise((resolve, reject) => {
    write(fd, blocks, 0, blocks.length, at, (error, written) => {
      if (error !== null) reject(error)
      else if (written !== blocks.length) reject(cutShort(written, blocks))
      else resolve()
    })
  })
}

function writeAllNow(fd: number, blocks: Buffer, at: number): void {
  const written = writeSync(fd, blocks, 0, blocks.length, at)
  if (written !== blocks.length) throw cutShort(written, blocks)
}

const refusals: readonly unknown[] = ['EINVAL', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS']

/** Of a way to write, not of the bytes. */
function isRefusal(error: unknown): boolean {
  return refusals.includes((error as { code?: unknown }).code)
}

function cutShort(written: number, blocks: Buffer): Error {
  const error = new Error(`only ${written} of ${blocks.length} bytes were written`)
  return Object.assign(error, { code: 'ENOSPC' })
}

function ignore(): void {}
