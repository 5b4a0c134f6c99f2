/**
 * The types that all layers share: ops, results, tasks, JSON values. Nothing here runs.
 *
 * `conv_id` (process), `obj_id` (task) and `ref` (the caller's name of a task) are called as in the
 * API. Ids are text: a conv_id or user id that was sent as a number is its exact text.
 */
import type { OpFaultCode } from './faults.ts'
import type { TraceContext } from './tracing.ts'

/**
 * A number that a double would change (`1.10`, `1e400`), kept as its exact text. Ask
 * `isNumberToken` of codec/json: a caller's object may have the same members.
 */
export interface NumberToken {
  readonly token: string
  toJSON(): string
}

export type JsonValue = null | boolean | number | string | NumberToken | JsonValue[] | JsonObject
export interface JsonObject {
  [key: string]: JsonValue
}

/**
 * A JSON object as text. codec/json makes it; `objectOf` parses it at the first read and keeps the
 * object in `memo`, which must not change.
 */
export interface Doc {
  readonly text: string
  memo: JsonObject | undefined
}

/** The caller. Without a user it is the embedder or a trusted caller, who may use every process. */
export interface Caller {
  readonly user?: string
  /** Who pays the rate and owns the request keys, if no user: a certificate or an address. */
  readonly payer?: string
  /**
   * The caller's own name of the request, 1 to 255 characters. The same request again under the
   * same key, within 24 hours, is answered as it was and not applied again, also after a crash.
   */
  readonly request_key?: string | undefined
  /** Of a request that a server has verified: what names it, in place of a `request_key`. */
  readonly signed?: SignedRequest
  /** The span that the ops belong to, for an engine with `tracing`; default the active one. */
  readonly trace?: TraceContext | undefined
}

/** What distinguishes two signed requests of a user. */
export interface SignedRequest {
  readonly timestamp_s: number
  /** In hex. It covers timestamp and body. */
  readonly signature: string
}

/** How a request is signed: SHA-1 in its path, or HMAC-SHA-256 in its headers. */
export type SignatureKind = 'path' | 'hmac'

export type OpType = 'create' | 'modify' | 'show'

/** A ref: its text, and whether it was sent as a number. `7` and `"7"` are the same ref. */
export interface Ref {
  readonly text: string
  readonly is_number: boolean
}

/** An op has all its members, also absent ones, so that all ops of a type have one shape. */
interface OpHead {
  /** The caller's id of the op, echoed as sent: JSON text of a string or number. */
  readonly id_text: string | undefined
  readonly conv_id: string
  readonly ref: Ref | undefined
}

export interface CreateOp extends OpHead {
  readonly type: 'create'
  readonly data: Doc
  /** Compared instead of `data` to recognise a repeat, whose result then has the task. */
  readonly identity?: Doc
}

export interface ModifyOp extends OpHead {
  readonly type: 'modify'
  readonly obj_id: string | undefined
  readonly data: Doc
  readonly is_sync: boolean
  readonly node_id: string | undefined
}

export interface ShowOp extends OpHead {
  readonly type: 'show'
  readonly obj_id: string | undefined
}

export type Op = CreateOp | ModifyOp | ShowOp

/**
 * The result of an op. `proc` is `ok`, and what was done is on disk, or it is the code of an op
 * fault, and nothing was done; `description` says why.
 */
export interface OpResult {
  readonly type?: OpType
  /** JSON text of the op's `id`, where one was sent. */
  readonly id_text?: string
  readonly ref: string | null
  /** Set where the ref was sent as a number. */
  readonly ref_is_number?: true
  readonly obj: 'task'
  /** The task. With `not_unical_ref` it is the one that holds the ref. */
  readonly obj_id?: string
  readonly proc: 'ok' | OpFaultCode
  readonly description?: string
  /**
   * Of a modify in the library: whether it resumed the task. False where it merged its data only,
   * because the task waits for something else, such as its handler.
   */
  readonly resumed?: boolean
  /** With `error`: the malformed member. */
  readonly key?: string
  /** The task of a show, or of a create with an `identity` that was made before. */
  readonly task?: Task
  /** Of such a create: its task has ended since, and is not kept. */
  readonly is_gone?: true
}

/**
 * A live task is `processing` (it has more to do at once), `delayed` (it waits, whatever for) or
 * `failed` in its node, from where a retry takes it on. An ended one is `processed` (it came to an
 * end node) or `canceled`.
 */
export type Status = 'processing' | 'delayed' | 'failed' | 'processed' | 'canceled'

/** Why a task has failed. */
export interface StatusDetails {
  /** A word for programs, such as `handler_error` or `loop`. */
  readonly tag: string
  readonly description: string
}

/**
 * Why an entry of a history was made.
 *
 * An op or an order from outside: `create`, `callback` (a modify that the task waited for),
 * `modify` (any other: the data was merged), `retry`, `move`, `cancel`, `schedule` (created when a
 * schedule was due). The process itself: `go` (a logic sent it on), `timer`, `fail` (a logic
 * failed: the task entered the error node, or failed where it was; the entry has the tag),
 * `migrate` (its node was dropped by an import), `count` (created by a count semaphor). What it
 * waited for came: `handler`, `call` (HTTP), `code`, `queue` (another task took it), `reply` (of
 * the task it called). Other tasks: `copy` (created or modified by one), `rpc` (called by one).
 */
export type HistoryWhy =
  | 'create'
  | 'callback'
  | 'modify'
  | 'retry'
  | 'move'
  | 'cancel'
  | 'schedule'
  | 'go'
  | 'timer'
  | 'fail'
  | 'migrate'
  | 'count'
  | 'handler'
  | 'call'
  | 'code'
  | 'queue'
  | 'reply'
  | 'copy'
  | 'rpc'

/** Something that happened to a task. */
export interface HistoryEntry {
  /** The node that the task entered or, where it did not move, the one it was in. */
  readonly node_id: string
  /** Unix milliseconds. */
  readonly at_ms: number
  readonly why: HistoryWhy
  /** The user whose op it was; absent for ops without a user, and for what is no op. */
  readonly by?: string
  /** Of a failure: as in `status_details`. */
  readonly tag?: string
}

/**
 * A task as callers see it. `data` is parsed when read, also by `console.log`, JSON.stringify and a
 * copy; `data_text` is the exact text. `history` is parsed when read too: the last `history_max`
 * things that happened to the task, the oldest first. It is no enumerable member, so a copy or the
 * JSON text of the task is without it, as is a task that came over HTTP.
 */
export interface Task {
  /** The engine's name of the task: 24 hex digits, ascending. */
  readonly obj_id: string
  readonly conv_id: string
  /** The caller's name of the task, as text. */
  readonly ref: string | null
  readonly ref_is_number?: true
  readonly status: Status
  /** Of a failed task. */
  readonly status_details?: StatusDetails
  /** Who created it; null for the embedder. */
  readonly user_id: string | null
  readonly create_time_ms: number
  readonly change_time_ms: number
  /** Where it is; for a process of `defineProcess` the name of the node. */
  readonly node_id: string
  readonly node_prev_id: string
  readonly data_text: string
  readonly data: unknown
  readonly history?: readonly HistoryEntry[]
  /** The trace that it belongs to, to be looked up where traces are kept. */
  readonly trace_id?: string
}
