/**
 * Builds io-faults.c: a library that is loaded into a process before the C library, and makes its
 * system calls on a data file fail or wait.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { top } from '../package-folder.ts'

/** Why it cannot be had here. */
export function whyNoIoLibrary(): string | undefined {
  if (process.platform !== 'linux') return 'it needs Linux'
  return spawnSync('gcc', ['--version']).status === 0 ? undefined : 'gcc is missing'
}

export interface IoSetting {
  /** Of the data file. */
  readonly path: string
  /** Gets a line for each call that counts. */
  readonly log: string
  readonly fault?: string
  /** Of the files that hold calls while they are there. */
  readonly hold?: string
}

/** What the environment of a process must have, by what is to happen to it. */
export type IoEnv = (setting: IoSetting) => Readonly<Record<string, string>>

export function buildIoLibrary(folder: string): IoEnv {
  const library = join(folder, 'io-faults.so')
  const source = join(top, 'test/support/disk/io-faults.c')
  const built = spawnSync('gcc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'])
  if (built.status !== 0) throw new Error(String(built.stderr))
  return ({ path, log, fault, hold }) => ({
    // What goes through io_uring is not seen.
    ...{ LD_PRELOAD: library, UV_USE_IO_URING: '0', IO_BASE: path, IO_LOG: log },
    ...(fault !== undefined && { IO_FAULT: fault }),
    ...(hold !== undefined && { IO_HOLD: hold }),
  })
}
