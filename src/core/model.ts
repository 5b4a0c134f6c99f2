/**
 * The types that all layers share: ops, results, tasks, JSON values. `conv_id` (process), `obj_id`
 * (task) and `ref` (the caller's name of a task) are named as in the API. Ids are text: one sent as
 * a number is its exact text.
 */
import type { OpFaultCode } from './faults.ts'
import type { TraceContext } from './tracing.ts'

/**
 * A number that a double would change (`1.10`, `1e400`), as its exact text. Test for it with
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
 * A JSON object as text. `objectOf` of codec/json parses it once into `memo`, which is immutable.
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
   * The caller's name of the request, 1 to 255 characters. A repeat under the same key within 24
   * hours gets the first answer and is not applied again, also after a crash.
   */
  readonly request_key?: string | undefined
  /** What identifies a request that a server has verified, in place of a `request_key`. */
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

/** How a request is signed: by SHA-1 or SHA-2 in its path, or HMAC-SHA-256 in its headers. */
export const signature_kinds = [
  ...(['path', 'path:sha224', 'path:sha256', 'path:sha384', 'path:sha512'] as const),
  'hmac',
] as const
export type SignatureKind = (typeof signature_kinds)[number]

export type OpType = 'create' | 'modify' | 'show'

/** A ref: its text, and whether it was sent as a number. `7` and `"7"` are the same ref. */
export interface Ref {
  readonly text: string
  readonly is_number: boolean
}

/** Has all members, also absent ones, so that all ops of a type have one shape. */
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

/** `proc` is `ok` once the op is on disk, or the code of an op fault; then nothing was done. */
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
   * Of a modify in the library: whether the task resumed. False where its data was merged only,
   * because it waits for something else, such as its handler.
   */
  readonly resumed?: boolean
  /** With `error`: the malformed member. */
  readonly key?: string
  /** The task of a show, or of a create with an `identity` that was made before. */
  readonly task?: Task
  /** Of such a create: the task has ended and is not kept. */
  readonly is_gone?: true
}

/**
 * A live task is `processing` (runs at once), `delayed` (waits) or `failed` (stays in its node
 * until a retry). An ended one is `processed` (reached an end node) or `canceled`.
 */
export type Status = 'processing' | 'delayed' | 'failed' | 'processed' | 'canceled'

export interface StatusDetails {
  /** A word for programs, such as `handler_error` or `loop`. */
  readonly tag: string
  readonly description: string
}

/**
 * Why a history entry was made. By an op or an operator: `create`, `callback` (a modify that the
 * task waited for), `modify` (any other), `retry`, `move`, `cancel`, `schedule`. By the process:
 * `go`, `timer`, `fail` (to the error node, or failed in place; the entry has the tag), `migrate`
 * (an import dropped the node), `count` (a count semaphor). By what it waited for: `handler`,
 * `call` (HTTP), `code`, `queue` (another task took it), `reply` (of the task it called). By other
 * tasks: `copy`, `rpc`.
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
  | 'db'
  | 'code'
  | 'queue'
  | 'reply'
  | 'copy'
  | 'rpc'

export interface HistoryEntry {
  /** The node entered or, without a move, the current one. */
  readonly node_id: string
  /** Unix milliseconds. */
  readonly at_ms: number
  readonly why: HistoryWhy
  /** The user of the op; absent for ops without a user and for what is not an op. */
  readonly by?: string
  /** Of a failure: as in `status_details`. */
  readonly tag?: string
}

/**
 * A task as callers see it. `data` and `history` are parsed when read; `data_text` is the exact
 * text. `history` has the last `history_max` entries, oldest first. It is not enumerable, so copies
 * and the JSON text lack it, as do tasks that came over HTTP.
 */
export interface Task {
  /** The engine's name of the task: 24 hex digits, ascending. */
  readonly obj_id: string
  readonly conv_id: string
  /** The caller's name of the task, as text. */
  readonly ref: string | null
  readonly ref_is_number?: true
  readonly status: Status
  readonly status_details?: StatusDetails
  /** The user who created it; null for the embedder. */
  readonly user_id: string | null
  readonly create_time_ms: number
  readonly change_time_ms: number
  /** For a process of `defineProcess`, the name of the node. */
  readonly node_id: string
  readonly node_prev_id: string
  readonly data_text: string
  readonly data: unknown
  readonly history?: readonly HistoryEntry[]
  readonly trace_id?: string
}
