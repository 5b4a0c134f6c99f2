/**
 * Finds the script of a worker thread or of the checkpoint process: JavaScript in the package,
 * TypeScript in a checkout. The package's bundle contains the scripts as text; other bundles lack
 * them and are refused.
 */
import { existsSync } from 'node:fs'
import type { WorkerOptions } from 'node:worker_threads'
import { fault } from './faults.ts'

export interface ThreadStart {
  /** A file, or with `eval` the text of a CommonJS script. */
  readonly script: URL | string
  readonly options: Pick<WorkerOptions, 'eval' | 'execArgv'>
}

/** `name` is a script beside `here`, without extension. Throws `not_possible` if it is missing. */
export function threadStart(here: string | undefined, name: string): ThreadStart {
  // A module bundled as CommonJS has no URL.
  if (here === undefined) throw bundled(name)
  // Modules preloaded for the embedder's program must not run in the thread.
  const execArgv: string[] = []
  if (!here.endsWith('.ts')) {
    const script = new URL(`./${name}.js`, here)
    if (!existsSync(script)) throw bundled(name)
    return { script, options: { execArgv } }
  }
  // A checkout runs TypeScript through tsx, which is registered in each thread.
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
