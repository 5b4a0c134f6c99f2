/**
 * Batches single ops: those called within one turn of the event loop, and those that wait while
 * `requests_max` requests are under way, are sent in shared requests. A thousand concurrent callers
 * cost the server a few commits. A turn's ops are split over a few requests, so that the server
 * works on one while this side encodes the next.
 *
 * Each op is cancelled and retried on its own. Where a request is refused for a reason that one op
 * may have caused, each of its ops is sent again alone. Ops on the same task (same ref or obj_id)
 * called in one turn are applied in call order, as long as they fit into one request.
 */
import { onNextTurn } from '../core/clock.ts'
import type { ClientResult } from './api.ts'
import { type Cancellation, type Canceller, newCanceller } from './cancellation.ts'
import { isClientFault } from './faults.ts'
import type { SentOp } from './sent-op.ts'
import type { Transport } from './transport.ts'

export interface Batcher {
  /** One try of one op, in a shared request. */
  send(op: SentOp, cancellation: Cancellation): Promise<ClientResult>
}

interface Call {
  readonly op: SentOp
  readonly cancellation: Cancellation
  resolve(result: ClientResult): void
  reject(error: unknown): void
}

/** Bounds of one request, far below those of a server. */
const ops_max = 100
const data_chars_max = 256 * 1024
/** The requests over which waiting ops are split, and the ops below which splitting costs more. */
const requests_wanted = 2
const ops_wanted = 8

/** `requests_max`: shared requests under way at once. */
export function newBatcher({ encode }: Pick<Transport, 'encode'>, requests_max: number): Batcher {
  const waiting: Call[] = []
  let under_way = 0
  let is_scheduled = false

  function scheduleSend(): void {
    if (is_scheduled) return
    is_scheduled = true
    onNextTurn(sendWaiting)
  }

  function sendWaiting(): void {
    is_scheduled = false
    const left = Math.min(requests_wanted, requests_max) - under_way
    const share = shareOf(waiting, Math.max(1, left))
    while (waiting.length > 0 && under_way < requests_max) {
      under_way++
      void sendTogether(takeFirst(waiting, share)).finally(() => {
        under_way--
        // Waits a turn, so that ops called upon these answers are in the next request.
        if (waiting.length > 0) scheduleSend()
      })
    }
  }

  async function sendTogether(calls: readonly Call[]): Promise<void> {
    const live = calls.filter(isLive)
    const [only] = live
    if (only === undefined) return
    if (live.length === 1) return sendAlone(only)
    const { cancellation, dispose } = cancelledWithAll(live)
    try {
      const results = await encode(live.map(({ op }) => op)).send(cancellation)
      for (const [at, call] of live.entries()) call.resolve(results[at] as ClientResult)
    } catch (error) {
      if (!isSingleOpFault(error)) for (const call of live) call.reject(error)
      else await Promise.all(live.map(sendAlone))
    } finally {
      dispose()
    }
  }

  async function sendAlone({ op, cancellation, resolve, reject }: Call): Promise<void> {
    try {
      const [result] = await encode([op]).send(cancellation)
      resolve(result as ClientResult)
    } catch (error) {
      reject(error)
    }
  }

  return {
    send: (op, cancellation) =>
      new Promise((resolve, reject) => {
        scheduleSend()
        waiting.push({ op, cancellation, resolve, reject })
      }),
  }
}

/** The ops that each of `requests` requests takes; all in one where two ops name one task. */
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

/** One op, or the sum of them, made the request too large or malformed. */
function isSingleOpFault(error: unknown): boolean {
  return isClientFault(error) && single_op_codes.has(error.code)
}

const single_op_codes: ReadonlySet<string> = new Set([
  'format_error',
  'too_many_ops',
  'body_too_large',
])

/** Cancelled once every call is; a call that is cancelled earlier rejects alone. */
function cancelledWithAll(calls: readonly Call[]): {
  readonly cancellation: Canceller
  dispose(): void
} {
  const all = newCanceller()
  let left = calls.length
  const removers = calls.map(({ cancellation, reject }) =>
    cancellation.onCancel(() => {
      reject(cancellation.reason())
      if (--left === 0) all.cancel(cancellation.reason())
    }),
  )
  return {
    cancellation: all,
    dispose() {
      for (const remove of removers) remove()
    },
  }
}
