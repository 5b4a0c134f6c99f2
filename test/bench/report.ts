/**
 * The printed text of a run: ratios, then absolute figures, then targets beside what was measured.
 * Rows we lose are printed like the others.
 */

import type { CellLine, SideLine } from './cell-line.ts'
import type { Scale, SideName } from './cells.ts'
import type { BytesLine, LivesLine, LivesSummary, OnOffLine } from './lives.ts'
import type { Machine } from './machine.ts'
import type { ServerLivesLine } from './server-lives.ts'
import type { Summary } from './statistics.ts'
import type { TargetLine } from './targets.ts'
import type { TemplateLine } from './templates.ts'

export function machineText(machine: Machine): string {
  const { cpu, cores, memory_bytes, node, system, file_system, sync_ms, load, commit } = machine
  return (
    `${cpu} · ${cores} cores · ${gib(memory_bytes)} · node ${node} · ${system} · ${file_system}` +
    ` · 4 KiB write+fdatasync ${sync_ms.toFixed(2)} ms` +
    ` · load before the run ${load.toFixed(1)}${commit === '' ? '' : ` · ${commit}`}`
  )
}

/** What the cells and sides of a run without other options are. */
export function notesText({ cores }: Machine, scale: Scale): string {
  return [
    `${scale.reps} repetitions of ${scale.slot_s} s for each cell and side, alternately, each after` +
      ` a warm-up of ${scale.warmup_s} s. Server, client and background work share the ${cores} cores.`,
    `empty: creates into a new file, modifies and reads among ${number(scale.few_tasks)} waiting` +
      ` tasks. large: all among ${number(scale.many_tasks)}, huge: among` +
      ` ${number(scale.most_tasks)}.`,
    ...notes,
    '',
  ].join('\n')
}

const notes = [
  'Whole lives: create, wait with a timer, callback, kept end; a slot is 10 s (a minute in minute/) and the' +
    ' close of the file; CPU includes the load; memory is the most that maps no file; sqlite has indexes by live ref, due time and node.',
  'Floor of in-process: LMDB by hand, the same puts, one batch for all callers, no checks.',
  'Floor of http: bare node:http that hashes, parses and answers, no store.',
  'Floor of grpc and grpc-stream: bare grpc-js, the same messages and mutual TLS, no store; the' +
    ' client, grpc-js too, takes its share of the cores on both sides.',
  'sqlite: better-sqlite3 by hand, WAL, synchronous=FULL, group commit, a page cache of 64 MiB,' +
    ' an index by ref; sqlite-nodes: also one by node, as ours has; sqlite-tuned: 256 MiB, mmap, a' +
    ' checkpoint every 10,000 pages.',
  'half: requests arrive at half of the highest rate; a slot is as long as 15 warm-ups, its own' +
    ' warm-up too.',
  'lives/servers: 64 callers in one Node process on every side; client is our client library over' +
    ' HTTP, embedded is ours in the process of its callers.',
]

export function templateText({ by, tasks, refs, seconds, footprint }: TemplateLine): string {
  const what = `file of ${number(tasks)} tasks, ${refs} refs`
  const made = `${by}: ${what}, made in ${seconds.toFixed(1)} s`
  const rate = ` (${number(tasks / seconds)}/s)`
  if (footprint === undefined) return made + rate
  const { file_bytes, rss_bytes, anonymous_bytes, heap_bytes } = footprint
  return (
    `${made}${rate}: ${mib(file_bytes)}, ${(file_bytes / tasks).toFixed(0)} bytes a task;` +
    ` rss ${mib(rss_bytes)} (not mapped ${mib(anonymous_bytes)}), heap ${mib(heap_bytes)}`
  )
}

export function onOffText({ cell, on_per_s, off_per_s, ratio, cpu }: OnOffLine): string {
  return (
    `${cell}: on ${number(on_per_s)} a second, off ${number(off_per_s)};` +
    ` ratio ${ratio.median.toFixed(3)} (${spread(ratio, (value) => value.toFixed(2))})` +
    (cpu === undefined ? '' : `; CPU an op ${cpu.median.toFixed(3)}`)
  )
}

export function livesText({ cell, ours, sqlite, over }: LivesLine): string {
  const of = (side: LivesSummary): string =>
    `${number(side.lives_per_s.median)}/s, p99 ${ms(side.p99_ms.median)} ms, worst` +
    ` ${ms(side.worst_ms.max)} ms, CPU ${side.cpu_us_per_op.median.toFixed(1)} us an op,` +
    ` ${mib(side.memory_bytes.median)}`
  return (
    `${cell}: lives ${of(ours)}; sqlite ${of(sqlite)}; over it` +
    ` ${two(over.lives_per_s.median)} (${spread(over.lives_per_s, two)}), p99` +
    ` ${two(over.p99_ms.median)}, worst ${two(over.worst_ms.median)}, CPU` +
    ` ${two(over.cpu_us_per_op.median)}, memory ${two(over.memory_bytes.median)}`
  )
}

export function bytesText({ cell, waiting, lived }: BytesLine): string {
  const of = ({ ours, sqlite }: BytesLine['lived']): string =>
    `${number(ours.disk_bytes)} bytes a task, ${number(ours.file_bytes)} of them in the data file;` +
    ` sqlite ${number(sqlite.disk_bytes)}, over it ${two(ours.disk_bytes / sqlite.disk_bytes)}`
  return `${cell}: all wait: ${of(waiting)}; half ended: ${of(lived)}`
}

/** The rates of all sides, and the ratios. */
export function serverLivesText({ cell, sides, ratios }: ServerLivesLine): string {
  const rates = Object.entries(sides).map(
    ([name, { lives_per_s, p99_ms }]) =>
      `  ${name.padEnd(9)} ${lives_per_s.median.toFixed(0).padStart(7)} lives a second` +
      ` (${lives_per_s.min.toFixed(0)} … ${lives_per_s.max.toFixed(0)}), p99` +
      ` ${p99_ms.median.toFixed(2)} ms`,
  )
  const over = ratios.map(
    ({ ours, over, lives_per_s: { median, min, max } }) =>
      `  ${ours} over ${over}: ${median.toFixed(2)} (${min.toFixed(2)} … ${max.toFixed(2)})`,
  )
  return [cell, ...rates, ...over].join('\n')
}

const cell_heads = ['file', 'refs', 'transport', 'verb', 'ops', 'callers']

export function tablesText(lines: readonly CellLine[]): string {
  const ratios = lines.flatMap((line) =>
    line.ratios.map(({ against, ops_per_s, p50, p99 }) => [
      ...cellColumns(line),
      against,
      ops_per_s.median.toFixed(2),
      spread(ops_per_s, (value) => value.toFixed(2)),
      times(p50),
      times(p99),
    ]),
  )
  const absolutes = lines.flatMap((line) =>
    (Object.entries(line.sides) as [SideName, SideLine][]).map(([name, side]) => [
      ...cellColumns(line),
      name,
      ...sideColumns(side),
    ]),
  )
  const side_heads = [
    ...['side', 'ops/s', 'min … max', 'p50 ms', 'p99 ms', 'settled ops/s', 'cpu µs/op'],
    ...['rss', 'heap', 'B/task'],
  ]
  return [
    'Ratios of ours over the other: ops/s within a repetition, median (min … max); latency of medians',
    '',
    table([...cell_heads, 'over', 'ops/s', 'min … max', 'p50', 'p99'], ratios, 7),
    '',
    'Absolute figures, medians. Latency: of a request; settled: including the time until the process' +
      ' was idle after its last answer; cpu: of the process, in-process with the load',
    '',
    table([...cell_heads, ...side_heads], absolutes, 7),
  ].join('\n')
}

export function targetsText(lines: readonly TargetLine[]): string {
  const rows = lines.map(({ row, ours, wanted, is_upper_bound, unit, measured, is_met }) => {
    const value = (of: number): string => `${of.toFixed(2)}${unit === '' ? '' : ` ${unit}`}`
    return [
      row,
      ours,
      is_met ? 'met' : 'missed',
      `${is_upper_bound ? 'at most' : 'at least'} ${value(wanted)}`,
      value(measured.median),
      spread(measured, (of) => of.toFixed(2)),
    ]
  })
  return [
    'Targets, and the medians that were measured',
    '',
    table(['row', 'ours', '', 'wanted', 'measured', 'min … max'], rows, 3),
  ].join('\n')
}

function cellColumns({ cell }: CellLine): string[] {
  const { file, refs, transport, verb, ops, callers, kind } = cell
  const columns = [file, refs, transport, kind === 'usual' ? verb : `${verb} ${kind}`]
  return [...columns, String(ops), String(callers)]
}

function sideColumns(side: SideLine): string[] {
  const { ops_per_s, p50_ms, p99_ms, file_bytes, beside_bytes, tasks } = side
  // A commit log beside the data file has tasks that the file has not.
  const is_checkpointed = beside_bytes === 0
  const known = (value: number | undefined, text: (value: number) => string): string =>
    value === undefined ? '-' : text(value)
  return [
    number(ops_per_s.median),
    spread(ops_per_s, number),
    ms(p50_ms.median),
    ms(p99_ms.median),
    known(side.settled_ops_per_s, number),
    known(side.cpu_us_per_op, (value) => value.toFixed(1)),
    known(side.rss_bytes, mib),
    known(side.heap_bytes, mib),
    known(is_checkpointed && file_bytes && tasks ? file_bytes / tasks : undefined, number),
  ]
}

/** A table in aligned columns: the first `texts` columns are aligned left, the others right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  texts: number,
): string {
  const widths = head.map((text, n) =>
    Math.max(text.length, ...rows.map((row) => row[n]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string =>
    cells
      .map((text, n) => (n < texts ? text.padEnd(widths[n] ?? 0) : text.padStart(widths[n] ?? 0)))
      .join('  ')
      .trimEnd()
  return [line(head), ...rows.map(line)].join('\n')
}

export const spread = ({ min, max }: Summary, text: (value: number) => string): string =>
  `${text(min)} … ${text(max)}`
export const two = (value: number): string => value.toFixed(2)
export const number = (value: number): string => Math.round(value).toLocaleString('en-US')
export const ms = (value: number): string => value.toFixed(value < 10 ? 2 : 1)
const times = (value: number): string => `${value.toFixed(2)}×`
export const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`
const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(0)} GiB`
