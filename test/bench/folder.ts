/**
 * The folder of a run: compiled scripts of the children, certificates and data files. It is a new
 * folder in the system's temp folder, removed when the run ends.
 */
import { constants } from 'node:fs'
import { copyFile, mkdtemp, open, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { makeCertificates } from './certificates.ts'

export interface BenchFolder {
  readonly path: string
  /** The certificates of the CA, the server and the client. */
  readonly tls_folder: string
  /** The path of a child's compiled script. */
  script(name: ChildName): string
  /** A new path of a data file. */
  newPath(): string
  /** A copy of a closed data file, synced so that its write-back disturbs no slot. */
  copy(path: string): Promise<string>
  remove(): Promise<void>
}

const child_names = [
  'engine-child',
  'floor-http',
  'floor-grpc',
  'floor-store',
  'client-http',
  'client-grpc',
  'client-library',
  'lives-child',
  'rival-sqlite',
  'lives-bullmq',
  'lives-restate',
  'lives-http',
  'cluster/ours',
  'cluster/floor',
  'cluster/relay',
  'cluster/node-child',
  'cluster/rival-dbos',
  'cluster/rival-pg-boss',
  'cluster/rival-graphile-worker',
] as const
/** The engine starts its threads from scripts beside its own. */
const threads = [
  ['checkpoint-child', join(import.meta.dirname, '../../src/store/commit-log/checkpoint-child.ts')],
  ['scan-worker', join(import.meta.dirname, '../../src/store/lmdb/scan-worker.ts')],
  ['code-worker', join(import.meta.dirname, '../../src/executors/code-worker.ts')],
]
export type ChildName = (typeof child_names)[number]

export async function createBenchFolder(): Promise<BenchFolder> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'conveyor-bench-')))
  // The scripts are bundled without packages, which they resolve through this link.
  await symlink(resolve(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  const own = child_names.map((name) => [name, join(import.meta.dirname, `${name}.ts`)])
  await build({
    entryPoints: Object.fromEntries([...own, ...threads]),
    outdir: folder,
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
    logLevel: 'warning',
  })
  const tls_folder = join(folder, 'tls')
  await makeCertificates(tls_folder)
  let files = 0
  const newPath = (): string => join(folder, `${++files}.lmdb`)
  return {
    path: folder,
    tls_folder,
    script: (name) => join(folder, `${name}.js`),
    newPath,
    async copy(path) {
      const copied = newPath()
      await copyFile(path, copied, constants.COPYFILE_FICLONE)
      const file = await open(copied, 'r+')
      await file.sync()
      await file.close()
      return copied
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}
