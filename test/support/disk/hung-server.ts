/**
 * `conveyor serve` with all its listeners in a process of its own, whose writes to its commit log or
 * its data file can be held up (io-library.ts), as by a disk that hangs or is slow; and what is seen
 * of it from outside: its lines, its health, its memory.
 */

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BuiltChild, buildChild, type Edit } from '../store-child.ts'
import { quickFolder } from '../store-folder.ts'
import type { Target } from '../workload-callers.ts'
import { makeWorkloadFile, type WorkloadFile } from '../workload-file.ts'
import { buildIoLibrary, type IoEnv } from './io-library.ts'
import { addressesOf, type Limits, type Serving, startServing } from './serve.ts'

export const held_files = ['log', 'data'] as const
export type HeldFile = (typeof held_files)[number]

/** Calls that wait. */
export interface Holds {
  /** From now on each such call waits until the release, or takes so many milliseconds. */
  hold(file: HeldFile, ms?: number): void
  /** When calls of this file began to wait, in the time of day. */
  heldAt(file: HeldFile): readonly number[]
  release(): void
}

export interface HungServer extends Holds, Serving {
  readonly target: Target & { readonly operator: string }
  /** Of the file, which is the server's alone. */
  readonly path: string
  remove(): void
}

export interface HungHarness {
  readonly file: WorkloadFile
  readonly ioEnv: IoEnv
  /** A script of this folder, or the program; of edited sources where there are some. */
  built(name?: string, edits?: readonly Edit[]): Promise<BuiltChild>
  /** A copy of the file in a folder of its own. */
  copy(): string
  start(limits: Limits, edits?: readonly Edit[]): Promise<HungServer>
  remove(): void
}

export async function makeHungHarness(): Promise<HungHarness> {
  const folder = await quickFolder('conveyor-hung-')
  const ioEnv = buildIoLibrary(folder)
  mkdirSync(join(folder, 'made'))
  const file = await makeWorkloadFile(join(folder, 'made')).catch(async (error) => {
    rmSync(folder, { recursive: true, force: true })
    throw error
  })
  const children = new Map<string, Promise<BuiltChild>>()
  const built_in: string[] = []
  const built: HungHarness['built'] = (name = '../../bin/conveyor.ts', edits = unedited) => {
    const key = JSON.stringify([name, edits])
    const known = children.get(key)
    if (known !== undefined) return known
    const child = buildChild(name, edits)
    children.set(key, child)
    void child.then(({ folder }) => built_in.push(folder))
    return child
  }
  let copies = 0
  const copy = (): string => {
    const own = join(folder, `${copies++}`)
    cpSync(join(folder, 'made'), own, { recursive: true })
    return join(own, 'tasks.lmdb')
  }
  return {
    ...{ file, ioEnv, copy, built },
    async start(limits, edits = unedited) {
      const { script } = await built(undefined, edits)
      return startServer({ script, path: copy(), limits, ioEnv, access: file.access })
    },
    remove() {
      for (const one of [folder, ...built_in]) rmSync(one, { recursive: true, force: true })
    },
  }
}

export const unedited: readonly Edit[] = []

interface Start {
  readonly script: string
  readonly path: string
  readonly limits: Limits
  readonly ioEnv: IoEnv
  readonly access: WorkloadFile['access']
}

async function startServer({ script, path, limits, ioEnv, access }: Start): Promise<HungServer> {
  const holds = holdsOf(path)
  const listeners = ['http', 'grpc', 'operator'] as const
  const tls = access.folder
  const serving = startServing({ script, path, listeners, tls, limits, env: ioEnv(holds.setting) })
  const { http, grpc, operator } = await addressesOf(serving)
  return {
    ...{ ...serving, ...holds, path },
    target: { ...access, url: http, address: grpc, operator },
    remove: () => rmSync(join(path, '..'), { recursive: true, force: true }),
  }
}

/** For the process that works on the file at `path`, whose environment is by `setting`. */
export function holdsOf(path: string) {
  const setting = { path, log: `${path}_calls`, hold: `${path}_hold` }
  const { log, hold } = setting
  const holds: Holds = {
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
  return { ...holds, setting }
}
