/**
 * better-sqlite3 has a native part, which nothing here may make while packages are installed. The
 * bench makes it when it is first needed, by the package's own install script: it takes a prebuilt
 * one where it can be had, else it compiles, which takes a minute.
 */
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'

const resolve = createRequire(import.meta.url).resolve
const probe = "new (require('better-sqlite3'))(':memory:').close()"

/** Answers whether it works; says why not. */
export function buildSqlite(print: (text: string) => void): boolean {
  try {
    if (works()) return true
    const folder = dirname(resolve('better-sqlite3/package.json'))
    print('making the native part of better-sqlite3')
    execFileSync('npm', ['run', 'install'], { cwd: folder, stdio: 'pipe' })
    if (works()) return true
    print('better-sqlite3 does not work here; its cells are left out')
  } catch (error) {
    const { stderr = error } = error as { stderr?: unknown }
    print(`better-sqlite3 cannot be made here; its cells are left out: ${stderr}`)
  }
  return false
}

/** In a process of its own: a native part for another Node may end it. */
function works(): boolean {
  try {
    const options = { cwd: import.meta.dirname, stdio: 'ignore' } as const
    execFileSync(process.execPath, ['-e', probe], options)
    return true
  } catch {
    return false
  }
}
