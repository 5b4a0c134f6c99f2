/**
 * The targets of the project, and whether a run met them. A row that was not measured is left out; a
 * missed row is reported like the others.
 */

import type { CellLine } from './cell-line.ts'
import type { Scale, SideName, WriteVerb } from './cells.ts'
import type { ClusterSide } from './cluster/line.ts'
import type { BytesLine, LivesLine, OnOffLine } from './lives.ts'
import type { OurName, ServerLivesLine } from './server-lives.ts'
import { type Summary, summaryOf } from './statistics.ts'

export type Unit = '' | 'ms' | 'MB'

export interface TargetLine {
  readonly kind: 'target'
  readonly row: string
  /** The cell that it was measured by. */
  readonly cell: string
  readonly ours: OurName
  readonly wanted: number
  readonly is_upper_bound: boolean
  readonly unit: Unit
  readonly measured: Summary
  readonly is_met: boolean
}

/** How long a part of the targets took, with all that it makes. */
export interface PartLine {
  readonly kind: 'part'
  readonly part: string
  readonly seconds: number
}

type LivesFigure = 'lives_per_s' | 'p99_ms' | 'worst_ms' | 'memory_bytes'

/** [cell, what it is, which of its figures, target of ours over SQLite's: at least for lives] */
const lives: readonly (readonly [string, string, LivesFigure, number])[] = [
  ['lives/20000/1x1', '1 caller', 'lives_per_s', 1.1],
  ['lives/20000/1x1/in-order', '1 caller, in order', 'lives_per_s', 1.1],
  ['lives/20000/1x64', '64 callers', 'lives_per_s', 2.5],
  ['lives/20000/1x64/in-order', '64 callers, in order', 'lives_per_s', 1.5],
  ['lives/20000/100x4', '4 callers of 100', 'lives_per_s', 2.5],
  ['lives/20000/100x4/in-order', '4 callers of 100, in order', 'lives_per_s', 1.5],
  [
    'lives/20000/1x64/in-order/ascending',
    '64 callers, in order, ascending refs',
    'lives_per_s',
    1.5,
  ],
  ['lives/20000/1x64', '64 callers, memory', 'memory_bytes', 1.5],
  ['lives/20000/1x64', '64 callers, p99', 'p99_ms', 1],
  ['lives/1000000/1x64', '1,000,000 waiting, 64 callers', 'lives_per_s', 3],
  ['lives/1000000/1x64', '1,000,000 waiting, 64 callers, p99', 'p99_ms', 1],
  ['minute/20000/1x64', 'a minute of 64 callers, p99', 'p99_ms', 1],
  ['minute/20000/1x64', 'a minute of 64 callers, the worst request', 'worst_ms', 1],
]

/** Bytes on disk a task, at most over SQLite's. */
const bytes_max = 1.2

/** Lives a second with history, feed, logs and metrics, at least over those without. */
const watched_min = 0.9

/** [row, cell, the other side, target of ours over it in ops a second] */
const ratios: readonly (readonly [string, string, SideName, number])[] = [
  ['read by ref, decoded', 'empty/in-process/read/1x1', 'sqlite', 1.5],
  ['read by ref, decoded, large file', 'large/in-process/read/1x1', 'sqlite', 1.5],
  ['HTTP, one op, 64 connections, create', 'empty/http/create/1x64', 'floor', 0.7],
  ['HTTP, one op, 64 connections, modify', 'empty/http/modify/1x64', 'floor', 0.65],
  ['HTTP, 100 ops, one connection, create', 'empty/http/create/100x1', 'floor', 0.35],
  ['HTTP, 100 ops, 64 connections, create', 'empty/http/create/100x64', 'floor', 0.35],
  ['gRPC unary, create', 'empty/grpc/create/1x64', 'floor', 0.85],
  ['gRPC unary, modify', 'empty/grpc/modify/1x64', 'floor', 0.85],
  ['gRPC stream, one op a message, create', 'empty/grpc-stream/create/1x64', 'floor', 0.7],
  ['gRPC stream, one op a message, modify', 'empty/grpc-stream/modify/1x64', 'floor', 0.7],
  ...['create', 'modify'].flatMap((verb) =>
    ['1x1', '1x64', '100x1'].map(
      (point) =>
        [
          `ten times the large file, ${point}, ${verb}`,
          `huge/in-process/${verb}/${point}`,
          'tenth',
          0.9,
        ] as const,
    ),
  ),
]

const half_verbs = ['create', 'modify'] as const
const halfName = (verb: WriteVerb): string => `empty/http/${verb}/1x64/half`

/** Of ours with its commit log in PostgreSQL, by the other side. */
export const cluster_targets: Readonly<Partial<Record<ClusterSide, number>>> = {
  ...{ dbos: 15, 'pg-boss': 5, 'graphile-worker': 3, file: 0.6 },
}

/** The growth of the heap from some tasks to 10^7 waiting ones; applied to smaller files too. */
const heap_mb_max = 150
const heap_cell = 'in-process/read/1x1'

export function targetLines(
  lines: readonly CellLine[],
  sync_ms: number,
  scale: Scale,
): TargetLine[] {
  const by_name = new Map(lines.map((line) => [line.name, line]))
  const of_ratios = ratios.flatMap(([row, cell, against, wanted]) =>
    (by_name.get(cell)?.ratios ?? [])
      .filter((ratio) => ratio.against === against)
      .map(({ ops_per_s: measured }) =>
        targetLine({ row: `${row}, over ${against}`, cell, wanted, measured }),
      ),
  )
  return [...of_ratios, ...p99Lines(by_name, sync_ms), ...heapLines(by_name, scale)]
}

/** A target is a lower bound unless `is_upper_bound`. */
type Given = Pick<TargetLine, 'row' | 'cell' | 'wanted' | 'measured'> &
  Partial<Pick<TargetLine, 'ours' | 'is_upper_bound' | 'unit'>>

function targetLine(given: Given): TargetLine {
  const { row, cell, ours = 'ours', wanted, is_upper_bound = false, unit = '', measured } = given
  const is_met = is_upper_bound ? measured.median <= wanted : measured.median >= wanted
  return { kind: 'target', row, cell, ours, wanted, is_upper_bound, unit, measured, is_met }
}

function p99Lines(by_name: ReadonlyMap<string, CellLine>, sync_ms: number): TargetLine[] {
  const wanted = 5 * sync_ms + 2
  return half_verbs.flatMap((verb) => {
    const cell = halfName(verb)
    const row = `p99 at half of the highest rate, HTTP, one op, ${verb}`
    const { ours } = by_name.get(cell)?.sides ?? {}
    const bound = { wanted, is_upper_bound: true, unit: 'ms' } as const
    return ours === undefined ? [] : [targetLine({ row, cell, measured: ours.p99_ms, ...bound })]
  })
}

function heapLines(by_name: ReadonlyMap<string, CellLine>, scale: Scale): TargetLine[] {
  const [few, many] = ['empty', 'large'].map(
    (file) => by_name.get(`${file}/${heap_cell}`)?.sides.ours?.heap_bytes,
  )
  if (few === undefined || many === undefined) return []
  const row = `heap with ${scale.many_tasks.toLocaleString('en-US')} waiting tasks, over few`
  const bound = { wanted: heap_mb_max, is_upper_bound: true, unit: 'MB' } as const
  const measured = summaryOf([(many - few) / 1e6])
  return [targetLine({ row, cell: `large/${heap_cell}`, measured, ...bound })]
}

export function livesTargets(lines: readonly (LivesLine | BytesLine | OnOffLine)[]): TargetLine[] {
  const of_lives = lives.flatMap(([cell, what, of, wanted]) =>
    lines.flatMap((line) => {
      if (line.kind !== 'lives' || line.cell !== cell) return []
      const row = `whole lives, ${what}, over sqlite`
      const is_upper_bound = of !== 'lives_per_s'
      return [targetLine({ row, cell, wanted, is_upper_bound, measured: line.over[of] })]
    }),
  )
  return [...of_lives, ...lines.flatMap(otherLivesTargets)]
}

function otherLivesTargets(line: LivesLine | BytesLine | OnOffLine): TargetLine[] {
  if (line.kind === 'bytes') {
    return (['waiting', 'lived'] as const).map((of) => {
      const { ours, sqlite } = line[of]
      const row = `bytes a task, ${of === 'waiting' ? 'all wait' : 'half ended'}, over sqlite`
      const measured = summaryOf([ours.disk_bytes / sqlite.disk_bytes])
      return targetLine({ row, cell: line.cell, wanted: bytes_max, is_upper_bound: true, measured })
    })
  }
  if (line.kind !== 'on-off' || !line.cell.startsWith('watched/')) return []
  const row = `history, feed, logs and metrics, over none: ${line.cell}`
  return [targetLine({ row, cell: line.cell, wanted: watched_min, measured: line.ratio })]
}

export function serverLivesTargets(lines: readonly ServerLivesLine[]): TargetLine[] {
  return lines.flatMap(({ cell, ratios }) =>
    ratios.map(({ ours, over, wanted, lives_per_s }) =>
      targetLine({
        row: `whole lives, 64 callers, over ${over}`,
        cell,
        ours,
        wanted,
        measured: lives_per_s,
      }),
    ),
  )
}

/**
 * The parts of a run of the targets, each some minutes long: `--only` with its name measures it alone.
 */
const parts = ['lives/20000', 'lives/1000000', 'minute', 'bytes', 'watched', 'read', 'http', 'grpc']
const other_parts = ['servers', 'huge']

/** The part that a cell belongs to. */
export function partOf(cell: string): string {
  return [...other_parts, ...parts].find((part) => cell.includes(part)) ?? cell
}

/** The options of a run of the targets that measure a part alone. */
export function optionsOf(part: string): string {
  const more = part === 'huge' ? '--full ' : part === 'servers' ? '--rivals ' : ''
  return `${more}--only ${part}`
}

/** The cells that a run of the targets needs. */
export const target_cells: ReadonlySet<string> = new Set([
  ...lives.map(([cell]) => cell),
  ...['bytes/200000', 'watched/20000/1x1', 'watched/20000/1x64', 'watched/20000/100x4'],
  ...ratios.map(([, cell]) => cell),
  ...half_verbs.map(halfName),
  'lives/servers/1x64',
])
