/**
 * The embedder's own code, by the kind or the node title it was registered for. Kept in memory only:
 * whoever embeds the engine registers it again at each start, and until then the work waits.
 */
import { docOfPlain } from '../bytes/plain.ts'
import type { WorkOutcome } from '../logic/logic.ts'
import type { Handler, HandlerOptions } from './api.ts'
import type { Job } from './jobs.ts'

export interface Handlers {
  has(name: string): boolean
  /** The last one added for a name counts; the answer takes it back. */
  add(name: string, handler: Handler, options?: HandlerOptions): () => void
  /** Undefined where none is registered. */
  threadsMax(name: string): number | undefined
  attemptsMax(name: string): number
  run(name: string, job: Job): Promise<WorkOutcome>
}

interface Registered {
  readonly handler: Handler
  readonly threads_max: number
  readonly time_ms_max: number
  readonly attempts_max: number
}

const nesting_max = 61

export function newHandlers(): Handlers {
  const registered = new Map<string, Registered>()
  return {
    has: (name) => registered.has(name),
    add(name, handler, options = {}) {
      const { threads_max = 16, time_ms_max = 60_000, attempts_max = 5 } = options
      const mine = { handler, threads_max, time_ms_max, attempts_max }
      registered.set(name, mine)
      return () => {
        if (registered.get(name) === mine) registered.delete(name)
      }
    },
    threadsMax: (name) => registered.get(name)?.threads_max,
    attemptsMax: (name) => registered.get(name)?.attempts_max ?? 1,
    async run(name, job) {
      const found = registered.get(name)
      if (found === undefined) return failed('hardware', 'no handler is registered')
      return runOne(found, job)
    },
  }
}

async function runOne({ handler, time_ms_max }: Registered, job: Job): Promise<WorkOutcome> {
  const signal = AbortSignal.any([job.signal, AbortSignal.timeout(time_ms_max)])
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  try {
    const given = await Promise.race([handler(job.task, { signal, key: job.key }), aborted])
    if (given === undefined || given === null) return { outcome: 'done', text: '{}' }
    const doc = typeof given === 'object' ? docOfPlain(given, nesting_max) : 'is no object'
    if (typeof doc === 'string') return failed('software', `the handler’s answer: ${doc}`)
    return { outcome: 'done', text: doc.text }
  } catch (error) {
    return failed('hardware', error instanceof Error ? error.message : String(error))
  }
}

function failed(error_type: 'hardware' | 'software', description: string): WorkOutcome {
  return { outcome: 'failed', error_type, tag: 'handler_error', description }
}
