/**
 * Whether LMDB can open and map a file, tried by a process of its own: where it cannot, it ends the
 * process that asks (its way out of a failed opening frees the same memory twice), and no word of
 * ours would be said.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fault } from '../../core/faults.ts'
import { lmdbOptions } from './options.ts'

/** Throws `not_possible` with a sentence where it cannot. The file must be one of LMDB's. */
export async function probeLmdb(path: string): Promise<void> {
  const { noSubdir, overlappingSync, maxReaders } = lmdbOptions
  const options = JSON.stringify({ noSubdir, overlappingSync, maxReaders })
  const [lmdb, file] = [import.meta.resolve('lmdb'), path].map((text) => JSON.stringify(text))
  const code = `import(${lmdb}).then(({ open }) => open(${file}, ${options}).close())`
  const child = spawn(process.execPath, ['-e', code], { stdio: 'ignore' })
  const [exit, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (exit === 0) return
  const why = `${path}: it cannot be opened and mapped (${signal ?? `exit ${exit}`})`
  throw fault('not_possible', `${why}; look at the disk, and at limits of memory`)
}
