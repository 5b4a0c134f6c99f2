/**
 * Finds the script of a code thread and the bytes of QuickJS. A bundle, in which neither is a file
 * of its own, replaces this file by one that reads both from the bundle.
 */
import { readFile } from 'node:fs/promises'
import { type ThreadStart, threadStart } from '../core/thread-start.ts'

export interface CodeScript extends ThreadStart {
  /** The bytes of the WebAssembly module. */
  readonly wasm: Uint8Array
}

/** Throws `not_possible` where a bundler has left the script out. */
export function codeStart(): ThreadStart {
  return threadStart(import.meta.url, 'code-worker')
}

/** Rejects where the QuickJS package is not installed. */
export async function codeScript(): Promise<CodeScript> {
  const wasm = import.meta.resolve('@jitl/quickjs-wasmfile-release-sync/wasm')
  return { ...codeStart(), wasm: await readFile(new URL(wasm)) }
}
