/**
 * The embedder's handlers, by the logic kind or the node title they are registered for. They are
 * kept in memory only, so the embedder registers them at each start; until then their jobs wait.
 *
 * Everything a handler does becomes an outcome. A throw or a timeout is a hardware failure, which
 * is retryable; a return value that is no plain JSON object is a software failure, which is final.
 */
import { dataBounds } from '../codec/json.ts'
import { docOfPlain } from '../codec/plain-value.ts'
import type { Clock } from '../core/clock.ts'
import { isFault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { JobOutcome } from '../process/logic.ts'
import type { Handler, HandlerOptions } from './api.ts'
import type { Job } from './job-dispatcher.ts'

export interface Handlers {
  has(name: string): boolean
  /**
   * Replaces an earlier handler of the name. The returned function removes it. Throws a RangeError
   * for an option that is no whole number above 0.
   */
  add(name: string, handler: Handler, options?: HandlerOptions): () => void
  /** Undefined where no handler is registered. */
  threadsMax(name: string): number | undefined
  attemptsMax(name: string): number
  /** Never rejects. Resolves within the handler's time limit, or once the job is aborted. */
  run(name: string, job: Job): Promise<JobOutcome>
}

interface Registered {
  readonly handler: Handler
  readonly threads_max: number
  readonly time_ms_max: number
  readonly attempts_max: number
}

export interface HandlersOptions {
  readonly clock: Clock
  readonly limits: Limits
}

export function newHandlers({ clock, limits }: HandlersOptions): Handlers {
  const { nesting_max } = dataBounds({ nesting_max: limits.nesting_max, values_max: 0 })
  const registered = new Map<string, Registered>()
  return {
    has: (name) => registered.has(name),
    add(name, handler, options = {}) {
      const { threads_max = 16, time_ms_max = 60_000, attempts_max = 5 } = options
      for (const [option, value] of Object.entries({ threads_max, time_ms_max, attempts_max })) {
        if (Number.isSafeInteger(value) && value > 0) continue
        throw new RangeError(`${option}: ${String(value)} is no whole number of 1 or more`)
      }
      const added = { handler, threads_max, time_ms_max, attempts_max }
      registered.set(name, added)
      return () => {
        if (registered.get(name) === added) registered.delete(name)
      }
    },
    threadsMax: (name) => registered.get(name)?.threads_max,
    // A handler removed during an attempt must not make its failure final: the job waits.
    attemptsMax: (name) => registered.get(name)?.attempts_max ?? Number.POSITIVE_INFINITY,
    async run(name, job) {
      const found = registered.get(name)
      if (found === undefined) return failed('hardware', 'handler_error', 'none is registered')
      return runOne(clock, nesting_max, found, job)
    },
  }
}

async function runOne(
  clock: Clock,
  nesting_max: number,
  { handler, time_ms_max }: Registered,
  job: Job,
): Promise<JobOutcome> {
  const abort = new AbortController()
  const { signal } = abort
  const late = failed('hardware', 'handler_timeout', `no answer within ${time_ms_max} ms`)
  let end: (outcome: JobOutcome) => void = () => {}
  const ended = new Promise<JobOutcome>((resolve) => {
    end = resolve
  })
  const stop = (outcome: JobOutcome): void => {
    end(outcome)
    abort.abort()
  }
  const onStop = (): void => stop(failed('hardware', 'handler_error', 'the engine is closing'))
  job.signal.addEventListener('abort', onStop, { once: true })
  const cancel = clock.wake_at(clock.now_ms() + time_ms_max, () => stop(late))
  try {
    return await Promise.race([answerOf(handler, job, signal, nesting_max), ended])
  } finally {
    cancel()
    job.signal.removeEventListener('abort', onStop)
  }
}

async function answerOf(
  handler: Handler,
  { task, key }: Job,
  signal: AbortSignal,
  nesting_max: number,
): Promise<JobOutcome> {
  try {
    const given = await handler(task, { signal, key })
    if (given === undefined || given === null) return { outcome: 'done', text: '{}' }
    const is_object = typeof given === 'object' && !Array.isArray(given)
    if (!is_object) {
      return failed('software', 'handler_error', 'the handler gave no object')
    }
    const doc = docOfPlain(given, nesting_max)
    if (typeof doc !== 'string') return { outcome: 'done', text: doc.text }
    return failed('software', 'handler_error', `the handler gave what is no JSON: ${doc}`)
  } catch (error) {
    // Data that a schema refuses is refused again.
    const is_final = isFault(error) && error.code === 'wrong_validate_params'
    return failed(is_final ? 'software' : 'hardware', 'handler_error', textOf(error))
  }
}

/** Anything can be thrown, also a value without a string form. */
function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'the handler threw'
  }
}

function failed(
  error_type: 'hardware' | 'software',
  tag: 'handler_error' | 'handler_timeout',
  description: string,
): JobOutcome {
  return { outcome: 'failed', error_type, tag, description, may_pass: error_type === 'hardware' }
}
