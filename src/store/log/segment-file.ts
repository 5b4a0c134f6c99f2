/**
 * The file of a segment: opened so that each write syncs itself and, where system and disk take it,
 * goes past the system's cache.
 */
import { close, constants, fdatasync, open, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import { block_bytes, blockRoom } from './blocks.ts'

export interface SegmentFile {
  /** Whole blocks of a `blockRoom`, at the start of a block. On disk when it resolves. */
  write(blocks: Buffer, at: number): Promise<void>
  /** The same, here and now; only where `syncs_itself`. */
  writeNow(blocks: Buffer, at: number): void
  /** Makes the file longer, also while it is written to: so not past the cache, which waits. */
  fill(zeros: Buffer, at: number): Promise<void>
  close(): Promise<void>
}

/** Where the system knows the flag each write syncs itself; elsewhere a call does it behind. */
const sync_flag: number | undefined = process.platform === 'linux' ? constants.O_DSYNC : undefined
export const syncs_itself = sync_flag !== undefined
const past_cache: number | undefined = constants.O_DIRECT
const empty_block = blockRoom(block_bytes).subarray(0, block_bytes)

/** A new file (mode 0600) whose name is not taken. */
export async function createFile(path: string): Promise<SegmentFile> {
  const { O_RDWR, O_CREAT, O_EXCL } = constants
  const flags = O_RDWR | (sync_flag ?? 0)
  const fd = await promisify(open)(path, flags | O_CREAT | O_EXCL, 0o600)
  try {
    return fileOf(fd, await openDirect(path, flags))
  } catch (error) {
    await promisify(close)(fd)
    throw error
  }
}

/**
 * Whether a handle past the cache can be had is not known before a block was written with it: file
 * systems refuse it as they open the file, or for blocks of that size, or not at all.
 */
async function openDirect(path: string, flags: number): Promise<number | undefined> {
  if (past_cache === undefined) return undefined
  let fd: number | undefined
  try {
    fd = await promisify(open)(path, flags | past_cache)
    await writeAll(fd, empty_block, block_bytes)
    return fd
  } catch (error) {
    if (fd !== undefined) await promisify(close)(fd)
    if (isRefusal(error)) return undefined
    throw error
  }
}

function fileOf(cached: number, direct: number | undefined): SegmentFile {
  let fd = direct ?? cached

  /** What a disk takes may change under us, and a room that grew need not be aligned. */
  function giveUpDirect(error: unknown): void {
    if (fd === cached || !isRefusal(error)) throw error
    fd = cached
  }

  return {
    async write(blocks, at) {
      try {
        await writeAll(fd, blocks, at)
      } catch (error) {
        giveUpDirect(error)
        await writeAll(fd, blocks, at)
      }
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
    async close() {
      if (direct !== undefined) await promisify(close)(direct)
      await promisify(close)(cached)
    },
  }
}

function writeAll(fd: number, blocks: Buffer, at: number): Promise<void> {
  return new Promise((resolve, reject) => {
    write(fd, blocks, 0, blocks.length, at, (error, written) => {
      if (error !== null) reject(error)
      else if (written !== blocks.length) reject(cutShort(written, blocks))
      else if (syncs_itself) resolve()
      else fdatasync(fd, (failed) => (failed === null ? resolve() : reject(failed)))
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
  return new Error(`only ${written} of ${blocks.length} bytes were written`)
}
