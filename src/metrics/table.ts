/**
 * The table of metrics: name, help, labels and source. Names follow Prometheus: base units,
 * `_total` for counters. Label values come from our tables, or are ids of the
 * `processes_measured_max` largest processes; the rest is `other`. So no caller can create a
 * series.
 */
import { type Counts, job_kinds, job_results, server_names } from '../core/counters.ts'
import { eventTable } from '../core/event-table.ts'
import type { Status } from '../core/model.ts'
import { version } from '../core/version.ts'
import type { EngineStatistics, Readiness } from '../engine/api/statistics-api.ts'
import type { FileNumbers } from '../store/store.ts'

export interface ProcessCount {
  readonly conv_id: string
  readonly by_status: Partial<Readonly<Record<Status, number>>>
}

export interface Measured {
  readonly statistics: EngineStatistics
  readonly processes: readonly ProcessCount[]
  readonly readiness: Readiness
}

export type Value = readonly [value: number, ...labels: string[]]

export interface MetricRow<Source = Measured> {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly labels: readonly string[]
  values(measured: Source): Iterable<Value>
}

type Read = (statistics: EngineStatistics) => number

const one =
  (type: MetricRow['type']) =>
  (name: string, help: string, read: Read): MetricRow => ({
    ...{ name, type, help, labels: [] },
    values: ({ statistics }) => [[read(statistics)]],
  })
const counter = one('counter')
const gauge = one('gauge')

/** A store in memory lacks these values. */
function ofFile(
  type: MetricRow['type'],
  name: string,
  help: string,
  read: (file: FileNumbers) => Value[],
): MetricRow {
  const values: MetricRow['values'] = ({ statistics: { store } }) =>
    store.file === undefined ? [] : read(store.file)
  return { name, type, help, labels: [], values }
}

/** Values of `always` exist from the start, so that rates begin at 0. */
function* valuesOf(counts: Counts<string>, always: Iterable<readonly [string, string]>) {
  const seen = new Set<string>()
  for (const [row, columns] of Object.entries(counts)) {
    for (const [column, count] of Object.entries(columns ?? {})) {
      seen.add(`${row} ${column}`)
      yield [count, row, column] as const
    }
  }
  for (const [row, column] of always) {
    if (!seen.has(`${row} ${column}`)) yield [0, row, column] as const
  }
}

const pairs = (rows: readonly string[], columns: readonly string[]): [string, string][] =>
  rows.flatMap((row) => columns.map((column): [string, string] => [row, column]))

const measured_ops = pairs(['create', 'modify', 'show'], ['ok'])
const measured_requests = pairs(server_names, ['ok'])
const measured_jobs = pairs(job_kinds, job_results)

export const metricTable: readonly MetricRow[] = [
  {
    name: 'conveyor_build_info',
    type: 'gauge',
    help: 'Always 1: the versions of conveyor and of Node.',
    labels: ['version', 'node'],
    values: () => [[1, version, process.version]],
  },
  gauge(
    'conveyor_opened_timestamp_seconds',
    'When the file was opened, in Unix seconds.',
    ({ since_ms }) => since_ms / 1000,
  ),
  {
    name: 'conveyor_ready',
    type: 'gauge',
    help: 'Whether the engine can do its work, 1 or 0, as /readyz answers it.',
    labels: [],
    values: ({ readiness }) => [[Number(readiness.ok)]],
  },
  {
    name: 'conveyor_ready_check',
    type: 'gauge',
    help: 'Its checks, 1 or 0: open, commit, disk, key, queue, background and commit_log.',
    labels: ['check'],
    values: ({ readiness: { checks } }) =>
      Object.entries(checks).map(([check, { ok }]): Value => [Number(ok), check]),
  },
  {
    name: 'conveyor_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    help: 'Until when the certificate of a server is valid, in Unix seconds.',
    labels: ['server'],
    values: ({ statistics: { certificates_until_ms } }) =>
      Object.entries(certificates_until_ms).map(([server, ms]): Value => [ms / 1000, server]),
  },
  {
    name: 'conveyor_ops_total',
    type: 'counter',
    help: 'Ops of all callers, by ok or the code of the fault.',
    labels: ['type', 'code'],
    values: ({ statistics }) => valuesOf(statistics.ops, measured_ops),
  },
  {
    name: 'conveyor_requests_total',
    type: 'counter',
    help: 'Answered requests, by ok or the code that answers the whole request.',
    labels: ['server', 'code'],
    values: ({ statistics }) => valuesOf(statistics.requests, measured_requests),
  },
  counter(
    'conveyor_replays_total',
    'Requests answered as they were the first time.',
    ({ replays }) => replays,
  ),
  gauge(
    'conveyor_replay_bytes',
    'Bytes kept in the file to answer repeats of requests.',
    (of) => of.replay_bytes,
  ),
  {
    name: 'conveyor_jobs_total',
    type: 'counter',
    help: 'Attempts of code, calls, queries and handlers, by how they ended.',
    labels: ['kind', 'result'],
    values: ({ statistics }) => valuesOf(statistics.jobs, measured_jobs),
  },
  counter('conveyor_tasks_created_total', 'Tasks made.', ({ tasks }) => tasks.created),
  {
    name: 'conveyor_tasks_ended_total',
    type: 'counter',
    help: 'Tasks that have ended.',
    labels: ['status'],
    values: ({ statistics: { tasks } }) => [
      [tasks.processed, 'processed'],
      [tasks.canceled, 'canceled'],
    ],
  },
  counter('conveyor_tasks_failed_total', 'Times that a task has failed.', (of) => of.tasks.failed),
  {
    name: 'conveyor_tasks',
    type: 'gauge',
    help: 'Tasks in the file by process and status; those of many small processes are other.',
    labels: ['conv_id', 'status'],
    *values({ processes }) {
      for (const { conv_id, by_status } of processes) {
        for (const [status, count] of Object.entries(by_status)) yield [count, conv_id, status]
      }
    },
  },
  counter('conveyor_timers_fired_total', 'Timers fired.', (of) => of.timers_fired),
  {
    name: 'conveyor_schedule_due_times_total',
    type: 'counter',
    help: 'Due times of schedules, by ok or the code for which one has no task.',
    labels: ['code'],
    values: ({ statistics: { due_times } }) =>
      Object.entries({ ok: 0, ...due_times }).map(([code, count]): Value => [count, code]),
  },
  gauge(
    'conveyor_due_lag_seconds',
    'How long the first timer or due time that has not fired has been due.',
    (of) => of.due_lag_ms / 1000,
  ),
  gauge('conveyor_queue_ops', 'Ops accepted and not yet on disk.', (of) => of.queue.ops),
  gauge('conveyor_queue_bytes', 'Bytes of these ops.', (of) => of.queue.bytes),
  gauge('conveyor_jobs_in_flight', 'Jobs under way.', (of) => of.jobs_in_flight),
  gauge(
    'conveyor_jobs_waiting',
    'Jobs that wait for a slot or a process.',
    (of) => of.jobs_waiting,
  ),
  gauge('conveyor_handlers', 'Handlers registered.', (of) => of.handlers),
  gauge('conveyor_results_waiting', 'Calls that wait for a result.', (of) => of.results_waiting),
  gauge('conveyor_feed_readers', 'Readers of the feed of changes.', (of) => of.feed_readers),
  counter('conveyor_commits_total', 'Commits.', ({ store }) => store.commits),
  ofFile('counter', 'conveyor_written_bytes_total', 'Bytes that commits have written.', (file) => [
    [file.written_bytes],
  ]),
  ofFile('counter', 'conveyor_checkpoints_total', 'Checkpoints.', (file) => [[file.checkpoints]]),
  ofFile('counter', 'conveyor_checkpoint_seconds_total', 'Their time.', (file) => [
    [file.checkpoint_ms / 1000],
  ]),
  ofFile(
    'gauge',
    'conveyor_checkpoint_debt_bytes',
    'Bytes of the commit log that the data file does not have yet.',
    (file) => [[file.debt_bytes]],
  ),
  {
    ...ofFile('gauge', 'conveyor_file_bytes', 'The data file, used or reusable.', (file) => [
      [file.used_bytes, 'used'],
      [file.reusable_bytes, 'reusable'],
    ]),
    labels: ['state'],
  },
  ofFile('gauge', 'conveyor_disk_free_bytes', 'Free bytes of the disk.', (file) => [
    [file.free_bytes],
  ]),
  {
    name: 'conveyor_events_total',
    type: 'counter',
    help: 'Events of the log by name, also those whose lines were left out.',
    labels: ['event'],
    values: ({ statistics: { events } }) =>
      Object.keys(eventTable).map(
        (event): Value => [events[event as keyof typeof eventTable] ?? 0, event],
      ),
  },
]

/** From 50 microseconds to 10 seconds. */
export const duration_bounds_s: readonly number[] = [
  ...[0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10],
]

/** The histograms of durations, collected while metrics are on. */
export const histogramTable = {
  request: {
    name: 'conveyor_request_duration_seconds',
    help: 'From the head of a request, or a call in this process, to its answer.',
    labels: ['server'],
  },
  commit: {
    name: 'conveyor_commit_duration_seconds',
    help: 'How long the caller of a commit who came first has waited for it.',
    labels: [],
  },
  sync: {
    name: 'conveyor_sync_duration_seconds',
    help: 'How long the write of a commit took, with its sync.',
    labels: [],
  },
} as const
