/**
 * The tasks of the model, and how it reads values. Data is flat: texts and numbers.
 */
import type { OpFaultCode } from '../../src/core/faults.ts'
import type { Status, StatusDetails } from '../../src/core/model.ts'

export type ModelData = Readonly<Record<string, string | number>>

export interface ModelTask {
  /** Its number in the order of creation. */
  readonly n: number
  readonly conv: string
  readonly ref: string | number | undefined
  readonly user: string | undefined
  readonly created_ms: number
  changed_ms: number
  status: Status
  details: StatusDetails | undefined
  node: string
  prev: string
  /** What a live task waits for; `more`: it goes on in the next transaction. */
  wait: 'nothing' | 'callback' | 'more'
  wait_at: number
  due_ms: number | undefined
  timer_at: number
  moves: number
  /** Its data as it came in. */
  readonly first: ModelData
  data: ModelData
  /** Whether an ended task can still be found, or why not. */
  gone: 'no' | 'unsaved' | 'swept'
}

export interface ModelLimits {
  readonly moves_per_transaction_max: number
  readonly moves_without_rest_max: number
  readonly task_bytes_max: number
  readonly ended_kept_ms: number
}

/** An answer: `task` where one is known, `says` where it is a refusal. */
export interface Answer {
  readonly code: 'ok' | OpFaultCode
  readonly says?: string
  readonly task?: ModelTask
  /** Of a modify that was taken. */
  readonly resumed?: boolean
}

export function isLive(task: ModelTask): boolean {
  return task.status !== 'processed' && task.status !== 'canceled'
}

export function overSize(data: ModelData, bytes_max: number): Answer | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(data))
  if (bytes <= bytes_max) return undefined
  const says = `Your task size: ${bytes} bytes, Max available task size: ${bytes_max} bytes`
  return { code: 'task_size_overflow_limit', says }
}

export function sameData(one: ModelData, other: ModelData): boolean {
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.is(one[key], other[key]))
  )
}

export function sameRef(one: string | number | undefined, other: string | number): boolean {
  return one !== undefined && String(one) === String(other)
}

/** A value as a number; undefined where it is missing or none. */
export function numberOf(value: string | number | undefined): number | undefined {
  if (typeof value === 'number') return value
  return value !== undefined && /^[0-9]+$/.test(value) ? Number(value) : undefined
}
