/**
 * Who does the work that tasks rest for: code in a sandbox, calls over HTTP, the embedder's
 * handlers. Each is a file of its own and is loaded when it is first needed.
 */

import type { Clock } from '../core/clock.ts'
import type { Limits } from '../core/limits.ts'
import type { Handlers } from '../engine/handlers.ts'
import type { Executors } from '../engine/job-dispatcher.ts'
import type { JobOrder } from '../process/logic.ts'
import type { CallExecutor } from './call.ts'
import { isCallFailure } from './call-failure.ts'
import { hostOf, readAllowHosts, readUrl } from './call-resolver.ts'
import type { CodeExecutor } from './code.ts'

export interface ExecutorsOptions {
  readonly limits: Limits
  readonly clock: Clock
  /** `host:port` that calls may reach although it is no public address. */
  readonly allow_hosts: readonly string[]
  readonly handlers: Handlers
}

interface ConcurrencyLimit {
  readonly name: string
  /** At once; 0 sets no bound, and a number below is shut. */
  readonly max: number
}

/** Calls are retried so often where a failure may pass; code never. */
const call_attempts_max = 8

/** Throws a RangeError that names an entry of `allow_hosts` which is no `host:port`. */
export function newExecutors({
  limits,
  clock,
  allow_hosts,
  handlers,
}: ExecutorsOptions): Executors {
  readAllowHosts(allow_hosts)
  const taken = new Map<string, number>()
  let code: Promise<CodeExecutor> | undefined
  let call: Promise<CallExecutor> | undefined

  function limitsOf(order: JobOrder, place: string): readonly ConcurrencyLimit[] {
    if (order.job === 'code') return [{ name: 'code', max: limits.code_threads_max }]
    if (order.job === 'handler') {
      return [{ name: `handler ${order.handler}`, max: handlers.threadsMax(order.handler) ?? -1 }]
    }
    const { url, threads_max } = order.request
    const read = readUrl(url)
    const host = isCallFailure(read) ? '' : hostOf(read)
    return [
      { name: `call ${place}`, max: threads_max },
      { name: `host ${host}`, max: limits.call_host_max },
    ]
  }

  function isFull({ name, max }: ConcurrencyLimit): boolean {
    return max < 0 || (max > 0 && (taken.get(name) ?? 0) >= max)
  }

  function take({ name }: ConcurrencyLimit, by: 1 | -1): void {
    const left = (taken.get(name) ?? 0) + by
    if (left === 0) taken.delete(name)
    else taken.set(name, left)
  }

  return {
    async code(order) {
      code ??= import('./code.ts').then(({ newCodeExecutor }) => newCodeExecutor(limits))
      return (await code).run(order)
    },
    async call(order, job) {
      call ??= import('./call.ts').then(({ newCallExecutor }) =>
        newCallExecutor({ limits, clock, allow_hosts }),
      )
      return (await call).run(order.request, job)
    },
    handler: (order, job) => handlers.run(order.handler, job),
    attemptsMax(order) {
      if (order.job === 'code') return 1
      return order.job === 'call' ? call_attempts_max : handlers.attemptsMax(order.handler)
    },
    limitKeys: (order, place) => limitsOf(order, place).map(({ name }) => name),
    acquire(order, place) {
      const lanes = limitsOf(order, place)
      const full = lanes.find(isFull)
      if (full !== undefined) return { full: full.name }
      for (const lane of lanes) take(lane, 1)
      return {
        leave: () => {
          for (const lane of lanes) take(lane, -1)
        },
      }
    },
    async close() {
      await (await code)?.close()
      await (await call)?.close()
    },
  }
}
