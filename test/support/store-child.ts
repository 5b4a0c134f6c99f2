/**
 * Child processes that run a file of ours under plain Node: built once with esbuild, so that a
 * hundred of them start quickly. Packages are loaded from where this project has them.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export interface BuiltChild {
  /** The script to start with `node`. */
  readonly script: string
  /** An empty folder for its files; goes with `remove`. */
  readonly folder: string
  remove(): Promise<void>
}

/** Builds `name` of this folder into one script in a new folder. */
export async function buildChild(name: string): Promise<BuiltChild> {
  const folder = await mkdtemp(join(tmpdir(), 'conveyor-child-'))
  const script = join(folder, 'child.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL(name, import.meta.url))],
    outfile: script,
    bundle: true,
    platform: 'node',
    format: 'esm',
    plugins: [
      {
        name: 'packages-by-address',
        setup(setup) {
          setup.onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
            if (kind === 'entry-point' || path.startsWith('node:')) return undefined
            return { path: import.meta.resolve(path), external: true }
          })
        },
      },
    ],
  })
  return { script, folder, remove: () => rm(folder, { recursive: true, force: true }) }
}
