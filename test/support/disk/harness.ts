/**
 * The harness of the proofs whose disk fails. Each serves a copy of one workload file from a built
 * program, injects a fault, and opens the file afterwards on a disk that works:
 *
 * | proof | fault | injected by | workload | judge |
 * |---|---|---|---|---|
 * | io | a system call fails, once or for good | io-faults.c | sequences (workload.ts) | workload-judge.ts |
 * | hung | a write or sync hangs or is slow | io-faults.c | hung-callers.ts | ledger.ts |
 * | full | no space is left | small-disk.ts | full-load.ts | ledger.ts |
 * | power | unsynced writes are lost | power-trace.ts, power-disk.ts | sequences | power-judge.ts |
 * | rot | bits and pages change while no process has the file open | rot-child.ts | rot-image.ts | rot-child.ts |
 *
 * Controls are the same proofs over programs built from edited sources, or over changed traces.
 */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { top } from '../package-folder.ts'
import { builtProgram, type Edit } from '../store-child.ts'
import { quickFolder } from '../store-folder.ts'
import type { Target } from '../workload-callers.ts'
import { makeWorkloadFile, pathIn, type WorkloadFile } from '../workload-file.ts'
import { firstLine, type Limits, type Listening, type Serving, startServing } from './serve.ts'

export interface DiskHarness {
  readonly access: WorkloadFile['access']
  readonly certificate_name: string
  newFolder(): string
  /** Copies the file, which has no tasks, into a folder, and answers its path. */
  putFile(folder?: string): string
  /** Starts all servers on a file. */
  serve(path: string, limits: Limits, setup?: ServeOn): Promise<DiskServer>
}

export interface ServeOn {
  readonly edits?: readonly Edit[]
  readonly env?: NodeJS.ProcessEnv
}

export interface DiskServer extends Serving {
  readonly path: string
  readonly at: Listening
  readonly target: Target
}

let harness: Promise<DiskHarness> | undefined

/** Is made once in a process, and removed when that exits. */
export function diskHarness(): Promise<DiskHarness> {
  harness ??= makeHarness()
  return harness
}

async function makeHarness(): Promise<DiskHarness> {
  const top_folder = await quickFolder('conveyor-disk-')
  process.once('exit', () => rmSync(top_folder, { recursive: true, force: true }))
  const made = join(top_folder, 'made')
  mkdirSync(made)
  const { access, certificate_name } = await makeWorkloadFile(made)
  const files = readdirSync(made).filter((name) => name.startsWith('tasks.lmdb'))
  let count = 0
  const newFolder = (): string => {
    const folder = join(top_folder, `${count++}`)
    mkdirSync(folder)
    return folder
  }
  return {
    ...{ access, certificate_name, newFolder },
    putFile(folder = newFolder()) {
      for (const name of files) cpSync(join(made, name), join(folder, name))
      return pathIn(folder)
    },
    async serve(path, limits, { edits, env } = {}) {
      const { script } = await builtProgram(edits)
      const listeners = ['http', 'grpc', 'operator'] as const
      const serving = startServing({ script, path, listeners, tls: access.folder, limits }, env)
      const at = await firstLine<Listening>(serving)
      return { ...serving, path, at, target: { ...access, url: at.http, address: at.grpc } }
    },
  }
}

/** Why system calls cannot be made to fail here. */
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

let library: string | undefined

/** The environment of a process whose calls on a data file fail or wait (io-faults.c). */
export function ioEnv(
  { newFolder }: DiskHarness,
  { path, log, fault, hold }: IoSetting,
): Readonly<Record<string, string>> {
  library ??= buildLibrary(newFolder())
  return {
    // What goes through io_uring is not seen.
    ...{ LD_PRELOAD: library, UV_USE_IO_URING: '0', IO_BASE: path, IO_LOG: log },
    ...(fault !== undefined && { IO_FAULT: fault }),
    ...(hold !== undefined && { IO_HOLD: hold }),
  }
}

function buildLibrary(folder: string): string {
  const library = join(folder, 'io-faults.so')
  const source = join(top, 'test/support/disk/io-faults.c')
  const built = spawnSync('gcc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'])
  if (built.status !== 0) throw new Error(String(built.stderr))
  return library
}

const held_files = ['log', 'data'] as const
type HeldFile = (typeof held_files)[number]

/** Calls that wait, of the process that works on the file at `path` in the environment `env`. */
export interface Holds {
  readonly env: Readonly<Record<string, string>>
  /** From now on each such call waits until the release, or takes so many milliseconds. */
  hold(file: HeldFile, ms?: number): void
  /** When calls of this file began to wait, in the time of day. */
  heldAt(file: HeldFile): readonly number[]
  release(): void
}

export function holdsOf(harness: DiskHarness, path: string): Holds {
  const [log, hold] = [`${path}_calls`, `${path}_hold`]
  return {
    env: ioEnv(harness, { path, log, hold }),
    hold: (file, ms) => writeFileSync(`${hold}-${file}`, ms === undefined ? '' : String(ms)),
    heldAt(file) {
      const text = existsSync(log) ? readFileSync(log, 'utf8') : ''
      const lines = text.matchAll(/^held (\d+) (log|data)$/gm)
      return [...lines].flatMap(([, ns, of]) => (of === file ? [Number(ns) / 1e6] : []))
    },
    release() {
      for (const file of held_files) rmSync(`${hold}-${file}`, { force: true })
    },
  }
}

export interface Fetched {
  readonly status: number
  readonly text: string
  readonly retry_after: string | null
  readonly ms: number
}

/** A `GET`, or a `POST` where there is a body. */
export async function fetchText(url: string, body?: string): Promise<Fetched> {
  const began_ms = performance.now()
  const answer = await fetch(url, body === undefined ? {} : { method: 'POST', body })
  const text = await answer.text()
  const retry_after = answer.headers.get('retry-after')
  return { status: answer.status, text, retry_after, ms: performance.now() - began_ms }
}

export function must(is_so: boolean, says: string): asserts is_so {
  if (!is_so) throw new Error(says)
}
