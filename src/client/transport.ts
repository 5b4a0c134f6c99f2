/**
 * What a transport does, and what the HTTP and the gRPC transport share. A transport neither
 * repeats nor waits: each try succeeds or fails with a ClientFault.
 */

import { readFile } from 'node:fs/promises'
import { defineData } from '../codec/task-data.ts'
import type { ChangesOptions } from '../engine/api/change-api.ts'
import type { CountFilter, TaskCounts, TaskQuery } from '../engine/api/search-api.ts'
import type { BatchResult, ClientAction, ClientPage, ClientResult, ClientTask } from './api.ts'
import type { Cancellation } from './cancellation.ts'
import { isClientFault } from './faults.ts'
import type { ReceivedChange } from './long-calls.ts'
import type { SentOp } from './sent-op.ts'

/** An encoded call; each `send` is one try with the same bytes. */
export interface EncodedCall {
  /** `is_repeat`: an earlier try may have been applied. */
  send(cancellation: Cancellation, is_repeat?: boolean): Promise<ClientResult[]>
}

export interface StreamOptions {
  readonly cancellation: Cancellation
  /** For each batch. */
  readonly timeout_ms: number
}

/** Calls besides ops of a batch. Each is one try. */
export interface TaskCalls {
  /** The task with its history; undefined if none is found. */
  get(target: SentOp, cancellation: Cancellation): Promise<ClientTask | undefined>
  /** Resolves once the task has ended or failed. */
  wait(target: SentOp, with_history: boolean, cancellation: Cancellation): Promise<ClientTask>
  cancel(target: SentOp, cancellation: Cancellation): Promise<ClientAction>
  retry(
    target: SentOp,
    node_id: string | undefined,
    cancellation: Cancellation,
  ): Promise<ClientAction>
  list(query: TaskQuery, cancellation: Cancellation): Promise<ClientPage>
  count(filter: CountFilter, cancellation: Cancellation): Promise<TaskCounts>
  /** Runs until it is cancelled or the connection breaks. */
  changes(options: ChangesOptions, cancellation: Cancellation): AsyncIterable<ReceivedChange>
}

export interface Transport {
  /** The address, for messages. */
  readonly name: string
  /** Undefined if the servers of this transport have none. */
  readonly tasks?: TaskCalls
  /** A name that identifies a request and its repeats: a timestamp, or a request key. */
  newName(): string
  /** `name`: default a new one. */
  encode(ops: readonly SentOp[], name?: string): EncodedCall
  /** Whether the server is known to recognise a repeat of these ops under their name. */
  keeps(ops: readonly SentOp[]): boolean
  stream(
    batches: AsyncIterable<readonly SentOp[]>,
    options: StreamOptions,
  ): AsyncGenerator<BatchResult, void, undefined>
  /** Whether a call would be sent at once; always true if the transport connects per call. */
  isConnected(): boolean
  /** Asks the server, apart from calls, whether it is ready. Rejects without an answer. */
  probe(cancellation: Cancellation): Promise<'ready' | 'unready'>
  close(): Promise<void>
}

/** The options of a transport to one of several addresses. */
export interface OneOfSeveral {
  /** The longest that a connection may take. */
  readonly connect_ms_max: number
}

/** The header that makes a standby refuse a call of a client with several addresses. */
export const for_owner = { 'conveyor-role': 'owner' } as const

/** The maximum of a stream's batches that are sent and not yet read by the caller. */
export const window_batches = 8

/** A task as the client returns it: its data as the exact text, and parsed on access. */
export function withParsedData(task: Omit<ClientTask, 'data'>): ClientTask {
  return defineData({ ...task })
}

/**
 * A certificate or key, given as PEM or as the path of a PEM file. Rejects with a TypeError for
 * other content, and with the system's error if the file cannot be read.
 */
export async function readPem(name: string, given: string | Uint8Array): Promise<Buffer> {
  const bytes =
    typeof given === 'string' && !given.includes('-----BEGIN')
      ? await readFile(given)
      : Buffer.from(given as string)
  if (bytes.includes('-----BEGIN')) return bytes
  throw new TypeError(`${name} holds no PEM`)
}

/**
 * A call over its tries. Once a try may have been applied, the same bytes are sent again under the
 * same name, by which the server recognises the repeat. Before that each try has a new name, so a
 * call that waits for long is not signed with an old time.
 */
export interface SentCall {
  /** One try. */
  send(cancellation: Cancellation): Promise<ClientResult[]>
  /** Whether the server recognises a repeat. */
  isKept(): boolean
}

export type Sender = Pick<Transport, 'encode' | 'keeps'>

export function sentCall(transport: Sender, ops: readonly SentOp[]): SentCall {
  let encoded = transport.encode(ops)
  let is_new = true
  let may_be_applied = false
  return {
    isKept: () => transport.keeps(ops),
    async send(cancellation) {
      if (!is_new && !may_be_applied) encoded = transport.encode(ops)
      is_new = false
      try {
        return await encoded.send(cancellation, may_be_applied)
      } catch (error) {
        if (!isClientFault(error) || error.outcome === 'unknown') may_be_applied = true
        throw error
      }
    },
  }
}
