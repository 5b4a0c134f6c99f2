/**
 * Batches single ops: ops called within one turn of the event loop, or while `requests_max`
 * requests are under way, share requests, so that a thousand concurrent callers cost the server a
 * few commits. A turn's ops are split over a few requests: the server works on one while this side
 * encodes the next.
 *
 * Each op is cancelled and retried on its own. If a request is refused for a reason that one op may
 * have caused, each op is sent again alone. Ops on the same task (same ref or obj_id) called in one
 * turn are applied in call order, as long as they fit into one request.
 */
import { onNextTurn } from '../core/clock.ts'
import type { ClientResult } from './api.ts'
import { type Cancellation, type Canceller, newCanceller } from './cancellation.ts'
import { isClientFault } from './faults.ts'
import type { SentOp } from './sent-op.ts'
import { type Sender, type SentCall, sentCall } from './transport.ts'

export interface Batcher {
  call(op: SentOp): BatchedCall
}

export interface BatchedCall {
  /**
   * One try of the op, in a shared request. A shared request that may have been applied is repeated
   * as a whole, once for all of its calls, if the server recognises repeats. Otherwise the op is
   * sent without the others, and the caller decides whether it may be repeated.
   */
  send(cancellation: Cancellation): Promise<ClientResult>
  isKept(): boolean
}

interface Call {
  readonly op: SentOp
  readonly cancellation: Cancellation
  resolve(result: ClientResult): void
  reject(error: unknown): void
  /** Binds the call to its place in a request that may have been applied. */
  stick(sent: SharedRequest, at: number): void
}

/** A request that may have been applied. */
interface SharedRequest {
  readonly call: SentCall
  /** The repeat that is under way or has succeeded. */
  trying: { readonly results: Promise<ClientResult[]>; waiting: number; cancel(): void } | undefined
}

/** Bounds of one request, far below those of a server. */
const ops_max = 100
const data_chars_max = 256 * 1024
/** The number of requests over which ops are split, and the fewest ops worth a request. */
const requests_wanted = 2
const ops_wanted = 8

/** `requests_max`: shared requests under way at once. */
export function newBatcher(transport: Sender, requests_max: number): Batcher {
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
        // In the next turn, so that ops called upon these answers join the next request.
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
    const sent = sentCall(
      transport,
      live.map(({ op }) => op),
    )
    try {
      const results = await sent.send(cancellation)
      for (const [at, call] of live.entries()) call.resolve(results[at] as ClientResult)
    } catch (error) {
      if (isSingleOpFault(error)) await Promise.all(live.map(sendAlone))
      else fail(live, sent, error)
    } finally {
      dispose()
    }
  }

  function fail(calls: readonly Call[], call: SentCall, error: unknown): void {
    const is_unknown = !isClientFault(error) || error.outcome === 'unknown'
    const shared: SharedRequest = { call, trying: undefined }
    for (const [at, one] of calls.entries()) {
      if (is_unknown) one.stick(shared, at)
      one.reject(error)
    }
  }

  async function sendAlone(one: Call): Promise<void> {
    const sent = sentCall(transport, [one.op])
    try {
      const [result] = await sent.send(one.cancellation)
      one.resolve(result as ClientResult)
    } catch (error) {
      fail([one], sent, error)
    }
  }

  return {
    call(op) {
      let stuck: { readonly shared: SharedRequest; readonly at: number } | undefined
      const stick: Call['stick'] = (shared, at) => {
        stuck = { shared, at }
      }
      return {
        isKept: () => stuck?.shared.call.isKept() ?? transport.keeps([op]),
        send(cancellation) {
          if (stuck?.shared.call.isKept()) return sendAgain(stuck.shared, stuck.at, cancellation)
          stuck = undefined
          return new Promise((resolve, reject) => {
            scheduleSend()
            waiting.push({ op, cancellation, resolve, reject, stick })
          })
        },
      }
    },
  }
}

/** Repeats a shared request, or joins the repeat by another of its calls. */
function sendAgain(
  shared: SharedRequest,
  at: number,
  cancellation: Cancellation,
): Promise<ClientResult> {
  const trying = shared.trying ?? beginAgain(shared)
  trying.waiting++
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      removeListener()
      if (--trying.waiting === 0) trying.cancel()
    }
    const removeListener = cancellation.onCancel(() => {
      leave()
      reject(cancellation.reason())
    })
    trying.results.then(
      (results) => {
        leave()
        resolve(results[at] as ClientResult)
      },
      (error) => {
        leave()
        reject(error)
      },
    )
  })
}

function beginAgain(shared: SharedRequest): NonNullable<SharedRequest['trying']> {
  const all = newCanceller()
  const results = shared.call.send(all)
  const trying = { results, waiting: 0, cancel }
  let has_succeeded = false
  const end = (): void => {
    if (shared.trying === trying && !has_succeeded) shared.trying = undefined
  }
  function cancel(): void {
    end()
    all.cancel('no call waits')
  }
  shared.trying = trying
  results.then(() => {
    has_succeeded = true
  }, end)
  return trying
}

/** The ops of each of `requests` requests; all go into one if two ops name one task. */
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

/** Whether one op, or the sum of ops, made the request too large or malformed. */
function isSingleOpFault(error: unknown): boolean {
  return isClientFault(error) && single_op_codes.includes(error.code)
}

const single_op_codes: readonly string[] = ['format_error', 'too_many_ops', 'body_too_large']

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
