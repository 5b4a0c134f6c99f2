/**
 * The machine that a run was measured on, without which its figures mean nothing.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { summaryOf } from './statistics.ts'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memory_bytes: number
  readonly node: string
  readonly system: string
  /** The file system of the run's data files. */
  readonly file_system: string
  /** An appended write of 4 KiB and its fdatasync: the median of 50. */
  readonly sync_ms: number
  /** Load average of the last minute, before the run: other work disturbs the figures. */
  readonly load: number
  /** The commit that was measured; empty outside a git working copy. */
  readonly commit: string
}

export function machineOf(folder: string): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memory_bytes: totalmem(),
    node: process.version,
    system: `${platform()} ${release()}`,
    file_system: fileSystemOf(folder),
    sync_ms: syncMs(folder),
    load: loadavg()[0] ?? 0,
    commit: commitOf(),
  }
}

function syncMs(folder: string): number {
  const path = join(folder, 'sync')
  const page = Buffer.alloc(4096, 1)
  const file = openSync(path, 'w')
  const times_ms: number[] = []
  for (let n = 0; n < 50; n++) {
    const start_ms = performance.now()
    writeSync(file, page)
    fdatasyncSync(file)
    times_ms.push(performance.now() - start_ms)
  }
  closeSync(file)
  rmSync(path)
  return summaryOf(times_ms).median
}

/** The type of the mount that the folder is on: the one with the longest matching path. */
function fileSystemOf(folder: string): string {
  try {
    const mounts = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, at = '']) => at !== '' && `${folder}/`.startsWith(at === '/' ? at : `${at}/`))
      .sort(([, a = ''], [, b = '']) => b.length - a.length)
    return mounts[0]?.[2] ?? 'unknown'
  } catch {
    return 'unknown'
  }
}

function commitOf(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe', cwd: import.meta.dirname }).trim()
  try {
    const is_changed = git('status', '--porcelain', '--', '../../src') !== ''
    return `${git('rev-parse', '--short', 'HEAD')}${is_changed ? '+changes' : ''}`
  } catch {
    return ''
  }
}
