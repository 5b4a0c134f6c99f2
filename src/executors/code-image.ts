/**
 * Images of the memory of a WebAssembly instance. An image holds the instance as it was when it was
 * ready for code; copied back, it undoes all that a run has done, and pointers into that memory are
 * valid again. Pages of zeros take no room in an image.
 */
import type { WasmMemory } from './code-wasm.ts'

/** By page; undefined for a page of zeros, and for those that the memory has grown by since. */
export type MemoryImage = readonly (Buffer | undefined)[]

const page_bytes = 65_536
const zeros = Buffer.alloc(page_bytes)

export function imageOf(memory: WasmMemory): MemoryImage {
  return pagesOf(memory).map((page) => (page.equals(zeros) ? undefined : Buffer.from(page)))
}

/** Makes every byte of the memory that of the image. */
export function restore(memory: WasmMemory, image: MemoryImage): void {
  for (const [at, page] of pagesOf(memory).entries()) {
    const wanted = image[at] ?? zeros
    // Pages that no run has touched are only read, so the system need not provide them.
    if (!page.equals(wanted)) wanted.copy(page)
  }
}

function pagesOf({ buffer }: WasmMemory): Buffer[] {
  return Array.from({ length: buffer.byteLength / page_bytes }, (_, at) =>
    Buffer.from(buffer, at * page_bytes, page_bytes),
  )
}
