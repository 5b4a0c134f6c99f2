/**
 * Problems with tasks, as the file shows them: one view, a few milliseconds of bounded work, no
 * task data. A number that reaches a bound is reported as that bound.
 */
import {
  dueOf,
  failedOf,
  keysOfType,
  metaKey,
  nodeCountOfKey,
  outboxOfKey,
  processKey,
  processOfKey,
  scheduleOfKey,
  secretsOf,
  taskOfKey,
  timeOfKey,
  userOfKey,
} from '../../codec/keys.ts'
import {
  decodeCounts,
  decodeRecord,
  liveOf,
  type ProcessRecord,
  type ScheduleRecord,
} from '../../codec/records.ts'
import { defined } from '../../core/defined.ts'
import type { WholeFaultCode } from '../../core/faults.ts'
import type { View } from '../../store/store.ts'
import type { Secrets } from '../access/secrets.ts'
import { readableTask } from '../tasks/task-store.ts'
import { type MissingHandler, missingHandlers } from '../tasks/waits.ts'
import type { Parts } from '../transactions/parts.ts'
import { newReadContext } from '../transactions/transaction.ts'

export interface Diagnosis {
  /** 0 without a task. */
  readonly newest_ms: number
  /** Those with failed tasks or late timers. */
  readonly processes: readonly {
    readonly conv_id: string
    readonly title: string
    readonly failed: number
    readonly newest_failed?: {
      readonly obj_id: string
      readonly at_ms: number
      readonly tag: string
    }
    /** How overdue its earliest timer is. */
    readonly late_ms?: number
  }[]
  readonly paused: readonly { readonly conv_id: string; readonly live: number }[]
  /** Processes with nodes that answer calls from a stub. */
  readonly stubs: readonly { readonly conv_id: string; readonly nodes: number }[]
  /** Databases that processes name; absent for none. */
  readonly instances?: readonly { readonly conv_id: string; readonly names: readonly string[] }[]
  readonly jobs: {
    readonly waiting: number
    readonly oldest_ms?: number
    readonly is_more: boolean
  }
  readonly schedules: readonly {
    readonly id: string
    readonly state: 'paused' | 'late' | 'missed' | 'refused'
    readonly code?: string
    readonly since_ms: number
  }[]
  readonly has_secrets: boolean
  readonly without_secret: readonly string[]
  readonly has_webhook: boolean
}

const bounds = {
  processes: 1_000,
  nodes: 10_000,
  jobs: 1_000,
  schedules: 1_000,
  users: 1_000,
} as const
const late_ms_min = 5_000

export interface EngineDiagnosis extends Diagnosis {
  readonly health: 'ok' | WholeFaultCode
  /** Sentences on the key of the secrets; they name its file. */
  readonly key_problem?: string
  readonly key_warning?: string
  readonly missing_handlers: readonly MissingHandler[]
  /** The names of its databases, where it has some. */
  readonly databases?: readonly string[]
}

export function newDiagnosis(
  { store, clock, engine, admission }: Parts,
  has_background: boolean,
  keyState: Secrets['keyState'],
): () => Promise<EngineDiagnosis> {
  return async () => {
    const found = await store.view((view) => {
      const context = newReadContext(view, engine, clock.now_ms())
      const missing_handlers = has_background ? missingHandlers(context) : []
      return { ...diagnose(view, context.now_ms), missing_handlers }
    })
    const { problem, warning } = keyState()
    const databases = engine.db_call?.instances
    const key = defined({ key_problem: problem, key_warning: warning, databases })
    return { ...found, health: admission.health(), ...key }
  }
}

export function diagnose(view: View, now_ms: number): Diagnosis {
  const counted = countsOf(view)
  const records = view.scan({ ...keysOfType('process'), limit: bounds.processes })
  const paused: Diagnosis['paused'][number][] = []
  const stubs: Diagnosis['stubs'][number][] = []
  const instances: NonNullable<Diagnosis['instances']>[number][] = []
  let has_webhook = false
  const processes: Diagnosis['processes'][number][] = []
  for (const { key, value } of records) {
    const conv_id = processOfKey(key)
    const record = decodeRecord<ProcessRecord>(value)
    const { title, status, stubs: nodes, webhook, instances: names } = record
    if (webhook !== undefined) has_webhook = true
    if (nodes !== undefined) stubs.push({ conv_id, nodes })
    if (names !== undefined) instances.push({ conv_id, names })
    const { failed = 0, live = 0 } = counted.get(conv_id) ?? {}
    if (status === 'paused') paused.push({ conv_id, live })
    const late_ms = status === 'paused' ? 0 : lateness(view, conv_id, now_ms)
    if (failed === 0 && late_ms < late_ms_min) continue
    const newest = failed === 0 ? undefined : newestFailed(view, conv_id)
    processes.push({
      ...{ conv_id, title, failed },
      ...defined({ newest_failed: newest }),
      ...(late_ms < late_ms_min ? {} : { late_ms }),
    })
  }
  const [newest] = view.scan({ ...keysOfType('task'), limit: 1, reverse: true })
  return {
    newest_ms: newest === undefined ? 0 : idTime_ms(taskOfKey(newest.key)),
    processes,
    paused,
    stubs,
    ...(instances.length === 0 ? {} : { instances }),
    jobs: jobsOf(view, now_ms),
    schedules: schedulesOf(view, now_ms),
    has_webhook,
    has_secrets: view.get(metaKey('key_check')) !== undefined,
    without_secret: view
      .scan({ ...keysOfType('user'), limit: bounds.users })
      .map(({ key }) => userOfKey(key))
      .filter((id) => view.scan({ ...secretsOf(id), limit: 1 }).length === 0),
  }
}

/** An id begins with 4 bytes of its creation second. */
function idTime_ms(obj_id: string): number {
  return Number.parseInt(obj_id.slice(0, 8), 16) * 1_000
}

function countsOf(view: View): Map<string, { failed: number; live: number }> {
  const counted = new Map<string, { failed: number; live: number }>()
  for (const { key, value } of view.scan({ ...keysOfType('node_count'), limit: bounds.nodes })) {
    const { conv } = nodeCountOfKey(key)
    const counts = decodeCounts(value)
    const sum = counted.get(conv) ?? { failed: 0, live: 0 }
    sum.failed += counts.failed
    sum.live += liveOf(counts)
    counted.set(conv, sum)
  }
  return counted
}

function lateness(view: View, conv_id: string, now_ms: number): number {
  const [first] = view.scan({ ...dueOf(conv_id), limit: 1 })
  return first === undefined ? 0 : now_ms - timeOfKey(first.key).ms
}

function newestFailed(
  view: View,
  conv_id: string,
): NonNullable<Diagnosis['processes'][number]['newest_failed']> | undefined {
  const [last] = view.scan({ ...failedOf(conv_id), limit: 1, reverse: true })
  if (last === undefined) return undefined
  const { obj_id, ms } = timeOfKey(last.key)
  const tag = readableTask(view, obj_id)?.task.details?.tag ?? '-'
  return { obj_id, at_ms: ms, tag }
}

/** Jobs that could start now, except for paused processes. */
function jobsOf(view: View, now_ms: number): Diagnosis['jobs'] {
  const keys = view.scan({ ...keysOfType('outbox'), limit: bounds.jobs })
  const due = keys.map(({ key }) => outboxOfKey(key)).filter(({ ms }) => ms <= now_ms)
  const [oldest] = due
  return {
    waiting: due.length,
    ...defined({ oldest_ms: oldest?.ms }),
    is_more: due.length === bounds.jobs,
  }
}

function schedulesOf(view: View, now_ms: number): Diagnosis['schedules'] {
  const found = view.scan({ ...keysOfType('schedule'), limit: bounds.schedules })
  return found.flatMap(({ key, value }): Diagnosis['schedules'][number][] => {
    const { is_paused, next_ms, last, left_out, conv_id } = decodeRecord<ScheduleRecord>(value)
    const id = scheduleOfKey(key)
    if (next_ms === null) return []
    if (is_paused) return [{ id, state: 'paused', since_ms: next_ms }]
    if (view.get(processKey(conv_id)) === undefined) {
      return [{ id, state: 'refused', code: 'conv_not_found', since_ms: next_ms }]
    }
    if (now_ms - next_ms > late_ms_min) return [{ id, state: 'late', since_ms: next_ms }]
    if (last !== undefined && last.proc !== 'ok') {
      return [{ id, state: 'refused', code: last.proc, since_ms: last.due_ms }]
    }
    if (left_out === undefined) return []
    return [{ id, state: 'missed', since_ms: left_out.from_ms }]
  })
}
