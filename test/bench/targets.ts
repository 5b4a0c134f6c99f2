/**
 * The targets of the project, and whether a run met them. A row that was not measured is left out; a
 * missed row is reported like the others.
 */

import { type CellLine, isOurs, type SideLine } from './cell-line.ts'
import type { Scale, SideName } from './cells.ts'
import type { ClusterSide } from './cluster/line.ts'
import type { Summary } from './statistics.ts'

export type Unit = '' | 'ms' | 'MB'

export interface TargetLine {
  readonly kind: 'target'
  readonly row: string
  readonly ours: SideName
  readonly wanted: number
  readonly is_upper_bound: boolean
  readonly unit: Unit
  readonly measured: Summary
  readonly is_met: boolean
}

/** [row, cell, the other side, target of ours over it in ops a second] */
const ratios: readonly (readonly [string, string, SideName, number])[] = [
  ...(['sqlite', 'sqlite-nodes'] as const).flatMap(
    (against) =>
      [
        ['one caller, create', 'empty/in-process/create/1x1', against, 1],
        ['one caller, modify', 'empty/in-process/modify/1x1', against, 1],
        ['64 callers, create', 'empty/in-process/create/1x64', against, 1.3],
        ['64 callers, modify', 'empty/in-process/modify/1x64', against, 1],
        ['batches of 100, create', 'empty/in-process/create/100x1', against, 1.5],
        ['batches of 100, modify', 'empty/in-process/modify/100x1', against, 1],
      ] as const,
  ),
  ...(['sqlite', 'sqlite-tuned'] as const).flatMap((against) =>
    ['create', 'modify'].flatMap((verb) =>
      ['1x1', '1x64', '100x1'].map(
        (point) =>
          [
            `large file, random refs, ${point}, ${verb}`,
            `large/in-process/${verb}/${point}`,
            against,
            2,
          ] as const,
      ),
    ),
  ),
  ['read by ref, decoded', 'empty/in-process/read/1x1', 'sqlite', 2],
  ['read by ref, decoded, large file', 'large/in-process/read/1x1', 'sqlite', 2],
  ['HTTP, one op, 64 connections, create', 'empty/http/create/1x64', 'floor', 0.5],
  ['HTTP, one op, 64 connections, modify', 'empty/http/modify/1x64', 'floor', 0.5],
  ['HTTP, 100 ops, one connection, create', 'empty/http/create/100x1', 'floor', 0.2],
  ['HTTP, 100 ops, 64 connections, create', 'empty/http/create/100x64', 'floor', 0.2],
  ['gRPC unary, create', 'empty/grpc/create/1x64', 'floor', 0.7],
  ['gRPC unary, modify', 'empty/grpc/modify/1x64', 'floor', 0.7],
  ['gRPC stream, one op a message, create', 'empty/grpc-stream/create/1x64', 'floor', 0.55],
  ['gRPC stream, one op a message, modify', 'empty/grpc-stream/modify/1x64', 'floor', 0.55],
  ['HTTP, one op, 64 callers, create', 'empty/http/create/1x64/servers', 'bullmq', 1.5],
  ['HTTP, one op, 64 callers, modify', 'empty/http/modify/1x64/servers', 'bullmq', 1.5],
  ['HTTP or embedded, 64 callers, create', 'empty/http/create/1x64/servers', 'dbos', 15],
  ['HTTP or embedded, 64 callers, resume', 'empty/http/modify/1x64/servers', 'dbos', 15],
  ['HTTP, one op, 64 callers, create', 'empty/http/create/1x64/servers', 'restate', 15],
  ['HTTP, one op, 64 callers, resume', 'empty/http/modify/1x64/servers', 'restate', 15],
  ...['create', 'modify'].flatMap((verb) =>
    ['1x1', '1x64', '100x1'].map(
      (point) =>
        [
          `ten times the large file, ${point}, ${verb}`,
          `huge/in-process/${verb}/${point}`,
          'tenth',
          0.7,
        ] as const,
    ),
  ),
]

/** Of ours with its commit log in PostgreSQL, by the other side. */
export const cluster_targets: Readonly<Partial<Record<ClusterSide, number>>> = {
  ...{ dbos: 15, 'pg-boss': 5, 'graphile-worker': 3, file: 0.6 },
}

/** The growth of the heap from none to 10^7 waiting tasks; applied to smaller files too. */
const heap_mb_max = 150
const heap_cell = 'in-process/create/1x64'

export function targetLines(
  lines: readonly CellLine[],
  sync_ms: number,
  scale: Scale,
): TargetLine[] {
  const by_name = new Map(lines.map((line) => [line.name, line]))
  const of_ratios = ratios.flatMap(([row, cell, against, wanted]) =>
    (by_name.get(cell)?.ratios ?? [])
      .filter((ratio) => ratio.against === against && isCompared(ratio.ours, against))
      .map(({ ours, ops_per_s }) =>
        targetLine({ row: `${row}, over ${against}`, ours, wanted, measured: ops_per_s }),
      ),
  )
  return [...of_ratios, ...p99Lines(by_name, sync_ms), ...heapLines(by_name, scale)]
}

/** Only DBOS runs in the process of its callers, as `embedded` does. */
function isCompared(ours: SideName, against: SideName): boolean {
  return ours !== 'embedded' || against === 'dbos'
}

/** A target is a lower bound unless `is_upper_bound`. */
type Given = Pick<TargetLine, 'row' | 'ours' | 'wanted' | 'measured'> &
  Partial<Pick<TargetLine, 'is_upper_bound' | 'unit'>>

export function targetLine(given: Given): TargetLine {
  const { row, ours, wanted, is_upper_bound = false, unit = '', measured } = given
  const is_met = is_upper_bound ? measured.median <= wanted : measured.median >= wanted
  return { kind: 'target', row, ours, wanted, is_upper_bound, unit, measured, is_met }
}

function p99Lines(by_name: ReadonlyMap<string, CellLine>, sync_ms: number): TargetLine[] {
  const wanted = 5 * sync_ms + 2
  return ['create', 'modify'].flatMap((verb) => {
    const row = `p99 at half of the highest rate, HTTP, one op, ${verb}`
    const sides = by_name.get(`empty/http/${verb}/1x64/half`)?.sides ?? {}
    return oursOf(sides).map(([ours, { p99_ms }]) =>
      targetLine({ row, ours, wanted, measured: p99_ms, is_upper_bound: true, unit: 'ms' }),
    )
  })
}

function heapLines(by_name: ReadonlyMap<string, CellLine>, scale: Scale): TargetLine[] {
  const empty = by_name.get(`empty/${heap_cell}`)?.sides ?? {}
  const files = [
    ['large', scale.many_tasks],
    ['huge', scale.most_tasks],
  ] as const
  return files.flatMap(([file, tasks]) => {
    const full = by_name.get(`${file}/${heap_cell}`)?.sides ?? {}
    const [low, high] = [empty.ours?.heap_bytes, full.ours?.heap_bytes]
    if (low === undefined || high === undefined) return []
    const over = (high - low) / 1e6
    const row = `heap with ${tasks.toLocaleString('en-US')} waiting tasks, over empty`
    const measured = { median: over, min: over, max: over }
    const bound = { wanted: heap_mb_max, is_upper_bound: true, unit: 'MB' } as const
    return [targetLine({ row, ours: 'ours', measured, ...bound })]
  })
}

function oursOf(sides: CellLine['sides']): (readonly [SideName, SideLine])[] {
  return (Object.entries(sides) as [SideName, SideLine][]).filter(([name]) => isOurs(name))
}
