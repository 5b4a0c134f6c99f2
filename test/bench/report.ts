/**
 * What a run prints: ratios first, absolutes after. No judgement; rows we lose stand like the
 * others.
 */
import type { Cell, Scale } from './cells.ts'
import type { Stats } from './engine-child.ts'
import type { Machine } from './machine.ts'
import { type Middle, middleOf, type Slot } from './samples.ts'
import type { OurSlot } from './sides.ts'

/** A cell with its slots; ours[i] and floor[i] were measured one after the other. */
export interface Measured {
  readonly cell: Cell
  readonly ours: readonly OurSlot[]
  readonly floor: readonly Slot[]
}

export interface CellLine {
  readonly kind: 'cell'
  readonly cell: Cell
  /** Our ops/s over the floor's, repetition by repetition. */
  readonly ratio: Middle
  readonly ours: SideLine & {
    readonly commits_per_s: number
    readonly ops_per_commit: number
    readonly rss_bytes: number
    readonly anonymous_bytes: number
    readonly heap_bytes: number
    readonly file_bytes: number
    readonly tasks: number
  }
  readonly floor: SideLine
}

interface SideLine {
  readonly ops_per_s: Middle
  readonly p50_ms: Middle
  readonly p99_ms: Middle
  /** Requests of all repetitions. */
  readonly requests: number
}

export function cellLine({ cell, ours, floor }: Measured): CellLine {
  const median = (of: (slot: OurSlot) => number): number => middleOf(ours.map(of)).median
  return {
    kind: 'cell',
    cell,
    ratio: middleOf(ours.map((slot, n) => slot.ops_per_s / (floor[n] as Slot).ops_per_s)),
    ours: {
      ...sideLine(ours),
      commits_per_s: median((slot) => slot.commits / slot.seconds),
      ops_per_commit: median((slot) => slot.ops / slot.commits),
      rss_bytes: median((slot) => slot.stats.rss_bytes),
      anonymous_bytes: median((slot) => slot.stats.anonymous_bytes),
      heap_bytes: median((slot) => slot.stats.heap_bytes),
      file_bytes: median((slot) => slot.stats.file_bytes),
      tasks: median((slot) => slot.stats.tasks),
    },
    floor: sideLine(floor),
  }
}

function sideLine(slots: readonly Slot[]): SideLine {
  return {
    ops_per_s: middleOf(slots.map((slot) => slot.ops_per_s)),
    p50_ms: middleOf(slots.map((slot) => slot.p50_ms)),
    p99_ms: middleOf(slots.map((slot) => slot.p99_ms)),
    requests: slots.reduce((sum, slot) => sum + slot.requests, 0),
  }
}

export function machineText(machine: Machine, scale: Scale): string {
  const { cpu, cores, memory_bytes, node, system, file_system, sync_ms, load, commit } = machine
  return [
    `${cpu} · ${cores} cores · ${gib(memory_bytes)} · node ${node} · ${system} · ${file_system}` +
      ` · 4 KiB write+fdatasync ${sync_ms.toFixed(2)} ms` +
      ` · load before the run ${load.toFixed(1)}${commit === '' ? '' : ` · ${commit}`}`,
    `${scale.reps} repetitions of ${scale.slot_s} s a cell and side, in turn. Server, client and` +
      ` LMDB’s writer share the ${cores} cores.`,
    `Refs are random. empty: creates into a new file, modifies among ${number(scale.few_tasks)}` +
      ` waiting tasks. large: both among ${number(scale.many_tasks)}.`,
    'Floor of in-process: LMDB by hand, one batch for all callers, the same puts, nothing checked.',
    'Floor of http: bare node:http that hashes, parses and answers, no store.',
    'Floor of grpc and grpc-stream: bare grpc-js, the same messages and mutual TLS, no store;' +
      ' their client is grpc-js too, and its share of the cores weighs on both sides.',
  ].join('\n')
}

export function largeText(seconds: number, stats: Stats): string {
  const each = (bytes: number): string => (bytes / stats.tasks).toFixed(0)
  return (
    `file of ${number(stats.tasks)} tasks made in ${seconds.toFixed(1)} s` +
    ` (${number(stats.tasks / seconds)}/s): ${mib(stats.file_bytes)},` +
    ` ${each(stats.file_bytes)} bytes a task; rss ${mib(stats.rss_bytes)}` +
    ` (not mapped ${mib(stats.anonymous_bytes)}), heap ${mib(stats.heap_bytes)}`
  )
}

export function tablesText(lines: readonly CellLine[]): string {
  const names = (line: CellLine): string[] => {
    const { file, door, verb, ops, callers } = line.cell
    return [file, door, verb, String(ops), String(callers)]
  }
  const ratios = lines.map((line) => [
    ...names(line),
    line.ratio.median.toFixed(2),
    `${line.ratio.min.toFixed(2)} … ${line.ratio.max.toFixed(2)}`,
    times(line.ours.p50_ms.median / line.floor.p50_ms.median),
    times(line.ours.p99_ms.median / line.floor.p99_ms.median),
  ])
  const absolutes = lines.map(({ ours, floor, ...line }) => [
    ...names({ ours, floor, ...line }),
    number(ours.ops_per_s.median),
    `${number(ours.ops_per_s.min)} … ${number(ours.ops_per_s.max)}`,
    ms(ours.p50_ms.median),
    ms(ours.p99_ms.median),
    number(floor.ops_per_s.median),
    ms(floor.p50_ms.median),
    ms(floor.p99_ms.median),
    number(ours.commits_per_s),
    ours.ops_per_commit.toFixed(1),
    mib(ours.rss_bytes),
    mib(ours.heap_bytes),
    number(ours.file_bytes / ours.tasks),
  ])
  const cell_heads = ['file', 'door', 'verb', 'ops', 'callers']
  return [
    'Ratios: ours over the floor. ops/s: of neighbours in time, median (min … max); latency: of medians',
    '',
    table([...cell_heads, 'ops/s', 'min … max', 'p50', 'p99'], ratios),
    '',
    'Absolutes: medians; latency is of a request',
    '',
    table(
      [
        ...[...cell_heads, 'ops/s', 'min … max', 'p50 ms', 'p99 ms'],
        ...['floor ops/s', 'p50 ms', 'p99 ms', 'commits/s', 'ops/commit', 'rss', 'heap', 'B/task'],
      ],
      absolutes,
    ),
  ].join('\n')
}

/** The first three columns to the left, numbers to the right. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((text, n) =>
    Math.max(text.length, ...rows.map((row) => row[n]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string =>
    cells
      .map((text, n) => (n < 3 ? text.padEnd(widths[n] ?? 0) : text.padStart(widths[n] ?? 0)))
      .join('  ')
  return [line(head), ...rows.map(line)].join('\n')
}

const number = (value: number): string => Math.round(value).toLocaleString('en-US')
const ms = (value: number): string => value.toFixed(value < 10 ? 2 : 1)
const times = (value: number): string => `${value.toFixed(2)}×`
const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`
const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(0)} GiB`
