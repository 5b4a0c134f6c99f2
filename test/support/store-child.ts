/**
 * Child processes that run a module of the project under plain Node: built once with esbuild, so
 * that a hundred of them start quickly. Packages are loaded from the project's node_modules, and
 * the scripts of the threads are beside the child.
 *
 * A child may be built from edited sources, to run with other bounds or to show what a worse
 * program does. An edit whose text is not found fails the build.
 */
import { rmSync } from 'node:fs'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { top } from './package-folder.ts'
import { openingText, suite, suite_file } from './postgres-open.ts'

export interface BuiltChild {
  /** The script to start with `node`. */
  readonly script: string
  /** An empty folder for its files; goes with `remove`. */
  readonly folder: string
  remove(): Promise<void>
}

export interface Edit {
  /** A file below `src` or this folder. */
  readonly file: string
  readonly from: string
  readonly to: string
}

const built = new Map<string, Promise<BuiltChild>>()

/** Builds a child once in this process; its folder is removed when the process exits. */
export function builtOnce(name: string, edits: readonly Edit[] = []): Promise<BuiltChild> {
  const key = JSON.stringify([name, edits])
  let child = built.get(key)
  if (child === undefined) {
    if (built.size === 0) process.once('exit', () => removed.forEach(removeFolder))
    child = buildChild(name, edits).then((made) => {
      removed.push(made.folder)
      return made
    })
    built.set(key, child)
  }
  return child
}

const removed: string[] = []
const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true })

/** The command-line program, built once from sources with these edits. */
export const builtProgram = (edits?: readonly Edit[]): Promise<BuiltChild> =>
  builtOnce('../../bin/conveyor.ts', edits)

/** Builds `name` of this folder into one script in a new folder. */
export async function buildChild(name: string, edits: readonly Edit[] = []): Promise<BuiltChild> {
  const folder = await mkdtemp(join(tmpdir(), 'conveyor-child-'))
  const script = join(folder, 'child.js')
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await symlink(pathOf('../../node_modules'), join(folder, 'node_modules'))
  const made = new Set<Edit>()
  await build({
    entryPoints: {
      child: pathOf(name),
      'checkpoint-child': pathOf('../../src/store/commit-log/checkpoint-child.ts'),
      'scan-worker': pathOf('../../src/store/lmdb/scan-worker.ts'),
      'code-worker': pathOf('../../src/executors/code-worker.ts'),
    },
    outdir: folder,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
    plugins: [packagesByAddress, overPostgres, edited(edits, made)],
  })
  if (suite !== undefined) await writeFile(join(folder, suite_file), JSON.stringify(suite))
  const missed = edits.filter((edit) => !made.has(edit))
  if (missed.length > 0) throw new Error(`not edited: ${missed.map(({ from }) => from).join()}`)
  return { script, folder, remove: () => rm(folder, { recursive: true, force: true }) }
}

function pathOf(place: string): string {
  return join(top, 'test/support', place)
}

const packagesByAddress: Plugin = {
  name: 'packages-by-address',
  setup(setup) {
    setup.onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      if (kind === 'entry-point' || path.startsWith('node:')) return undefined
      return { path: import.meta.resolve(path), external: true }
    })
  },
}

/** In a run over PostgreSQL the child opens its files as this process does. */
const overPostgres: Plugin = {
  name: 'over-postgres',
  setup(setup) {
    if (suite === undefined) return
    const namespace = 'over-postgres'
    const opening = pathOf('../../src/open.ts')
    setup.onResolve({ filter: /\/open\.ts$/ }, ({ path, resolveDir, namespace: from }) =>
      from !== namespace && join(resolveDir, path) === opening
        ? { path: opening, namespace }
        : undefined,
    )
    setup.onLoad({ filter: /$/, namespace }, () => ({
      contents: openingText('./open.ts', '../test/support/postgres-open.ts'),
      resolveDir: pathOf('../../src'),
    }))
  },
}

/** Notes in `made` what it found to edit. */
function edited(edits: readonly Edit[], made: Set<Edit>): Plugin {
  return {
    name: 'edited',
    setup(setup) {
      const isOf = (path: string, { file }: Edit): boolean =>
        path.endsWith(`/src/${file}`) || path.endsWith(`/support/${file}`)
      // A filter that takes more files costs a turn of this process for each of them.
      const names = [...new Set(edits.map(({ file }) => basename(file)))]
      if (names.length === 0) return
      const filter = new RegExp(`[\\\\/](${names.join('|').replaceAll('.', '\\.')})$`)
      setup.onLoad({ filter }, async ({ path }) => {
        const wanted = edits.filter((edit) => isOf(path, edit))
        if (wanted.length === 0) return undefined
        let contents = await readFile(path, 'utf8')
        for (const edit of wanted) {
          if (contents.includes(edit.from)) made.add(edit)
          contents = contents.replace(edit.from, () => edit.to)
        }
        return { contents, loader: 'ts' }
      })
    },
  }
}
