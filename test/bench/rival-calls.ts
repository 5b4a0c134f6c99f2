/**
 * What the child of a rival with a server answers to, and how it finds the rival's packages, which
 * lie outside this project and bring no types here: each child says itself what it uses of them.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { WriteVerb } from './cells.ts'
import type { Slot } from './statistics.ts'
import type { Span } from './stopwatch.ts'

export interface RivalOpening {
  /** The folder that its packages are found from. */
  readonly packages: string
  readonly port: number
  readonly admin_port: number
  /** Waiting tasks to begin with, under the numbers from 0 on. */
  readonly tasks: number
}

export interface RivalLoad extends Span {
  readonly verb: WriteVerb
  readonly callers: number
}

export type RivalCalls = {
  open(opening: RivalOpening): Promise<void>
  run(load: RivalLoad): Promise<Slot>
  close(): Promise<void>
}

export function loadPackage<T>(folder: string, name: string): T {
  return createRequire(join(folder, 'package.json'))(name) as T
}

/** Calls `make` with each number below `count`, 64 at a time. */
export async function fillWith(count: number, make: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  const caller = async (): Promise<void> => {
    while (next < count) await make(next++)
  }
  await Promise.all(Array.from({ length: 64 }, caller))
}
