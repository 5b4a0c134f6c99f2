/**
 * better-sqlite3, in a folder of its own like the packages of other rivals (see rival-packages.ts): the
 * version for the Node that runs this, so each Node has its folder. From 13 on the package brings its
 * binary and needs Node 22; 12 is compiled in its folder with the headers of this Node, which takes a
 * minute or two, and aborts on a Node that has newer ones than it knows.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { installPackages, loadPackage, packagesOf, runQuietly } from './rival-packages.ts'

interface Statement {
  run(...values: unknown[]): { readonly changes: number }
  get(...values: unknown[]): unknown
}

/** The part of it that the benchmark uses; the package has no types. */
export interface Database {
  pragma(text: string): unknown
  exec(text: string): void
  prepare(text: string): Statement
  /** Returns a function that runs `work` in one transaction, and rolls back when it throws. */
  transaction<Args extends unknown[]>(work: (...args: Args) => void): (...args: Args) => void
  close(): void
}

const is_compiled = Number.parseInt(process.versions.node, 10) < 22
const version = is_compiled ? '12.9.0' : '13.2.0'
const name = `sqlite-${version}${is_compiled ? `-abi-${process.versions.modules}` : ''}`

export function openDatabase(path: string): Database {
  const open = loadPackage<new (path: string) => Database>(packagesOf(name), 'better-sqlite3')
  return new open(path)
}

/** Installs it if it is missing; returns whether it works, and prints why it does not. */
export function hasSqlite(print: (text: string) => void): boolean {
  try {
    installPackages({ name, packages: { 'better-sqlite3': version } }, print)
    if (is_compiled && !isWorking()) compile(print)
    if (isWorking()) return true
    print('better-sqlite3 does not work here; its cells are left out')
  } catch (error) {
    const { stderr = error } = error as { stderr?: unknown }
    print(`better-sqlite3 cannot be installed here; its cells are left out: ${stderr}`)
  }
  return false
}

function compile(print: (text: string) => void): void {
  print('compiling the native part of better-sqlite3')
  const node = dirname(dirname(process.execPath))
  const has_headers = existsSync(join(node, 'include/node/node.h'))
  const args = has_headers ? [`--nodedir=${node}`] : []
  const folder = join(packagesOf(name), 'node_modules/better-sqlite3')
  runQuietly('npm', ['run', 'build-release', ...args], folder)
}

/** Tried in another process, which a binary for another Node may crash. */
function isWorking(): boolean {
  try {
    const probe = "new (require('better-sqlite3'))(':memory:').close()"
    execFileSync(process.execPath, ['-e', probe], { cwd: packagesOf(name), stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
