/**
 * Builds the native part of better-sqlite3, whose install script package.json forbids during `npm ci`.
 * The first benchmark run executes that script: it downloads a prebuilt binary or compiles one, which
 * takes a minute.
 */
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'

const resolve = createRequire(import.meta.url).resolve
const probe = "new (require('better-sqlite3'))(':memory:').close()"

/** Returns whether better-sqlite3 works; prints why it does not. */
export function buildSqlite(print: (text: string) => void): boolean {
  try {
    if (isWorking()) return true
    const folder = dirname(resolve('better-sqlite3/package.json'))
    print('building the native part of better-sqlite3')
    execFileSync('npm', ['run', 'install'], { cwd: folder, stdio: 'pipe' })
    if (isWorking()) return true
    print('better-sqlite3 does not work here; its cells are left out')
  } catch (error) {
    const { stderr = error } = error as { stderr?: unknown }
    print(`better-sqlite3 cannot be built here; its cells are left out: ${stderr}`)
  }
  return false
}

/** Tried in another process, which a binary for another Node may crash. */
function isWorking(): boolean {
  try {
    const options = { cwd: import.meta.dirname, stdio: 'ignore' } as const
    execFileSync(process.execPath, ['-e', probe], options)
    return true
  } catch {
    return false
  }
}
