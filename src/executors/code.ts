/**
 * The executor of code: a pool of threads, so that an endless loop blocks nothing else. Runs beyond
 * the limit queue. logics/api-code.ts applies the outcome to the task.
 */
import type { Chance } from '../core/clock.ts'
import type { Limits } from '../core/limits.ts'
import type { JobOrder, JobOutcome } from '../process/logic.ts'
import type { CodeLimits } from './code-sandbox.ts'
import { type CodeThread, newCodeThread } from './code-thread.ts'

export interface CodeExecutor {
  /** Never rejects. Returns a failure after `close`. */
  run(order: Extract<JobOrder, { job: 'code' }>): Promise<JobOutcome>
  /** Ends every thread. Running and queued code returns a failure. */
  close(): Promise<void>
}

/** A double may print longer than it was sent: `1e20` has 21 characters. */
const printed_chars_per_byte = 8

const seed_bytes = 16

/** Starts no thread before the first run. */
export async function newCodeExecutor(limits: Limits, chance: Chance): Promise<CodeExecutor> {
  const code_limits: CodeLimits = {
    time_ms_max: limits.code_ms_max,
    memory_bytes_max: limits.code_bytes_max,
    text_chars_max: limits.task_bytes_max * printed_chars_per_byte,
  }
  const threads_max = Math.max(1, limits.code_threads_max)
  const threads: CodeThread[] = []
  const idle: CodeThread[] = []
  const queue: ((thread: CodeThread | undefined) => void)[] = []
  let closed = false

  /** Undefined after `close`. */
  async function take(): Promise<CodeThread | undefined> {
    if (closed) return undefined
    const free = idle.pop()
    if (free !== undefined) return free
    if (threads.length >= threads_max) return new Promise((resolve) => queue.push(resolve))
    const made = newCodeThread(code_limits)
    threads.push(made)
    return made
  }

  function release(thread: CodeThread): void {
    const next = queue.shift()
    if (next === undefined) idle.push(thread)
    else next(thread)
  }

  return {
    async run({ src, libraries, doc }) {
      const thread = await take()
      if (thread === undefined) return failed('hardware', 'code_executing_error', 'closed')
      const seed = [...new Uint32Array(new Uint8Array(chance.bytes(seed_bytes)).buffer)]
      const result = await thread.run({ src, libraries, data_text: doc.text, seed })
      release(thread)
      return outcomeOf(result)
    },
    async close() {
      closed = true
      for (const resolve of queue.splice(0)) resolve(undefined)
      await Promise.all(threads.map((thread) => thread.close()))
    },
  }
}

function outcomeOf(result: Awaited<ReturnType<CodeThread['run']>>): JobOutcome {
  switch (result.end) {
    case 'data':
      return { outcome: 'done', text: result.text }
    case 'timeout':
      return failed('hardware', 'code_timeout', 'timeout for executing code')
    case 'exception':
      return failed('software', 'code_executing_error', result.description)
    case 'format':
      return failed('software', 'code_return_format_error', result.description)
    case 'lost':
      return failed('hardware', 'code_executing_error', `code cannot be run: ${result.why}`)
  }
}

function failed(error_type: 'hardware' | 'software', tag: string, description: string): JobOutcome {
  return { outcome: 'failed', error_type, tag, description }
}
