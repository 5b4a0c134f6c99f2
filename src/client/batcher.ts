/**
 * Single ops called within one turn of the event loop travel together, and so do those that come
 * while as many requests are under way as may be: a thousand callers cost the server a few commits
 * instead of a thousand. Many go in a few requests rather than in one, so that the server has work
 * while this side makes the next and reads the last.
 *
 * Each op stays a call of its own all the same: what ends it ends it alone, its fault is its own to
 * repeat or not, and where a request is refused for what one op may be to blame for, each of its
 * ops is sent anew, alone. Those of one turn are applied in the order in which they were called
 * where two of them name one task alike, as long as one request takes them all.
 */
import type { ClientResult } from './api.ts'
import { type Cancellation, type Canceller, newCanceller } from './cancellation.ts'
import { isClientFault } from './faults.ts'
import type { SentOp } from './sent-op.ts'
import type { Transport } from './transport.ts'

export interface Batcher {
  /** One try of one op. */
  send(op: SentOp, cancellation: Cancellation): Promise<ClientResult>
}

interface Call {
  readonly op: SentOp
  readonly cancellation: Cancellation
  resolve(result: ClientResult): void
  reject(error: unknown): void
}

/** What one request takes at most: far below what servers take. */
const ops_max = 100
const data_chars_max = 256 * 1024
/** So many requests share what comes again and again, unless it is less than pays. */
const requests_wanted = 3
const ops_wanted = 8

/** `requests_max`: gathered requests under way at once. */
export function newBatcher({ ready }: Pick<Transport, 'ready'>, requests_max: number): Batcher {
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
    const left = Math.min(requests_wanted, requests_max) - under_way
    const share = shareOf(waiting, Math.max(1, left))
    while (waiting.length > 0 && under_way < requests_max) {
      under_way++
      void sendTogether(takeFirst(waiting, share)).finally(() => {
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
    const { cancellation, clear } = cancelledWithAll(live)
    try {
      const results = await ready(live.map(({ op }) => op)).send(cancellation)
      for (const [at, call] of live.entries()) call.resolve(results[at] as ClientResult)
    } catch (error) {
      if (!isSingleOpFault(error)) for (const call of live) call.reject(error)
      else await Promise.all(live.map(sendAlone))
    } finally {
      clear()
    }
  }

  async function sendAlone({ op, cancellation, resolve, reject }: Call): Promise<void> {
    try {
      const [result] = await ready([op]).send(cancellation)
      resolve(result as ClientResult)
    } catch (error) {
      reject(error)
    }
  }

  return {
    send: (op, cancellation) =>
      new Promise((resolve, reject) => {
        sendAtTurnsEnd()
        waiting.push({ op, cancellation, resolve, reject })
      }),
  }
}

/** How many of them one request takes, where so many share them. */
function shareOf(waiting: readonly Call[], requests: number): number {
  const share = Math.max(ops_wanted, Math.ceil(waiting.length / requests))
  if (share >= waiting.length) return ops_max
  const tasks = new Set(waiting.map(({ op }) => op.ref ?? op.obj_id ?? op))
  return tasks.size < waiting.length ? ops_max : Math.min(share, ops_max)
}

function takeFirst(waiting: Call[], most: number): Call[] {
  let count = 0
  let chars = 0
  for (const { op } of waiting) {
    chars += op.data_text.length
    if (count > 0 && (count === most || chars > data_chars_max)) break
    count++
  }
  return waiting.splice(0, count)
}

function isLive({ cancellation, reject }: Call): boolean {
  const reason = cancellation.reason()
  if (reason !== undefined) reject(reason)
  return reason === undefined
}

/** A request that was too large or malformed was so by one of its ops, or by all together. */
function isSingleOpFault(error: unknown): boolean {
  return isClientFault(error) && single_op_codes.has(error.code)
}

const single_op_codes: ReadonlySet<string> = new Set([
  'format_error',
  'too_many_ops',
  'body_too_large',
])

/** The request ends early once each of its calls has; until then each ends by itself. */
function cancelledWithAll(calls: readonly Call[]): {
  readonly cancellation: Canceller
  clear(): void
} {
  const all = newCanceller()
  let left = calls.length
  const forgets = calls.map(({ cancellation, reject }) =>
    cancellation.onCancel(() => {
      reject(cancellation.reason())
      if (--left === 0) all.end(cancellation.reason())
    }),
  )
  return {
    cancellation: all,
    clear() {
      for (const forget of forgets) forget()
    },
  }
}
