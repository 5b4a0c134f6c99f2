/**
 * How a thread starts from a script of ours: compiled, or as the TypeScript of a checkout. Our own
 * bundle carries the scripts as text, in place of the files that ask here; a bundle of somebody
 * else has lost them, and is refused before it begins.
 */
import { existsSync } from 'node:fs'
import type { WorkerOptions } from 'node:worker_threads'
import { fault } from './faults.ts'

export interface ThreadStart {
  /** A file, or with `eval` the text of a CommonJS script. */
  readonly script: URL | string
  readonly options: Pick<WorkerOptions, 'eval' | 'execArgv'>
}

/**
 * `here` is the URL of the module that asks; `name` of the script beside it, without its end.
 * Throws `not_possible` where the script is not there.
 */
export function threadStart(here: string | undefined, name: string): ThreadStart {
  // Bundled as CommonJS it has no URL.
  if (here === undefined) throw bundled(name)
  // What was loaded ahead of the embedder's program is no business of the thread's.
  const execArgv: string[] = []
  if (!here.endsWith('.ts')) {
    const script = new URL(`./${name}.js`, here)
    if (!existsSync(script)) throw bundled(name)
    return { script, options: { execArgv } }
  }
  // A checkout runs its TypeScript by tsx, which has to be let into each thread.
  const steps = [
    `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))})`,
    `.then(({ register }) => register())`,
    `.then(() => import(${JSON.stringify(new URL(`./${name}.ts`, here).href)}))`,
  ]
  return { script: steps.join(''), options: { eval: true, execArgv } }
}

function bundled(name: string): Error {
  return fault(
    'not_possible',
    `${name}.js is not beside conveyor-engine, which a bundler has taken from its files: ` +
      'leave it out of the bundle (esbuild: --external:conveyor-engine, Vite: ssr.external, ' +
      'others: externals) and ship node_modules/conveyor-engine with it',
  )
}
