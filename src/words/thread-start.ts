/**
 * How a thread starts from a script of ours: compiled, or as the TypeScript of a checkout. A
 * bundle has no scripts; it replaces the files that ask here.
 */
import type { WorkerOptions } from 'node:worker_threads'

export interface ThreadStart {
  /** A file, or with `eval` the text of a CommonJS script. */
  readonly script: URL | string
  readonly options: Pick<WorkerOptions, 'eval' | 'execArgv'>
}

/** `here` is the URL of the module that asks; `name` of the script beside it, without its end. */
export function threadStart(here: string, name: string): ThreadStart {
  // What was loaded ahead of the embedder's program is no business of the thread's.
  const execArgv: string[] = []
  if (!here.endsWith('.ts')) {
    return { script: new URL(`./${name}.js`, here), options: { execArgv } }
  }
  // A checkout runs its TypeScript by tsx, which has to be let into each thread.
  const steps = [
    `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))})`,
    `.then(({ register }) => register())`,
    `.then(() => import(${JSON.stringify(new URL(`./${name}.ts`, here).href)}))`,
  ]
  return { script: steps.join(''), options: { eval: true, execArgv } }
}
