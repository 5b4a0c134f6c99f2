/**
 * The nouns, as types only: what travels between the floors. Nothing here runs.
 *
 * Wire names (`conv_id`, `obj_id`, `ref`) are kept as they are on the wire. Ids are text: a conv_id
 * or a user id that looks like a number is still its digits.
 */
import type { OpFaultCode } from './faults.ts'

/**
 * A number whose token a double would change (`1.10`, `1e400`): it keeps its text (wire 1.7). Told
 * from an object of the caller's by its prototype: ask codec/json `isNumberToken`, never its shape.
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
 * A JSON object as the text it is. codec/json makes these, and `objectOf` reads one: parsed when
 * first asked for, kept in `memo`, and changed by nobody.
 */
export interface Doc {
  readonly text: string
  memo: JsonObject | undefined
}

/** Who calls. Without a user: the embedder or a trusted caller, who may see every process. */
export interface Caller {
  readonly user?: string
}

export type OpType = 'create' | 'modify' | 'show'

/** An external reference: its text, and whether it was sent as a number (`7` and `"7"` are one). */
export interface Ref {
  readonly text: string
  readonly is_number: boolean
}

/** Ops have all their members, given or not, so that those of a type are alike. */
interface OpHead {
  /** Echoed as sent: JSON text of a string or number. */
  readonly id_text: string | undefined
  readonly conv_id: string
  readonly ref: Ref | undefined
}

export interface CreateOp extends OpHead {
  readonly type: 'create'
  readonly data: Doc
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

/** What an op came to. `proc` is `ok` or the code of an op fault; a failed op has a description. */
export interface OpResult {
  readonly type?: OpType
  /** JSON text of the op's `id`, where one was sent. */
  readonly id_text?: string
  readonly ref: string | null
  /** Set where the ref is a number on the wire. */
  readonly ref_is_number?: true
  readonly obj: 'task'
  readonly obj_id?: string
  readonly proc: 'ok' | OpFaultCode
  readonly description?: string
  /** The member at fault, where `proc` is `error`. */
  readonly key?: string
  /** What a show found. */
  readonly task?: Task
}

export type Status = 'processing' | 'delayed' | 'failed' | 'processed' | 'canceled'

export interface StatusDetails {
  readonly tag: string
  readonly description: string
}

/** A task as callers see it. `data` is parsed when read; `dataText` is the exact text. */
export interface Task {
  readonly obj_id: string
  readonly conv_id: string
  readonly ref: string | null
  readonly ref_is_number?: true
  readonly status: Status
  readonly status_details?: StatusDetails
  readonly user_id: string | null
  readonly create_time_ms: number
  readonly change_time_ms: number
  readonly node_id: string
  readonly node_prev_id: string
  readonly dataText: string
  readonly data: unknown
}

/** A task that changed, told after the commit. `seq` ascends by one over one engine's life. */
export interface Change {
  readonly seq: number
  readonly conv_id: string
  readonly obj_id: string
  readonly ref: string | null
  readonly status: Status
  readonly node_id: string
}
