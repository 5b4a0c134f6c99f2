/**
 * The two things of WebAssembly that code needs, with their types, which Node's leave out.
 */

/** A compiled module; threads can be given it. */
export type WasmModule = object

/** Memory of a WebAssembly instance; `buffer` is another one after it has grown. */
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

/** Compiled once, an instance of it is made in a millisecond, in any thread. */
export function compileWasm(bytes: Uint8Array): Promise<WasmModule> {
  return host.compile(bytes)
}

/** Grows from `bytes_min` up to `bytes_max` and never shrinks. */
export function newWasmMemory(bytes_min: number, bytes_max: number): WasmMemory {
  const initial = Math.ceil(bytes_min / page_bytes)
  return new host.Memory({
    initial,
    maximum: Math.max(initial, Math.floor(bytes_max / page_bytes)),
  })
}
