/**
 * Part of the one-file bundle only: loads the native addon of fs-native-extensions from the text
 * that bin/bundle.ts embeds. An operating system loads an addon only from a file, so the bytes are
 * written to a folder that only this user can enter, under an unpredictable name, and removed once
 * loaded. Windows keeps a loaded file, so there the folder remains.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/**
 * The folders to try, in order. A temporary folder may be mounted noexec; the bundle's own folder
 * is not, because lmdb's addon is loaded from there.
 */
const folders: readonly (() => string)[] = [tmpdir, () => import.meta.dirname, () => process.cwd()]

/**
 * The exports of this machine's addon. `packed` maps a platform (`linux-x64`) to its addon,
 * gzipped, in base64. Throws where the platform has none, or no folder allows loading it.
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
