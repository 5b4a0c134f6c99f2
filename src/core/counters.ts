/**
 * The counters of an engine and its servers, always on: a count is one addition in an array. Names
 * come from the tables here; any other is counted as `other`. Durations are measured only on
 * demand.
 */
import type { EventName } from './event-table.ts'
import { adminFaults, opFaults, wholeFaults } from './faults.ts'
import type { OpResult, Status } from './model.ts'

const op_kinds = ['create', 'modify', 'show', 'cancel', 'retry', 'other'] as const
export const server_names = ['http', 'http_sync', 'grpc', 'operator', 'admin', 'library'] as const
export const job_kinds = ['code', 'call', 'db', 'handler'] as const
/**
 * How an attempt of a job ended: `repeated` will be retried, `gave_up` was the last retry, `failed`
 * would fail again, `expired` waited too long for a slot, `aborted` was cut off by the close and is
 * retried.
 */
export const job_results = ['done', 'failed', 'repeated', 'gave_up', 'expired', 'aborted'] as const

export type OpKind = (typeof op_kinds)[number]
export type ServerName = (typeof server_names)[number]
export type JobKind = (typeof job_kinds)[number]
export type JobResult = (typeof job_results)[number]

const op_codes = ['ok', ...Object.keys(opFaults), 'internal_error', 'other']
const request_codes = [
  ...['ok', ...Object.keys(wholeFaults), ...Object.keys(opFaults), ...Object.keys(adminFaults)],
  'other',
]

/** Numbers by row and column; a 0 is left out. */
export type Counts<Row extends string> = Readonly<
  Partial<Record<Row, Readonly<Record<string, number>>>>
>

/** Receives durations in milliseconds. Called within what is measured, so it must be short. */
export interface DurationListener {
  request?(server: ServerName, ms: number): void
  /** `ms` is the longest that a caller has waited; `write_ms` of it were the write and its sync. */
  commit?(ms: number, write_ms: number): void
}

export type EndStatus = Extract<Status, 'failed' | 'processed' | 'canceled'>

/** Tasks created, ended and timed out, in one transaction or in all. */
export type CountedTasks = Record<EndStatus | 'created' | 'timers_fired', number>

export interface Counters {
  /** Counts the results of ops; for ops of callers, after the commit. */
  countOps(results: readonly OpResult[]): void
  countOp(kind: OpKind, code: string): void
  /** Counts a repeated request that got its first answer; its ops are not counted again. */
  countReplay(): void
  /** The beginning of a request; 0 while nothing is measured. */
  beginRequest(): number
  /** Counts a response, `ok` or the code of its fault, and its duration unless `began_ms` is 0. */
  countRequest(server: ServerName, code: string, began_ms?: number): void
  countJob(kind: JobKind, result: JobResult): void
  /** Counts a due time of a schedule: `ok`, or the code for which it created no task. */
  countDueTime(code: string): void
  countEvent(event: EventName): void
  /** Until when the certificate of a server is valid. */
  setCertificate(server: ServerName, until_ms: number): void
  /** Of all transactions that are durable. */
  readonly tasks: CountedTasks
  countTasks(counted: CountedTasks): void
  measure(listener: DurationListener): () => void
  read(): {
    readonly ops: Counts<OpKind>
    readonly requests: Counts<ServerName>
    readonly replays: number
    readonly jobs: Counts<JobKind>
    readonly due_times: Readonly<Record<string, number>>
    readonly events: Readonly<Partial<Record<EventName, number>>>
    readonly certificates_until_ms: Readonly<Partial<Record<ServerName, number>>>
  }
}

type CommitListener = Required<DurationListener>['commit']

/** `watchCommits` sets the listener of commits; undefined while nothing is measured. */
export function newCounters(
  watchCommits: (listener: CommitListener | undefined) => void = () => {},
): Counters {
  const ops = newTable(op_kinds, op_codes)
  const requests = newTable(server_names, request_codes)
  const jobs = newTable(job_kinds, job_results)
  const due_times = newTable(['all'], op_codes)
  const events = new Map<EventName, number>()
  const certificates = new Map<ServerName, number>()
  const tasks = { created: 0, failed: 0, processed: 0, canceled: 0, timers_fired: 0 }
  let replays = 0
  const measuring = new Set<DurationListener>()

  function onCommit(ms: number, write_ms: number): void {
    for (const listener of measuring) listener.commit?.(ms, write_ms)
  }

  return {
    countOps(results) {
      for (const { type, proc } of results) ops.add(type ?? 'other', proc)
    },
    countOp: ops.add,
    countReplay: () => void replays++,
    beginRequest: () => (measuring.size === 0 ? 0 : performance.now()),
    countRequest(server, code, began_ms = 0) {
      requests.add(server, code)
      if (began_ms === 0) return
      const ms = performance.now() - began_ms
      for (const listener of measuring) listener.request?.(server, ms)
    },
    countJob: jobs.add,
    countDueTime: (code) => due_times.add('all', code),
    countEvent: (event) => void events.set(event, (events.get(event) ?? 0) + 1),
    setCertificate: (server, until_ms) => void certificates.set(server, until_ms),
    tasks,
    countTasks(counted) {
      tasks.created += counted.created
      tasks.failed += counted.failed
      tasks.processed += counted.processed
      tasks.canceled += counted.canceled
      tasks.timers_fired += counted.timers_fired
    },
    measure(listener) {
      measuring.add(listener)
      watchCommits(onCommit)
      return () => {
        measuring.delete(listener)
        if (measuring.size === 0) watchCommits(undefined)
      }
    },
    read: () => ({
      ops: ops.read(),
      requests: requests.read(),
      replays,
      jobs: jobs.read(),
      due_times: due_times.read().all ?? {},
      events: Object.fromEntries(events),
      certificates_until_ms: Object.fromEntries(certificates),
    }),
  }
}

interface Table<Row extends string> {
  /** An unknown row or column is counted in the last one. */
  add(row: Row, column: string): void
  read(): Counts<Row>
}

function newTable<Row extends string>(
  rows: readonly Row[],
  columns: readonly string[],
): Table<Row> {
  const width = columns.length
  const row_at = new Map<string, number>(rows.map((row, at) => [row, at * width]))
  const column_at = new Map<string, number>(columns.map((column, at) => [column, at]))
  const counts = new Float64Array(rows.length * width)
  const [last_row, last_column] = [(rows.length - 1) * width, width - 1]
  return {
    add(row, column) {
      const at = (row_at.get(row) ?? last_row) + (column_at.get(column) ?? last_column)
      counts[at] = (counts[at] as number) + 1
    },
    read() {
      const read: Partial<Record<Row, Record<string, number>>> = {}
      for (const [at, row] of rows.entries()) {
        for (const [column_at, column] of columns.entries()) {
          const count = counts[at * width + column_at] as number
          if (count === 0) continue
          read[row] ??= {}
          read[row][column] = count
        }
      }
      return read
    },
  }
}
