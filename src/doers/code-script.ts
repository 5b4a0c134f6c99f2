/**
 * Where a thread for code starts: the script beside this file, and the bytes of QuickJS in its
 * package. The only file that knows; a bundle, in which neither is a file, puts another in its
 * place that answers the same from what it carries.
 */
import { readFile } from 'node:fs/promises'
import type { WorkerOptions } from 'node:worker_threads'

export interface CodeScript {
  /** A file, or with `eval` the text of a CommonJS script. */
  readonly script: URL | string
  readonly options: Pick<WorkerOptions, 'eval' | 'execArgv'>
  /** Bytes of the WebAssembly module. */
  readonly wasm: Uint8Array
}

/** Rejects where the package of QuickJS is not installed. */
export async function codeScript(): Promise<CodeScript> {
  const wasm = import.meta.resolve('@jitl/quickjs-wasmfile-release-sync/wasm')
  return { ...start(import.meta.url), wasm: await readFile(new URL(wasm)) }
}

function start(here: string): Omit<CodeScript, 'wasm'> {
  // What was loaded ahead of the embedder's program is no business of the thread's.
  const execArgv: string[] = []
  if (!here.endsWith('.ts')) {
    return { script: new URL('./code-worker.js', here), options: { execArgv } }
  }
  // A checkout runs its TypeScript by tsx, which has to be let into each thread.
  const steps = [
    `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))})`,
    `.then(({ register }) => register())`,
    `.then(() => import(${JSON.stringify(new URL('./code-worker.ts', here).href)}))`,
  ]
  return { script: steps.join(''), options: { eval: true, execArgv } }
}
