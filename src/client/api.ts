/**
 * The client as its callers see it: one interface over signed HTTP and over gRPC with certificates.
 * Types only.
 *
 * What an op came to is a value, also where it was refused. A call rejects with a ClientFault, told
 * by its `code` and never by its class, where it was refused as a whole, did not come through, or
 * took too long; where the caller's own AbortSignal ended it, with that signal's reason.
 */

import type { Chance, Clock } from '../core/clock.ts'
import type { OpFaultCode, WholeFaultCode } from '../core/faults.ts'
import type { Task } from '../core/model.ts'
import type { CreateInput, ModifyInput, TargetInput } from '../engine/api.ts'

export type ConnectOptions = (HttpTarget | GrpcTarget) & {
  /** Milliseconds a call gets in all, its repeats counted; default 30,000. */
  readonly timeout_ms?: number
  /** How often a call that may be repeated is; default 4, 0 never. */
  readonly retries_max?: number
  readonly clock?: Clock
  readonly chance?: Chance
}

/** Signed HTTP, as a user with a secret. */
export interface HttpTarget {
  /** With the base path, such as `http://127.0.0.1:8080`; `https:` where a proxy ends TLS. */
  readonly url: string
  readonly user: string | number
  readonly secret: string
  /** Connections kept at most; calls beyond them wait. Default 16. */
  readonly sockets_max?: number
  /** For `https:`: the authorities to trust instead of the system's. PEM, or the path of a file. */
  readonly ca?: string | Uint8Array
}

/** gRPC over mutual TLS, as the certificate. Each of the three is PEM, or the path of a file. */
export interface GrpcTarget {
  /** HOST:PORT. */
  readonly address: string
  readonly ca: string | Uint8Array
  readonly cert: string | Uint8Array
  readonly key: string | Uint8Array
}

/** `data` is a plain JSON value, or `rawJson(text)` where numbers must keep their digits. */
export type ClientOp =
  | (CreateInput & Named & { readonly type: 'create' })
  | (ModifyInput & Named & { readonly type: 'modify' })
  | (TargetInput & Named & { readonly type: 'show' })

interface Named {
  readonly obj?: 'task'
  /** Comes back in the op's result. */
  readonly id?: string
}

/**
 * A task as the engine tells it. Over HTTP its times are whole seconds; over gRPC it does not say
 * why it failed.
 */
export type ClientTask = Omit<Task, 'ref_is_number'>

export interface ClientResult {
  /** The op's `id`, where it had one. */
  readonly id?: string
  readonly ref: string | null
  readonly obj_id?: string
  readonly proc: 'ok' | OpFaultCode
  /** What is wrong, where `proc` is not `ok`. */
  readonly description?: string
  /** What a show found. */
  readonly task?: ClientTask
}

/** What a batch of a stream came to; one that was refused as a whole has no results. */
export interface BatchResult {
  readonly proc: 'ok' | WholeFaultCode
  readonly description?: string
  readonly results: readonly ClientResult[]
}

export interface CallOptions {
  readonly signal?: AbortSignal
  /** Instead of the client's. */
  readonly timeout_ms?: number
}

/** `create`, `modify` and `task` that are called at the same time may travel together. */
export interface Client {
  create(op: CreateInput & Named, options?: CallOptions): Promise<ClientResult>
  modify(op: ModifyInput & Named, options?: CallOptions): Promise<ClientResult>
  /** Applies ops in order, in one durable commit: results[i] belongs to ops[i]. */
  apply(ops: readonly ClientOp[], options?: CallOptions): Promise<ClientResult[]>
  /**
   * Applies batches in the order given and answers them in that order. A few are under way at a
   * time: while the caller does not read, no more are taken from `batches`. A batch that was
   * refused as a whole is answered as such and the next goes on; what would refuse every batch ends
   * the stream with a rejection, and then the unanswered ones may or may not have been applied.
   * `timeout_ms` is for each batch. Nothing is repeated.
   */
  stream(
    batches: AsyncIterable<readonly ClientOp[]> | Iterable<readonly ClientOp[]>,
    options?: CallOptions,
  ): AsyncGenerator<BatchResult, void, undefined>
  /**
   * The task, or undefined where there is none; ended ones are found by obj_id. Rejects with the
   * op's code (`access_denied`, …) where it may not be read.
   */
  task(target: TargetInput, options?: CallOptions): Promise<ClientTask | undefined>
  /** Lets go of the connections; calls under way reject. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}
