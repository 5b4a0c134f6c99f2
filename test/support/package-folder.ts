/**
 * Folders outside the checkout in which a test plays the user of the package or of the bundle: made
 * empty, given exactly the packages that are named, and removed.
 */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** The checkout, also where the tests run compiled, in a folder of it. */
export const top = checkoutOf(import.meta.dirname)

function checkoutOf(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : checkoutOf(dirname(folder))
}

const is_compiled = !import.meta.filename.endsWith('.ts')

/** The flags with which node runs a module of `codePath`. */
export const node_flags: readonly string[] = is_compiled ? [] : ['--import', 'tsx']

/** Where a module of the checkout is loaded from by these tests: `src/index` for src/index.ts. */
export function codePath(module: string): string {
  return join(import.meta.dirname, '../..', `${module}.${is_compiled ? 'js' : 'ts'}`)
}

interface Installed {
  readonly version: string
  readonly dependencies?: Record<string, string>
  readonly optionalDependencies?: Record<string, string>
}

/** A new folder; `path` has no symbolic link in it. */
export function tempFolder(): { readonly path: string; remove(): void } {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'conveyor-test-')))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Runs a program to its end in `folder`; answers what it printed, throws with all of it on failure. */
export function run(
  folder: string,
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): string {
  try {
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    return execFileSync(program, args, { cwd: folder, env, stdio: [...stdio], encoding: 'utf8' })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error })
  }
}

/** The manifest of a package of the checkout. */
export function installed(name: string): Installed {
  return JSON.parse(readFileSync(join(top, 'node_modules', name, 'package.json'), 'utf8'))
}

/** Puts links to packages of the checkout into `folder`'s node_modules, and no others. */
export function linkPackages(folder: string, names: readonly string[]): void {
  for (const name of names) {
    const place = join(folder, 'node_modules', name)
    if (existsSync(place)) continue
    mkdirSync(dirname(place), { recursive: true })
    symlinkSync(join(top, 'node_modules', name), place)
  }
}

/** A package and all it needs, as far as the checkout has it for this machine. */
export function withDependencies(name: string, found: Set<string> = new Set()): string[] {
  if (found.has(name)) return []
  found.add(name)
  const { dependencies = {}, optionalDependencies = {} } = installed(name)
  for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) {
    if (next in dependencies || isInstalled(next)) withDependencies(next, found)
  }
  return [...found]
}

function isInstalled(name: string): boolean {
  try {
    installed(name)
    return true
  } catch {
    return false
  }
}
