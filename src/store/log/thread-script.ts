/**
 * Where the thread of a log starts: the script beside this file. The only file that knows; a
 * bundle, in which that is no file, puts another in its place.
 */
import type { WorkerOptions } from 'node:worker_threads'

export interface ThreadScript {
  /** A file, or with `eval` the text of a CommonJS script. */
  readonly script: URL | string
  readonly options: Pick<WorkerOptions, 'eval' | 'execArgv'>
  /** What the script itself wants to know. */
  readonly data: object
}

export function threadScript(): ThreadScript {
  return { ...start(import.meta.url), data: {} }
}

function start(here: string): Omit<ThreadScript, 'data'> {
  // What was loaded ahead of the embedder's program is no business of the thread's.
  const execArgv: string[] = []
  if (!here.endsWith('.ts')) {
    return { script: new URL('./thread-worker.js', here), options: { execArgv } }
  }
  // A checkout runs its TypeScript by tsx, which has to be let into each thread.
  const steps = [
    `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))})`,
    `.then(({ register }) => register())`,
    `.then(() => import(${JSON.stringify(new URL('./thread-worker.ts', here).href)}))`,
  ]
  return { script: steps.join(''), options: { eval: true, execArgv } }
}
