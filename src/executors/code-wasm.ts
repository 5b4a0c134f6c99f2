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
