/** An overview as lines of text: health, processes, failed tasks. Titles are shown as text only. */
import { cut } from '../console/diagram/text.ts'
import {
  doneAMinute,
  type FailedGroup,
  type Health,
  type Overview,
  type ProcessRow,
} from '../console/overview/messages.ts'
import { bytesText, clean, spanText, table } from './text.ts'

/** As many lines as a terminal has, or all; the busiest processes first. */
export function overviewLines(overview: Overview, lines_max = Number.POSITIVE_INFINITY): string[] {
  const { processes, failed, health, at_ms } = overview
  const head = [...healthLines(health), '']
  const { groups = [], grouped = 0, total = 0 } = failed ?? {}
  // Failed tasks get what processes leave, and at least a third.
  const left = Math.max(2, lines_max - head.length - 5)
  const failed_lines = Math.min(
    groups.length,
    Math.max(Math.ceil(left / 3), left - processes.length),
  )
  const rows = [...processes].sort(busiestFirst).slice(0, Math.max(1, left - failed_lines))
  const more = processes.length - rows.length
  return [
    ...head,
    ...linesOf(process_heads, rows.map(processCells)),
    ...(more > 0 ? [`and ${more} more`] : []),
    ...(groups.length === 0 ? [] : ['']),
    ...linesOf(
      failed_heads,
      groups.slice(0, failed_lines).map((group) => failedCells(group, at_ms)),
    ),
    ...(total > grouped ? [`These are the newest ${grouped} of ${total} failed tasks.`] : []),
  ]
}

function healthLines(health: Health): string[] {
  const { ok, checks, commit_ms, queue, jobs, disk_free_bytes, key_problem } = health
  const up = spanText(health.uptime_s * 1_000)
  const bad = Object.entries(checks).filter(([, { ok }]) => !ok)
  const ends = Object.entries(health.certificates_until_ms)
  return [
    `conveyor ${health.version}  up ${up}  ${ok ? 'ok' : 'NOT OK'}`,
    [
      `${numberText(health.ops_per_s)} ops/s`,
      ...(commit_ms === undefined
        ? []
        : [`commits ${commit_ms.p50} ms, 1 % over ${commit_ms.p99} ms`]),
      `queue ${queue.ops} ops`,
      `timers ${spanText(health.due_lag_ms)} late`,
      `jobs ${jobs.in_flight}, ${jobs.waiting} wait`,
    ].join('  '),
    [
      `file ${bytesText(health.file_bytes)}`,
      ...(disk_free_bytes === undefined ? [] : [`disk ${bytesText(disk_free_bytes)} free`]),
      ...ends.map(([server, ms]) => `certificate ${server} until ${dayText(ms)}`),
    ].join('  '),
    ...bad.map(([check, { reason = '' }]) => clean(`NOT OK ${check}: ${reason}`)),
    ...(key_problem === undefined || bad.length > 0 ? [] : [clean(`key: ${key_problem}`)]),
  ]
}

const process_heads = [
  ...['PROCESS', 'TITLE', 'STATUS', 'WAITING', 'RUNNING', 'FAILED', 'DONE/MIN', 'OF 30 MINUTES'],
]
const failed_heads = ['FAILED', 'NEWEST', 'PROCESS', 'NODE', 'TAG']

function processCells(row: ProcessRow): string[] {
  const { conv_id, title, status, by_status, done } = row
  const { delayed = 0, processing = 0, failed = 0 } = by_status
  const numbers = [delayed, processing, failed, doneAMinute(row)].map(String)
  return [cut(conv_id, 24), cut(title, 32), status, ...numbers, sparkline(done)]
}

function failedCells(group: FailedGroup, at_ms: number): string[] {
  const { tasks, newest_ms, conv_id, title, node_id, node_title, tag } = group
  return [
    ...[String(tasks), `${spanText(at_ms - newest_ms)} ago`, cut(title || conv_id, 32)],
    ...[cut(node_title || node_id, 32), tag],
  ]
}

function linesOf(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return table(heads, rows).split('\n').slice(0, -1)
}

function busiestFirst(one: ProcessRow, other: ProcessRow): number {
  return doneOf(other) - doneOf(one) || liveOf(other) - liveOf(one)
}

const doneOf = ({ done }: ProcessRow): number => done.reduce((sum, count) => sum + count, 0)

function liveOf({ by_status: { delayed = 0, processing = 0, failed = 0 } }: ProcessRow): number {
  return delayed + processing + failed
}

const bars = '▁▂▃▄▅▆▇█'

function sparkline(counts: readonly number[]): string {
  const max = Math.max(...counts)
  const barOf = (count: number): string =>
    count === 0 ? ' ' : (bars[Math.ceil((count / max) * bars.length) - 1] as string)
  return counts.map(barOf).join('')
}

const numberText = (number: number): string =>
  number < 10 ? number.toFixed(1) : String(Math.round(number))

const dayText = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
