/**
 * The calls of a child that runs a rival with a server. A rival's packages are installed outside this
 * project and without types, so each child declares the part of them that it uses.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { WriteVerb } from './cells.ts'
import { closedLoop } from './closed-loop.ts'
import type { Slot } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import { opSource } from './workload.ts'

export interface RivalOptions {
  /** The folder that the rival's packages are resolved from. */
  readonly packages: string
  readonly port: number
  readonly admin_port: number
  /** Waiting tasks to store, under the numbers from 0 on. */
  readonly tasks: number
}

export interface RivalLoad extends Span {
  readonly verb: WriteVerb
  readonly callers: number
}

export type RivalCalls = {
  open(options: RivalOptions): Promise<void>
  run(load: RivalLoad): Promise<Slot>
  close(): Promise<void>
}

export function loadPackage<T>(folder: string, name: string): T {
  return createRequire(join(folder, 'package.json'))(name) as T
}

/** Runs a load of one op a request; an operation gets the number of a task. */
export function runLoad(
  { verb, callers, ...span }: RivalLoad,
  stored_tasks: number,
  operations: Readonly<Record<WriteVerb, (n: number) => Promise<unknown>>>,
): Promise<Slot> {
  const source = opSource(stored_tasks, 'random')
  return closedLoop({ callers, ops: 1, ...span }, async () => {
    await operations[verb](source.take(verb, 1)[0] as number)
  })
}

/** Calls `make` with each number below `count`, 64 at a time. */
export async function fillWith(
  count: number,
  make: (n: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const caller = async (): Promise<void> => {
    while (next < count) await make(next++)
  }
  await Promise.all(Array.from({ length: 64 }, caller))
}
