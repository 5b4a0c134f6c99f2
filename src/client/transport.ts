/**
 * What a way to the server must do; http and grpc each do it. Neither repeats, waits or decides:
 * a try is a try, and its failure a ClientFault.
 */
import type { BatchResult, ClientResult } from './api.ts'
import type { Cancellation } from './cancellation.ts'
import type { SentOp } from './sent-op.ts'

/** A call made ready: each `send` is one try of it, with the same bytes each time. */
export interface ReadyCall {
  send(cancellation: Cancellation): Promise<ClientResult[]>
}

export interface StreamLimit {
  readonly cancellation: Cancellation
  /** For each batch. */
  readonly timeout_ms: number
}

export interface Transport {
  ready(ops: readonly SentOp[]): ReadyCall
  stream(
    batches: AsyncIterable<readonly SentOp[]>,
    limit: StreamLimit,
  ): AsyncGenerator<BatchResult, void, undefined>
  close(): Promise<void>
}

/** Batches of a stream that are sent and not yet read by the caller, at most. */
export const window_batches = 8
