/**
 * Finds the script of a code thread, the bytes of QuickJS and the texts of libraries. A bundle
 * replaces this file by one that has them inside.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type ThreadStart, threadStart } from '../core/thread-start.ts'
import type { CodeLibrary } from '../process/logics/code-libraries.ts'
import { libraryFiles } from './code-library-files.ts'

export interface CodeScript extends ThreadStart {
  readonly wasm: Uint8Array
}

/** Throws `not_possible` where a bundler has omitted the script. */
export function codeStart(): ThreadStart {
  return threadStart(import.meta.url, 'code-worker')
}

export async function codeScript(): Promise<CodeScript> {
  const wasm = carriedFile('quickjs.wasm', '@jitl/quickjs-wasmfile-release-sync/wasm')
  return { ...codeStart(), wasm: await readFile(wasm) }
}

export function libraryText(name: CodeLibrary): Promise<string> {
  return readFile(carriedFile(`code-libraries/${name}.js`, libraryFiles[name]), 'utf8')
}

/** A file that the build puts beside this module, and that a checkout has in a package. */
function carriedFile(name: string, in_package: string): URL {
  const carried = new URL(`./${name}`, import.meta.url)
  return existsSync(carried) ? carried : new URL(import.meta.resolve(in_package))
}
