/**
 * Whole blocks of a disk, in memory and in a file. From memory that is aligned as they are they go
 * to the disk as they stand, past the system's cache, which saves a short write a tenth of its
 * time. With the cache in between a part of a block is written as all of it too, so what shares a
 * block with a write is at no more risk.
 */
export const block_bytes = 4096

const page_bytes = 65_536

/** The part of WebAssembly that is used here; Node's types do not have it. */
interface Pages {
  readonly Memory: new (size: {
    readonly initial: number
    readonly maximum: number
    readonly shared: true
  }) => { readonly buffer: SharedArrayBuffer }
}
const { Memory } = (globalThis as unknown as { readonly WebAssembly: Pages }).WebAssembly

/**
 * Memory that begins where a block may and that threads can share; it costs none before it is
 * written. Only WebAssembly says where its memory begins. Where it gets none any memory will do,
 * and the cache is used.
 */
export function blockRoom(bytes: number): Buffer {
  const pages = Math.ceil(bytes / page_bytes)
  try {
    return Buffer.from(new Memory({ initial: pages, maximum: pages, shared: true }).buffer)
  } catch {
    return Buffer.from(new SharedArrayBuffer(endOfBlock(bytes)))
  }
}

/** The place where the block begins that `place` is in. */
export function startOfBlock(place: number): number {
  return place - (place % block_bytes)
}

/** The place where the blocks end that are needed up to `place`. */
export function endOfBlock(place: number): number {
  return startOfBlock(place + block_bytes - 1)
}
