/**
 * Who does the work that tasks rest for: code in a sandbox, calls over HTTP, the embedder's handlers.
 * Each is a file of its own and is loaded when it is first needed.
 */

import type { Handlers } from '../engine/handlers.ts'
import type { Doers } from '../engine/jobs.ts'
import type { Clock } from '../words/clock.ts'
import type { Limits } from '../words/limits.ts'
import type { CallDoer } from './call.ts'
import type { CodeDoer } from './code.ts'

export interface DoersOptions {
  readonly limits: Limits
  readonly clock: Clock
  /** `host:port` that calls may reach although it is no public address. */
  readonly allow_hosts: readonly string[]
  readonly handlers: Handlers
}

/** Calls are retried so often where a failure may pass; code never. */
const call_attempts_max = 8

export function newDoers({ limits, clock, allow_hosts, handlers }: DoersOptions): Doers {
  const calls = new Map<string, number>()
  let code: Promise<CodeDoer> | undefined
  let call: Promise<CallDoer> | undefined

  /** A place among `max` of a name; the answer gives it back. */
  function place(name: string, max: number): (() => void) | undefined {
    const taken = calls.get(name) ?? 0
    if (max > 0 && taken >= max) return undefined
    calls.set(name, taken + 1)
    return () => {
      const left = (calls.get(name) ?? 1) - 1
      if (left === 0) calls.delete(name)
      else calls.set(name, left)
    }
  }

  return {
    async code(order) {
      code ??= import('./code.ts').then(({ newCodeDoer }) => newCodeDoer(limits))
      return (await code).run(order)
    },
    async call(order, job) {
      call ??= import('./call.ts').then(({ newCallDoer }) =>
        newCallDoer({ limits, clock, allow_hosts }),
      )
      return (await call).run(order.request, job)
    },
    handler: (order, job) => handlers.run(order.handler, job),
    attemptsMax(order) {
      if (order.work === 'code') return 1
      return order.work === 'call' ? call_attempts_max : handlers.attemptsMax(order.handler)
    },
    enter(order, job) {
      if (order.work === 'code') return place('code', limits.code_threads_max)
      if (order.work === 'handler') {
        const threads_max = handlers.threadsMax(order.handler)
        return threads_max === undefined
          ? undefined
          : place(`handler ${order.handler}`, threads_max)
      }
      return place(`call ${job.place}`, order.request.threads_max)
    },
    async close() {
      await (await code)?.close()
      await (await call)?.close()
    },
  }
}
