/** The parts of the WebAssembly API that code needs; Node's types lack them. */

/** Can be posted to threads. */
export type WasmModule = object

/** `buffer` is a new one after the memory has grown. */
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
 * Images of a WebAssembly memory as it was before any code. Restoring one undoes a run and makes
 * pointers into the memory valid again. Pages of zeros take no room.
 */
/** By page; undefined for a page of zeros, and for those that the memory has grown by since. */
export type MemoryImage = readonly (Buffer | undefined)[]

const zeros = Buffer.alloc(page_bytes)

export function imageOf(memory: WasmMemory): MemoryImage {
  return pagesOf(memory).map((page) => (page.equals(zeros) ? undefined : Buffer.from(page)))
}

export function restore(memory: WasmMemory, image: MemoryImage): void {
  for (const [at, page] of pagesOf(memory).entries()) {
    const wanted = image[at] ?? zeros
    // Untouched pages are only read, so the system need not provide them.
    if (!page.equals(wanted)) wanted.copy(page)
  }
}

function pagesOf({ buffer }: WasmMemory): Buffer[] {
  return Array.from({ length: buffer.byteLength / page_bytes }, (_, at) =>
    Buffer.from(buffer, at * page_bytes, page_bytes),
  )
}
