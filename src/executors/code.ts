/**
 * Runs code for tasks, in threads of its own so that a loop holds nobody up: as many at once as
 * the limits say, the rest in line. Turns how a run ended into an outcome with its tag; what the
 * outcome does to the task is the logic's part (process/logics/api-code).
 */

import type { Limits } from '../core/limits.ts'
import type { JobOrder, JobOutcome } from '../process/logic.ts'
import type { CodeBounds } from './code-sandbox.ts'
import { type CodeThread, newCodeThread } from './code-thread.ts'

export interface CodeExecutor {
  /** Never rejects. After `close` the answer is a failure. */
  run(order: Extract<JobOrder, { job: 'code' }>): Promise<JobOutcome>
  /** Ends every thread; runs under way and in line answer with a failure. */
  close(): Promise<void>
}

/** A token of few characters may be a long double: `1e20` comes back in 21. */
const printed_chars_per_byte = 8

/** Starts no thread before one is needed. */
export async function newCodeExecutor(limits: Limits): Promise<CodeExecutor> {
  const bounds: CodeBounds = {
    time_ms_max: limits.code_ms_max,
    memory_bytes_max: limits.code_bytes_max,
    text_chars_max: limits.task_bytes_max * printed_chars_per_byte,
  }
  const threads_max = Math.max(1, limits.code_threads_max)
  const threads: CodeThread[] = []
  const idle: CodeThread[] = []
  const line: ((thread: CodeThread | undefined) => void)[] = []
  let closed = false

  /** A thread that nobody else uses; undefined once closed. */
  async function take(): Promise<CodeThread | undefined> {
    if (closed) return undefined
    const free = idle.pop()
    if (free !== undefined) return free
    if (threads.length >= threads_max) return new Promise((resolve) => line.push(resolve))
    const made = newCodeThread(bounds)
    threads.push(made)
    return made
  }

  function give(thread: CodeThread): void {
    const next = line.shift()
    if (next === undefined) idle.push(thread)
    else next(thread)
  }

  return {
    async run({ src, doc }) {
      const thread = await take()
      if (thread === undefined) return failed('hardware', 'code_executing_error', 'closed')
      const reply = await thread.run({ src, data_text: doc.text })
      give(thread)
      return outcomeOf(reply)
    },
    async close() {
      closed = true
      for (const turnAway of line.splice(0)) turnAway(undefined)
      await Promise.all(threads.map((thread) => thread.close()))
    },
  }
}

function outcomeOf(reply: Awaited<ReturnType<CodeThread['run']>>): JobOutcome {
  switch (reply.end) {
    case 'data':
      return { outcome: 'done', text: reply.text }
    case 'timeout':
      return failed('hardware', 'code_timeout', 'timeout for executing code')
    case 'exception':
      return failed('software', 'code_executing_error', reply.description)
    case 'format':
      return failed('software', 'code_return_format_error', reply.description)
    case 'lost':
      return failed('hardware', 'code_executing_error', `no thread for code: ${reply.why}`)
  }
}

function failed(error_type: 'hardware' | 'software', tag: string, description: string): JobOutcome {
  return { outcome: 'failed', error_type, tag, description }
}
