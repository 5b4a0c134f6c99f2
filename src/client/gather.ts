/**
 * Single ops called within one turn of the event loop travel in one request, and so do those that
 * come while as many requests are under way as may be: a thousand callers cost the server a few
 * commits instead of a thousand.
 *
 * Each op stays a call of its own all the same: its caller's signal ends it alone, its fault is its
 * own to repeat or not, and where a request is refused for what one op may be to blame for, each of
 * its ops is sent anew, alone. They are applied in the order in which they were called.
 */
import type { ClientResult } from './api.ts'
import { isClientFault } from './faults.ts'
import type { SentOp } from './sent-op.ts'
import type { Transport, TryLimit } from './transport.ts'

export interface Gather {
  /** One try of one op. */
  send(op: SentOp, limit: TryLimit): Promise<ClientResult>
}

interface Call {
  readonly op: SentOp
  readonly limit: TryLimit
  resolve(result: ClientResult): void
  reject(error: unknown): void
}

/** What one request takes at most: far below what servers take. */
const ops_max = 100
const data_chars_max = 256 * 1024

/** `requests_max`: gathered requests under way at once. */
export function newGather({ ready }: Pick<Transport, 'ready'>, requests_max: number): Gather {
  const waiting: Call[] = []
  let under_way = 0
  let is_due = false

  function sendAtTurnsEnd(): void {
    if (is_due) return
    is_due = true
    setImmediate(sendOn)
  }

  function sendOn(): void {
    is_due = false
    while (waiting.length > 0 && under_way < requests_max) {
      under_way++
      void sendTogether(takeFirst(waiting)).finally(() => {
        under_way--
        // What the answers set off comes first, so that it travels together.
        if (waiting.length > 0) sendAtTurnsEnd()
      })
    }
  }

  async function sendTogether(calls: readonly Call[]): Promise<void> {
    const live = calls.filter(isLive)
    const [only] = live
    if (only === undefined) return
    if (live.length === 1) return sendAlone(only)
    const limit = limitOf(live)
    try {
      const results = await ready(live.map(({ op }) => op)).send(limit)
      for (const [at, call] of live.entries()) call.resolve(results[at] as ClientResult)
    } catch (error) {
      if (!isOfOne(error)) for (const call of live) call.reject(error)
      else await Promise.all(live.map(sendAlone))
    } finally {
      limit.clear()
    }
  }

  async function sendAlone({ op, limit, resolve, reject }: Call): Promise<void> {
    try {
      const [result] = await ready([op]).send(limit)
      resolve(result as ClientResult)
    } catch (error) {
      reject(error)
    }
  }

  return {
    send: (op, limit) =>
      new Promise((resolve, reject) => {
        sendAtTurnsEnd()
        waiting.push({ op, limit, resolve, reject })
      }),
  }
}

function takeFirst(waiting: Call[]): Call[] {
  let count = 0
  let chars = 0
  for (const { op } of waiting) {
    chars += op.data_text.length
    if (count > 0 && (count === ops_max || chars > data_chars_max)) break
    count++
  }
  return waiting.splice(0, count)
}

function isLive({ limit, reject }: Call): boolean {
  if (!limit.signal.aborted) return true
  reject(limit.signal.reason)
  return false
}

/** A request that was too large or malformed was so by one of its ops, or by all together. */
function isOfOne(error: unknown): boolean {
  return isClientFault(error) && codes_of_one.has(error.code)
}

const codes_of_one: ReadonlySet<string> = new Set([
  'format_error',
  'too_many_ops',
  'body_too_large',
])

/** The request ends early once each of its calls has; until then each ends by itself. */
function limitOf(calls: readonly Call[]): TryLimit & { clear(): void } {
  const all = new AbortController()
  let left = calls.length
  const heard = calls.map(({ limit: { signal }, reject }) => {
    const end = (): void => {
      reject(signal.reason)
      if (--left === 0) all.abort(signal.reason)
    }
    signal.addEventListener('abort', end, { once: true })
    return { signal, end }
  })
  return {
    signal: all.signal,
    deadline_ms: Math.max(...calls.map(({ limit }) => limit.deadline_ms)),
    clear() {
      for (const { signal, end } of heard) signal.removeEventListener('abort', end)
    },
  }
}
