/**
 * The file of a segment, written in whole blocks. Each write syncs itself (O_DSYNC) and bypasses
 * the page cache (O_DIRECT), which saves a tenth of a short write. Where the system or disk refuses
 * one of them, the file is written without it, as durable and slower, and an event says so.
 */
import { close, constants, fdatasync, fstat, open, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'

export const block_bytes = 4096

export function startOfBlock(at: number): number {
  return at - (at % block_bytes)
}

export function endOfBlock(at: number): number {
  return startOfBlock(at + block_bytes - 1)
}

const wasm_page_bytes = 65_536

/** Node's types lack it. */
interface WasmMemory {
  readonly Memory: new (size: {
    readonly initial: number
    readonly maximum: number
    readonly shared: true
  }) => { readonly buffer: SharedArrayBuffer }
}
const { Memory } = (globalThis as unknown as { readonly WebAssembly: WasmMemory }).WebAssembly

/**
 * Memory that starts at a block boundary, as O_DIRECT requires; only WebAssembly guarantees that.
 * `shared`, because V8 counts other memory towards garbage collection, though most of this is only
 * reserved. Without WebAssembly memory any buffer serves, and writes are cached.
 */
export function alignedMemory(bytes: number): Buffer {
  const pages = Math.ceil(bytes / wasm_page_bytes)
  try {
    return Buffer.from(new Memory({ initial: pages, maximum: pages, shared: true }).buffer)
  } catch {
    return Buffer.from(new SharedArrayBuffer(endOfBlock(bytes)))
  }
}

export interface SegmentFile {
  /** Whether a write is durable when it returns. */
  readonly syncs_itself: boolean
  /** Writes aligned whole blocks at a block boundary. Durable when it resolves. */
  write(blocks: Buffer, at: number): Promise<void>
  /** Synchronous; only if `syncs_itself`. */
  writeNow(blocks: Buffer, at: number): void
  /** Extends the file, also during a write. Cached: direct writes would wait for it. */
  fill(zeros: Buffer, at: number): Promise<void>
  /** Makes an earlier process's writes durable. */
  sync(): Promise<void>
  bytes(): Promise<number>
  close(): Promise<void>
}

/** Called with a flag that the disk does not support. */
export type OnUnsupported = (flag: 'O_DSYNC' | 'O_DIRECT') => void

/** Elsewhere a sync call follows the write. */
const sync_flag: number | undefined = process.platform === 'linux' ? constants.O_DSYNC : undefined
const direct_flag: number | undefined = constants.O_DIRECT
const empty_block = alignedMemory(block_bytes).subarray(0, block_bytes)

/** Mode 0600; rejects if the file exists. */
export function createFile(
  path: string,
  onUnsupported: OnUnsupported = ignore,
): Promise<SegmentFile> {
  const { O_CREAT, O_EXCL } = constants
  return openWith(path, O_CREAT | O_EXCL, onUnsupported, tryBlock)
}

/** Changes nothing before the first `write`. */
export function openFile(
  path: string,
  onUnsupported: OnUnsupported = ignore,
): Promise<SegmentFile> {
  return openWith(path, 0, onUnsupported, async () => {})
}

async function openWith(
  path: string,
  flags: number,
  onUnsupported: OnUnsupported,
  tryDirect: (fd: number) => Promise<void>,
): Promise<SegmentFile> {
  const synced = await openSynced(path, flags, onUnsupported)
  try {
    return fileOf(
      synced.fd,
      await openDirect(path, synced.flag, onUnsupported, tryDirect),
      synced.flag,
    )
  } catch (error) {
    await promisify(close)(synced.fd)
    throw error
  }
}

/** `flag` makes each write sync itself; 0 if none does. */
async function openSynced(
  path: string,
  flags: number,
  onUnsupported: OnUnsupported,
): Promise<{ readonly fd: number; readonly flag: number }> {
  const openWithFlag = (flag: number): Promise<number> =>
    promisify(open)(path, constants.O_RDWR | flags | flag, 0o600)
  if (sync_flag === undefined) return { fd: await openWithFlag(0), flag: 0 }
  try {
    return { fd: await openWithFlag(sync_flag), flag: sync_flag }
  } catch (error) {
    if (!isRefusal(error)) throw error
    const fd = await openWithFlag(0)
    onUnsupported('O_DSYNC')
    return { fd, flag: 0 }
  }
}

/**
 * A descriptor that bypasses the cache, if possible. File systems refuse it at the open, or at a
 * write of this block size, so a new file is tried with one block.
 */
async function openDirect(
  path: string,
  flag: number,
  onUnsupported: OnUnsupported,
  tryDirect: (fd: number) => Promise<void>,
): Promise<number | undefined> {
  if (direct_flag === undefined) return undefined
  let fd: number | undefined
  try {
    fd = await promisify(open)(path, constants.O_RDWR | flag | direct_flag)
    await tryDirect(fd)
    return fd
  } catch (error) {
    if (fd !== undefined) await promisify(close)(fd)
    if (!isRefusal(error)) throw error
    onUnsupported('O_DIRECT')
    return undefined
  }
}

function fileOf(cached: number, direct: number | undefined, flag: number): SegmentFile {
  const syncs_itself = flag !== 0
  let fd = direct ?? cached

  /** A disk may refuse direct writes later, and fallback memory need not be aligned. */
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

/** Continues after a partial write; the next write fails with the reason. */
function writeAll(fd: number, blocks: Buffer, at: number): Promise<void> {
  return new Promise((resolve, reject) => {
    write(fd, blocks, 0, blocks.length, at, (error, written) => {
      if (error !== null) reject(error)
      else if (written === blocks.length) resolve()
      else if (written === 0) reject(nothingWritten())
      else resolve(writeAll(fd, blocks.subarray(written), at + written))
    })
  })
}

function writeAllNow(fd: number, blocks: Buffer, at: number): void {
  const written = writeSync(fd, blocks, 0, blocks.length, at)
  if (written === 0) throw nothingWritten()
  if (written < blocks.length) writeAllNow(fd, blocks.subarray(written), at + written)
}

const refusals: readonly unknown[] = ['EINVAL', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS']

/** Whether the system refuses the flag rather than this write. */
function isRefusal(error: unknown): boolean {
  return refusals.includes((error as { code?: unknown }).code)
}

function nothingWritten(): Error {
  return Object.assign(new Error('the disk took nothing'), { code: 'ENOSPC' })
}

function ignore(): void {}
