/**
 * The result of a cell of the comparison on one PostgreSQL: a summary of each side's slots, and ratios
 * of ours over the others, computed within a repetition.
 */
import { type SideLine, sideLine } from '../cell-line.ts'
import type { WriteVerb } from '../cells.ts'
import { type Slot, type Summary, summaryOf } from '../statistics.ts'
import { cluster_targets } from '../targets.ts'

export const cluster_rivals = ['dbos', 'pg-boss', 'graphile-worker'] as const
export type ClusterRivalName = (typeof cluster_rivals)[number]

/** `ours` has its commit log in PostgreSQL, `file` is ours with its commit log in files. */
export type ClusterSide = 'ours' | 'file' | 'floor' | ClusterRivalName

export interface ClusterCell {
  readonly transport: 'embedded' | 'http'
  readonly verb: WriteVerb
  readonly callers: number
  /** Of the network in between; missing where there is none. */
  readonly delay_ms: number | undefined
}

interface Compared {
  readonly cell: string
  readonly sides: Readonly<Partial<Record<ClusterSide, SideLine>>>
  readonly ratios: readonly ClusterRatio[]
}

export interface ClusterLine extends Compared {
  readonly kind: 'cluster'
}

/** With a network in between. */
export interface NetworkLine extends Compared {
  readonly kind: 'network'
  readonly delay_ms: number
  /** Of `SELECT 1` over one connection, the median. */
  readonly round_trip_ms: number
  /** What one round trip for each op would give, over one connection and over one for each caller. */
  readonly one_connection_per_s: number
  readonly all_connections_per_s: number
}

export interface ClusterRatio {
  readonly against: ClusterSide
  readonly ops_per_s: Summary
  /** The least that is wanted; missing for the floor, and with a network in between. */
  readonly wanted?: number
}

/** As `cluster/http/create/1x64`, or `cluster/10ms/http/create/1x64`. */
export function clusterName({ transport, verb, callers, delay_ms }: ClusterCell): string {
  const far = delay_ms === undefined ? '' : `${delay_ms}ms/`
  return `cluster/${far}${transport}/${verb === 'create' ? verb : 'callback'}/1x${callers}`
}

export function clusterLine(
  cell: ClusterCell,
  slots: ReadonlyMap<ClusterSide, readonly Slot[]>,
  round_trip_ms: number | undefined,
): ClusterLine | NetworkLine {
  const { callers, delay_ms } = cell
  const ours = slots.get('ours') ?? []
  const ratios = [...slots].flatMap(([against, other]) => {
    if (against === 'ours') return []
    const rates = ours.map((slot, rep) => slot.ops_per_s / (other[rep]?.ops_per_s ?? Number.NaN))
    const wanted = delay_ms === undefined ? cluster_targets[against] : undefined
    return [{ against, ops_per_s: summaryOf(rates), ...(wanted === undefined ? {} : { wanted }) }]
  })
  const sides = [...slots].map(([name, of_side]) => [name, sideLine(of_side)] as const)
  const line = { cell: clusterName(cell), sides: Object.fromEntries(sides), ratios }
  if (delay_ms === undefined || round_trip_ms === undefined) return { kind: 'cluster', ...line }
  const one_connection_per_s = 1_000 / round_trip_ms
  const all_connections_per_s = callers * one_connection_per_s
  const trips = { round_trip_ms, one_connection_per_s, all_connections_per_s }
  return { kind: 'network', ...line, delay_ms, ...trips }
}
