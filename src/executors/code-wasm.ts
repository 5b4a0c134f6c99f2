/**
 * The two parts of the WebAssembly API that code needs, with their types, which Node's type
 * definitions lack.
 */

/** A compiled module. It can be posted to threads. */
export type WasmModule = object

/** Memory of a WebAssembly instance. `buffer` is a new one after the memory has grown. */
export interface WasmMemory {
  readonly buffer: ArrayBuffer
}

const { WebAssembly: host } = globalThis as unknown as {
  readonly WebAssembly: {
    compile(bytes: Uint8Array): Promise<WasmModule>
    readonly Memory: new (pages: { initial: number; maximum: number }) => WasmMemory
  }
}

const page_bytes = 65_536

/** Compiles once; any thread then creates an instance in a millisecond. */
export function compileWasm(bytes: Uint8Array): Promise<WasmModule> {
  return host.compile(bytes)
}

/** Memory that grows from `bytes_min` up to `bytes_max` and never shrinks. */
export function newWasmMemory(bytes_min: number, bytes_max: number): WasmMemory {
  const initial = Math.ceil(bytes_min / page_bytes)
  return new host.Memory({
    initial,
    maximum: Math.max(initial, Math.floor(bytes_max / page_bytes)),
  })
}

/**
 * Images of the memory of a WebAssembly instance. An image holds the instance as it was when it was
 * ready for code; copied back, it undoes all that a run has done, and pointers into that memory are
 * valid again. Pages of zeros take no room in an image.
 */
/** By page; undefined for a page of zeros, and for those that the memory has grown by since. */
export type MemoryImage = readonly (Buffer | undefined)[]

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
