/**
 * The calls of a child that takes part in the comparison on one PostgreSQL, or in cells of whole lives
 * beside other servers. A life of a task is a create, which leaves it waiting for a message from
 * outside, and the callback that brings the message. Each is durable when it is answered. The child is
 * called in its own process, or over HTTP.
 */
import { setTimeout as nextPoll } from 'node:timers/promises'
import type { WriteVerb } from '../cells.ts'
import { serveCalls } from '../child.ts'
import { closedLoop } from '../closed-loop.ts'
import { type LifeOrder, type LivesLoad, lifeOrder, livesLoop } from '../life-order.ts'
import type { Endpoint } from '../load-clients.ts'
import { waitUntilIdle } from '../resource-usage.ts'
import { listenSigned } from '../signed-server.ts'
import type { Slot } from '../statistics.ts'
import type { Span } from '../stopwatch.ts'
import { dataOf, refOf } from '../workload.ts'

export interface Lives {
  create(ref: string, data: object): Promise<unknown>
  callback(ref: string, data: object): Promise<unknown>
  /** How many tasks have ended, where that is after their callbacks were answered. */
  ended?(): number
  /** What is due between creates and callbacks; outside the clock. */
  prepare?(): Promise<unknown>
  /** By default a thin server listens, with one op in a request. */
  listen?(): Promise<Endpoint>
  close(): Promise<unknown>
}

export interface LivesOptions {
  /** Of the server that the side needs: the PostgreSQL that all share, or its own. */
  readonly host: string
  readonly port: number
  /** Of Restate. */
  readonly admin_port: number
  /** The folder that a rival's packages are resolved from. */
  readonly packages: string
  /** The data file of ours, and where its commit log is. */
  readonly path: string
  readonly commit_log: 'postgres' | 'files'
}

/** Creates alone, or callbacks alone. */
interface VerbLoad extends Span {
  readonly verb: WriteVerb
  readonly callers: number
  /** The number of the first task, which the others follow, at most so many. */
  readonly first: number
  readonly requests_max: number
}

export type LivesCalls = {
  open(options: LivesOptions): Promise<Endpoint>
  run(load: VerbLoad): Promise<Slot>
  prepare(): Promise<void>
  /** Creates so many tasks, which wait under the numbers from 0 on. */
  fill(tasks: number): Promise<void>
  /** Goes on with whole lives where the last load of them ended. */
  lives(load: LivesLoad): Promise<Slot>
  /** Resolves once each task whose callback was answered has ended. */
  allEnded(): Promise<void>
  /** Resolves when the process is idle, or has been waited for long enough. */
  settle(): Promise<void>
  close(): Promise<void>
}

const secret = 'x'.repeat(43)
const poll_ms = 2
const fill_callers = 64

export function serveLives(open: (options: LivesOptions) => Promise<Lives>): void {
  let lives: Lives | undefined
  let order: LifeOrder | undefined
  let called_back = 0
  const opened = (): Lives => {
    if (lives === undefined) throw new Error('not open')
    return lives
  }
  const apply = (verb: string, ref: string, data: object): Promise<unknown> => {
    if (verb === 'create') return opened().create(ref, data)
    called_back++
    return opened().callback(ref, data)
  }
  const applyTo = (verb: WriteVerb, n: number): Promise<unknown> =>
    apply(verb, refOf(n, 'random'), dataOf(verb, n))
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
        await applyTo(verb, n)
      })
    },
    async fill(tasks) {
      order = lifeOrder(tasks)
      let next = 0
      const caller = async (): Promise<void> => {
        while (next < tasks) await applyTo('create', next++)
      }
      await Promise.all(Array.from({ length: fill_callers }, caller))
    },
    lives: (load) => livesLoop(order as LifeOrder, load, applyTo),
    async allEnded() {
      const { ended } = opened()
      while (ended !== undefined && ended() < called_back) await nextPoll(poll_ms)
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
