/**
 * Where a thread for code starts: the script beside this file, and the bytes of QuickJS in its
 * package. The only file that knows; a bundle, in which neither is a file, puts another in its
 * place that answers the same from what it carries.
 */
import { readFile } from 'node:fs/promises'
import { type ThreadStart, threadStart } from '../core/thread-start.ts'

export interface CodeScript extends ThreadStart {
  /** Bytes of the WebAssembly module. */
  readonly wasm: Uint8Array
}

/** Throws `not_possible` where a bundler has left it behind. */
export function codeStart(): ThreadStart {
  return threadStart(import.meta.url, 'code-worker')
}

/** Rejects where the package of QuickJS is not installed. */
export async function codeScript(): Promise<CodeScript> {
  const wasm = import.meta.resolve('@jitl/quickjs-wasmfile-release-sync/wasm')
  return { ...codeStart(), wasm: await readFile(new URL(wasm)) }
}
