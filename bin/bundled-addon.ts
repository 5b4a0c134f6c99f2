/**
 * Inside the one-file bundle only: loads the native part of fs-native-extensions, which an
 * operating system takes from a file alone, out of the text that bin/bundle.ts has put beside this
 * code.
 *
 * The bytes go to a folder that only this user can enter, under a name nobody can foresee, and
 * leave the disk as soon as they are loaded. Windows keeps a loaded file, so there the folder stays
 * behind.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/**
 * Where the addon may be written, best first. A temporary folder may be mounted so that nothing in
 * it can be run; the bundle's own folder cannot, because lmdb's native part is loaded from there.
 */
const folders: readonly (() => string)[] = [tmpdir, () => import.meta.dirname, () => process.cwd()]

/**
 * Answers the exports of this machine's addon. `packed` has one text a platform (`linux-x64`): the
 * file, gzipped, in base64. Throws where there is none for it, or no folder to load it from.
 */
export function loadAddon(packed: Readonly<Record<string, string>>): unknown {
  const platform = `${process.platform}-${process.arch}`
  const text = packed[platform]
  if (text === undefined) throw new Error(`this bundle has no file lock for ${platform}`)
  const bytes = gunzipSync(Buffer.from(text, 'base64'))
  const failures: unknown[] = []
  for (const folder of folders) {
    try {
      return loadFrom(folder(), bytes)
    } catch (error) {
      failures.push(error)
    }
  }
  const advice = 'set TMPDIR to a folder that may be written to and loaded from'
  throw new AggregateError(failures, `the file lock cannot be loaded; ${advice}`)
}

function loadFrom(folder: string, bytes: Buffer): unknown {
  const own = mkdtempSync(join(folder, 'conveyor-'))
  try {
    const path = join(own, 'lock.node')
    writeFileSync(path, bytes, { mode: 0o600, flag: 'wx' })
    const addon: { exports: unknown } = { exports: {} }
    process.dlopen(addon, path)
    return addon.exports
  } finally {
    remove(own)
  }
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    if (process.platform !== 'win32') throw error
  }
}
