/**
 * The executors of jobs: sandboxed code, HTTP calls, queries, and the embedder's handlers; all but
 * the last load at first use. Each job counts against concurrency limits and waits while one is
 * full.
 */
import type { Chance, Clock } from '../core/clock.ts'
import type { Limits } from '../core/limits.ts'
import type { Handlers } from '../engine/jobs/handlers.ts'
import type { Executors } from '../engine/jobs/job-dispatcher.ts'
import type { JobOrder, JobRetry } from '../process/logic.ts'
import type { CallExecutor } from './call.ts'
import { isCallFailure } from './call-failure.ts'
import { hostOf, readAllowHosts, readUrl } from './call-resolver.ts'
import type { CodeExecutor } from './code.ts'
import type { QueryExecutor } from './databases/executor.ts'
import type { Instances } from './databases/instances.ts'

export interface ExecutorsOptions {
  readonly limits: Limits
  readonly clock: Clock
  readonly chance: Chance
  /** `host:port` entries that may be called although their address is not public. */
  readonly allow_hosts: readonly string[]
  readonly handlers: Handlers
  readonly databases?: Instances | undefined
}

interface ConcurrencyLimit {
  readonly name: string
  /** Concurrent jobs; 0 is no limit, and a negative number allows none. */
  readonly max: number
}

const once: JobRetry = { attempts_max: 1, backoff_ms: 0 }
/** A handler removed during an attempt must not make the failure final: the job waits. */
const until_handled: JobRetry = { attempts_max: Number.POSITIVE_INFINITY, backoff_ms: 1_000 }

/** Throws a RangeError that names a malformed entry of `allow_hosts`. */
export function newExecutors(options: ExecutorsOptions): Executors {
  const { limits, clock, chance, allow_hosts, handlers, databases = new Map() } = options
  readAllowHosts(allow_hosts)
  const own_urls = new Set<string>()
  const running = new Map<string, number>()
  let code: Promise<CodeExecutor> | undefined
  let call: Promise<CallExecutor> | undefined
  let queries: Promise<QueryExecutor> | undefined

  function limitsOf(order: JobOrder, logic_key: string): readonly ConcurrencyLimit[] {
    if (order.job === 'code') return [{ name: 'code', max: limits.code_threads_max }]
    if (order.job === 'handler') {
      const max = handlers.find(order.handler)?.threads_max ?? (order.is_awaited ? -1 : 0)
      return [{ name: `handler ${order.handler}`, max }]
    }
    if (order.job === 'db') {
      const { instance } = order
      return [{ name: `db ${instance}`, max: databases.get(instance)?.max ?? 0 }]
    }
    const { url, threads_max } = order.request
    const read = readUrl(url)
    const host = isCallFailure(read) ? '' : hostOf(read)
    return [
      { name: `call ${logic_key}`, max: threads_max },
      { name: `host ${host}`, max: limits.call_host_max },
    ]
  }

  function isFull({ name, max }: ConcurrencyLimit): boolean {
    return max < 0 || (max > 0 && (running.get(name) ?? 0) >= max)
  }

  function count({ name }: ConcurrencyLimit, by: 1 | -1): void {
    const jobs = (running.get(name) ?? 0) + by
    if (jobs === 0) running.delete(name)
    else running.set(name, jobs)
  }

  return {
    async code(order) {
      code ??= import('./code.ts').then(({ newCodeExecutor }) => newCodeExecutor(limits, chance))
      return (await code).run(order)
    },
    async call(order, job) {
      call ??= import('./call.ts').then(({ newCallExecutor }) =>
        newCallExecutor({ limits, clock, allow_hosts, own_urls }),
      )
      return (await call).run(order.request, job)
    },
    async db(order, job) {
      queries ??= import('./databases/executor.ts').then(({ newQueryExecutor }) =>
        newQueryExecutor(databases, limits, clock),
      )
      return (await queries).run(order, job)
    },
    allowCalls: (start) => void own_urls.add(new URL(start).href),
    handler: (order, job) => handlers.run(order.handler, job),
    retryOf(order) {
      if (order.job === 'code' || order.job === 'db') return once
      if (order.job === 'call') return order.request.retry
      return handlers.find(order.handler) ?? (order.is_awaited ? until_handled : once)
    },
    limitKeys: (order, logic_key) => limitsOf(order, logic_key).map(({ name }) => name),
    acquire(order, logic_key) {
      const limits_of_job = limitsOf(order, logic_key)
      const full = limits_of_job.find(isFull)
      if (full !== undefined) return { full: full.name }
      for (const limit of limits_of_job) count(limit, 1)
      return {
        release: () => {
          for (const limit of limits_of_job) count(limit, -1)
        },
      }
    },
    async close() {
      await (await code)?.close()
      await (await call)?.close()
      ;(await queries)?.close()
    },
  }
}
