/**
 * The calls of a child that takes part in the comparison on one PostgreSQL. A life of a task is a
 * create, which leaves it waiting for a message from outside, and the callback that brings the message.
 * Each is durable when it is answered. The child is called in its own process, or over HTTP.
 */
import type { WriteVerb } from '../cells.ts'
import { serveCalls } from '../child.ts'
import { closedLoop } from '../closed-loop.ts'
import type { Endpoint } from '../load-clients.ts'
import { waitUntilIdle } from '../resource-usage.ts'
import { listenSigned } from '../signed-server.ts'
import type { Slot } from '../statistics.ts'
import type { Span } from '../stopwatch.ts'
import { dataOf, refOf } from '../workload.ts'

export interface Lives {
  create(ref: string, data: object): Promise<unknown>
  callback(ref: string, data: object): Promise<unknown>
  /** What is due between creates and callbacks; outside the clock. */
  prepare?(): Promise<unknown>
  /** By default a thin server listens, with one op in a request. */
  listen?(): Promise<Endpoint>
  close(): Promise<unknown>
}

export interface LivesOptions {
  /** Of the PostgreSQL that all sides share. */
  readonly host: string
  readonly port: number
  /** The folder that a rival's packages are resolved from. */
  readonly packages: string
  /** The data file of ours, and where its commit log is. */
  readonly path: string
  readonly commit_log: 'postgres' | 'files'
}

export interface LivesLoad extends Span {
  readonly verb: WriteVerb
  readonly callers: number
  /** The number of the first task, which the others follow, at most so many. */
  readonly first: number
  readonly requests_max: number
}

export type LivesCalls = {
  open(options: LivesOptions): Promise<Endpoint>
  run(load: LivesLoad): Promise<Slot>
  prepare(): Promise<void>
  /** Resolves when the process is idle, or has been waited for long enough. */
  settle(): Promise<void>
  close(): Promise<void>
}

const secret = 'x'.repeat(43)

export function serveLives(open: (options: LivesOptions) => Promise<Lives>): void {
  let lives: Lives | undefined
  const opened = (): Lives => {
    if (lives === undefined) throw new Error('not open')
    return lives
  }
  const apply = (verb: string, ref: string, data: object): Promise<unknown> =>
    verb === 'create' ? opened().create(ref, data) : opened().callback(ref, data)
  const calls: LivesCalls = {
    async open(options) {
      lives = await open(options)
      if (lives.listen !== undefined) return lives.listen()
      const { port } = await listenSigned(secret, (ops) =>
        Promise.all(ops.map(({ type, ref, data }) => apply(type, ref, data))),
      )
      return { port, secret }
    },
    run({ verb, first, ...load }) {
      let next = first
      return closedLoop({ ...load, ops: 1 }, async () => {
        const n = next++
        await apply(verb, refOf(n, 'random'), dataOf(verb, n))
      })
    },
    async prepare() {
      await opened().prepare?.()
    },
    async settle() {
      await waitUntilIdle()
    },
    async close() {
      await lives?.close()
    },
  }
  serveCalls(calls)
}
