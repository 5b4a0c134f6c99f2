/**
 * The records of processes, users, secrets, certificates and schedules: JSON text with the members
 * stated here. Also the values that are plain numbers: sums, counts and the bits of grants. Task
 * records have their own file, codec/task-bytes.
 */
import type { OpResult, SignatureKind, Status } from '../core/model.ts'
import { parsePlain } from './json.ts'
import { statuses } from './task-record.ts'

export interface ProcessRecord {
  readonly title: string
  readonly status: 'active' | 'paused'
  /** True for a process without nodes, which takes no tasks. */
  readonly is_draft?: boolean
  readonly version: number
  /** SHA-256 of the canonical text of the definition, hex. */
  readonly hash: string
  /** The dropped nodes that still have tasks, each with the node to which they migrate. */
  readonly moves: Readonly<Record<string, string>>
  /** How many nodes answer calls from a stub; absent for none. */
  readonly stubs?: number
  /** The databases that its nodes name; absent for none, and in older files. */
  readonly instances?: readonly string[]
  /** Absent while its webhook is closed. */
  readonly webhook?: WebhookRecord | undefined
  /** When it was first stored, and when its newest version was; absent in older files. */
  readonly create_ms?: number
  readonly change_ms?: number
  /** The user who made it through the API. */
  readonly owner?: string
  /** The user who confirmed its newest version, and the number that his draft had. */
  readonly confirmed_by?: string
  readonly confirmed_draft?: number
  /** The stage whose aliases and variables its definition reads first; absent for none. */
  readonly stage_id?: string
}

/** Edits of a process that are not confirmed; each changed node has a key of its own. */
export interface DraftRecord {
  /** The number that its user knows it by. */
  readonly version: number
  /** The version of the process that it changes. */
  readonly base: number
  readonly opened_ms: number
  readonly change_ms: number
  /** 32 random hex digits; with `edits` it names one state of one draft. */
  readonly nonce: string
  readonly edits: number
  /** Nodes of the whole definition. */
  readonly nodes: number
  /** How many of them it changes; one more where it changes what is beside them. */
  readonly changed: number
  /** Bytes of its changes. */
  readonly bytes: number
}

/** A stage of a project, as exports name it. */
export interface StageRecord {
  readonly id: string
  readonly title: string
  readonly short_name?: string
  readonly project_id?: string
  readonly project_title?: string
}

export interface StagesRecord {
  readonly stages: readonly StageRecord[]
}

/** What tools have said of an alias or a variable (codec/described). */
export interface Described {
  /** Its number; one that has none gets it from its name. */
  readonly obj_id?: number
  readonly title?: string
  readonly description?: string
  readonly create_ms?: number
  readonly change_ms?: number
}

export interface AliasAbout extends Described {
  readonly owner?: string
  /** Of a webhook of its own; absent while that is closed. */
  readonly nonce?: string
}

export interface VariableAbout extends Described {
  /** How tools show and send the value; of one that they did not make, as its JSON is. */
  readonly data_type?: 'raw' | 'json'
  /** Under this name its value is encrypted, and its text is empty. */
  readonly secret?: string
}

export interface WebhookRecord {
  /** 32 random hex digits; with the file's secret they give the hash of the address. */
  readonly nonce: string
  /** The user whose credentials a request must carry. */
  readonly user?: string
}

export interface UserRecord {
  readonly name: string
  readonly create_ms: number
  /** The only signatures the user may use; absent for `path` and `hmac`. */
  readonly sign?: SignatureKind | readonly SignatureKind[]
  /** What the user may on the operator's page; absent for nothing. */
  readonly console?: 'look' | 'operate' | 'administer'
  /** May use and change every process through the API; absent for no. */
  readonly is_administrator?: true
}

/** `sealed` is the encrypted secret. `until_ms` is set once it is rotated. */
export interface SecretRecord {
  readonly sealed: string
  readonly until_ms?: number
}

/** Whom a certificate name acts as. */
export type CertificateRecord =
  | { readonly acts_as: 'user'; readonly user: string }
  /** Everybody: a trusted internal caller. */
  | { readonly acts_as: 'all' }
  /** A refusal. */
  | { readonly acts_as: 'nobody' }

/** What a schedule creates, and when: one of `cron`, `every_ms` and `at_ms` is set. */
export interface ScheduleDefinition {
  readonly cron?: string
  readonly every_ms?: number
  readonly at_ms?: number
  readonly timezone: string
  readonly conv_id: string
  readonly data_text: string
  /** The member of the data that gets the due time. */
  readonly due_key?: string
  readonly catch_up: 'none' | 'latest' | 'all'
}

export interface ScheduleRecord extends ScheduleDefinition {
  /** When this definition was put: the due times of `every_ms` are counted from here. */
  readonly put_ms: number
  readonly is_paused: boolean
  /** Null once no due time is left. */
  readonly next_ms: number | null
  readonly last?: LastRun
  readonly left_out?: { readonly from_ms: number; readonly to_ms: number }
}

/** The newest due time that was tried, and what came of it. */
export interface LastRun {
  readonly due_ms: number
  readonly at_ms: number
  readonly ref: string
  readonly proc: OpResult['proc'] | 'internal_error'
  readonly obj_id?: string
  readonly description?: string
}

/** A bulk job (engine/search/bulk): what it is to do, and how far it has come. */
export interface BulkRecord {
  readonly action: 'cancel' | 'retry' | 'modify' | 'move'
  /** JSON text, as the data are. */
  readonly filter_text: string
  readonly data_text?: string
  readonly to_node_id?: string
  /** The obj_id before which its tasks were created. */
  readonly until_id: string
  /** The obj_id up to which all tasks are dealt with; empty at the beginning. */
  readonly last_id: string
  readonly started_ms: number
  readonly changed_ms: number
  readonly is_done: boolean
  readonly scanned: number
  readonly matched: number
  readonly changed: number
  readonly skipped: number
  readonly refused: Readonly<Record<string, number>>
}

type SmallRecord =
  | AliasAbout
  | VariableAbout
  | StagesRecord
  | BulkRecord
  | DraftRecord
  | ProcessRecord
  | UserRecord
  | SecretRecord
  | CertificateRecord
  | ScheduleRecord

export function encodeRecord(record: SmallRecord): Buffer {
  return Buffer.from(JSON.stringify(record))
}

/** `bytes` must come from `encodeRecord`, under a key of the record's type: nothing is checked. */
export function decodeRecord<T extends SmallRecord>(bytes: Buffer): T {
  return parsePlain(bytes.toString('utf8')) as T
}

export function encodeSum(sum: number): Buffer {
  const out = Buffer.allocUnsafe(8)
  out.writeDoubleBE(sum)
  return out
}

export function decodeSum(bytes: Buffer | undefined): number {
  return bytes === undefined ? 0 : bytes.readDoubleBE(0)
}

/** The tasks of a node by status; of `processed` and `canceled`, those that are kept. */
export type StatusCounts = Record<Status, number>

export const noTasks = (): StatusCounts => ({
  processing: 0,
  delayed: 0,
  failed: 0,
  processed: 0,
  canceled: 0,
})

export const liveOf = (counts: StatusCounts): number =>
  counts.processing + counts.delayed + counts.failed

/** Five numbers of 53 bits, 7 bits in a byte. */
const counts_scratch = Buffer.alloc(5 * 8)

/**
 * Each number in groups of 7 bits, the lowest first, with the high bit set where more follow; the
 * zeros at the end are left out. The bytes are valid until the next call.
 */
export function encodeCounts(counts: StatusCounts): Buffer {
  let at = 0
  let end = 0
  for (const status of statuses) {
    let rest = Math.max(0, counts[status])
    if (rest === 0) counts_scratch[at++] = 0
    else {
      for (; rest >= 128; rest = Math.floor(rest / 128)) counts_scratch[at++] = 128 | (rest % 128)
      counts_scratch[at++] = rest
      end = at
    }
  }
  return counts_scratch.subarray(0, end)
}

/** Into `counts`, which is returned. */
export function decodeCounts(bytes: Buffer | undefined, counts = noTasks()): StatusCounts {
  let at = 0
  for (const status of statuses) {
    let count = 0
    if (bytes !== undefined && at < bytes.length) {
      let unit = 1
      let byte = bytes[at++] as number
      for (; byte >= 128 && at < bytes.length; byte = bytes[at++] as number) {
        count += (byte - 128) * unit
        unit *= 128
      }
      count += byte * unit
    }
    counts[status] = count
  }
  return counts
}

/** What a grant allows, as bits of its one byte. */
export const grant_bits = { create: 1, modify: 2, show: 4, edit: 8 } as const

/** The value of a limit key, as JSON text like that of task_slot. */
export interface LimitNumbers {
  /** Tasks that hold a slot of this value, and tasks in its line. */
  held: number
  waiting: number
  /** No task in the line has a smaller place than `first`, or a greater one than `last`. */
  first: number
  last: number
  /** Of a rate: when all that was let in will be paid for; 0 without one. */
  paid_ms: number
  /** Of its key limit_due; 0 without one. */
  due_ms: number
}

export function encodeNumbers(numbers: LimitNumbers): Buffer {
  const { held, waiting, first, last, paid_ms, due_ms } = numbers
  const of_rate = paid_ms === 0 && due_ms === 0 ? [] : [paid_ms, due_ms]
  return Buffer.from(JSON.stringify([held, waiting, first, last, ...of_rate]))
}

export function decodeNumbers(bytes: Buffer | undefined): LimitNumbers {
  const of_none = [0, 0, 1, 0]
  const read = bytes === undefined ? of_none : (parsePlain(bytes.toString('utf8')) as number[])
  const [held = 0, waiting = 0, first = 1, last = 0, paid_ms = 0, due_ms = 0] = read
  return { held, waiting, first, last, paid_ms, due_ms }
}

/** `n` is 0 while the task holds the slot, else its place in the line. */
export interface TaskSlot {
  readonly value: string
  readonly n: number
}

export function encodeTaskSlot({ value, n }: TaskSlot): Buffer {
  return Buffer.from(JSON.stringify([value, n]))
}

export function decodeTaskSlot(bytes: Buffer): TaskSlot {
  const [value, n] = parsePlain(bytes.toString('utf8')) as readonly [string, number]
  return { value, n }
}
