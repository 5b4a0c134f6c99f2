/**
 * Finds the script of a code thread, the bytes of QuickJS and the texts of libraries. A bundle, in
 * which none of them is a file of its own, replaces this file by one that reads them from itself.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type ThreadStart, threadStart } from '../core/thread-start.ts'
import type { CodeLibrary } from '../process/logics/code-libraries.ts'
import { libraryFiles } from './code-library-files.ts'

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

/** The text of a library: the build puts it beside this module, a checkout has its package. */
export function libraryText(name: CodeLibrary): Promise<string> {
  const shipped = new URL(`./code-libraries/${name}.js`, import.meta.url)
  if (existsSync(shipped)) return readFile(shipped, 'utf8')
  return readFile(new URL(import.meta.resolve(libraryFiles[name])), 'utf8')
}
