/**
 * The printed text of `--cluster`: what the sides are, and each line of the results. Rows we lose are
 * printed like the others.
 */
import type { SideLine } from '../cell-line.ts'
import { mib, ms, number, spread, table, two } from '../report.ts'
import type { ClusterLine, ClusterSide, NetworkLine } from './line.ts'
import type { JoinLine, NodesLine, StandbyLine } from './nodes.ts'

/** What a life is on each side of the comparison on one PostgreSQL. */
export const cluster_notes = [
  'One PostgreSQL for all, with its own settings: fsync, synchronous_commit and full_page_writes on.' +
    ' Servers, clients, rivals and background work share the cores.',
  'A life: a create, which leaves a task waiting for a message from outside, and the callback that' +
    ' brings it; each is durable when it is answered. One op a call, over HTTP one op a signed request.',
  'ours: the commit log in PostgreSQL; a wait with a timer, and an end that is kept. file: the same' +
    ' with the commit log in files.',
  'dbos: a workflow that starts, waits in recv and ends; the callback is send. What the workflow does' +
    ' after it is answered behind the answer.',
  'pg-boss: send and complete; that jobs are fetched, 1,000 at a time, is outside the clock.',
  'graphile-worker: addJob for an hour from now, and addJob with the same key that replaces it; that a' +
    ' worker executes and removes it is left out.',
  'floor: the ops of all callers in one inserted row, one insert at a time, no tasks. Rivals and floor' +
    ' are over HTTP behind a bare node:http that hashes, parses and answers.',
  '',
].join('\n')

export function clusterText(line: ClusterLine | NetworkLine | NodesLine): string {
  if (line.kind === 'standby') return standbyText(line)
  if (line.kind === 'join') return joinText(line)
  const { cell, sides, ratios } = line
  const rows = (Object.entries(sides) as [ClusterSide, SideLine][]).map(([name, side]) => {
    const ratio = ratios.find(({ against }) => against === name)
    const { median = Number.NaN } = ratio?.ops_per_s ?? {}
    const { wanted } = ratio ?? {}
    return [
      ...[name, number(side.ops_per_s.median), spread(side.ops_per_s, number)],
      ...[ms(side.p50_ms.median), ms(side.p99_ms.median)],
      ratio === undefined ? '' : `${median.toFixed(2)} (${spread(ratio.ops_per_s, two)})`,
      wanted === undefined ? '' : `${wanted} ${median >= wanted ? 'met' : 'missed'}`,
    ]
  })
  const heads = ['ops/s', 'min … max', 'p50 ms', 'p99 ms', 'ours over it', 'at least']
  return `${table([cell, ...heads], rows, 1)}\n${line.kind === 'network' ? tripText(line) : ''}`
}

function standbyText({ ops_per_s, seconds, lag_s, lag_positions }: StandbyLine): string {
  const of = ({ median, p99, max }: StandbyLine['lag_s'], text: (value: number) => string) =>
    `median ${text(median)}, p99 ${text(p99)}, most ${text(max)}`
  return (
    `cluster/standby: ${number(ops_per_s)} ops/s at the owner for ${seconds} s; the standby is behind` +
    ` by s: ${of(lag_s, two)}; by positions: ${of(lag_positions, number)}`
  )
}

function joinText(line: JoinLine): string {
  const { bytes, seconds, caught_up_s, ops_per_s_before, ops_per_s_during } = line
  return (
    `cluster/join: a new node is less than ${caught_up_s} s behind an owner of ${mib(bytes)} after` +
    ` ${seconds.toFixed(1)} s; the owner did ${number(ops_per_s_before)} ops/s before and` +
    ` ${number(ops_per_s_during)} meanwhile`
  )
}

function tripText(network: NetworkLine): string {
  const { round_trip_ms, one_connection_per_s, all_connections_per_s } = network
  return (
    `A round trip (${ms(round_trip_ms)} ms) for each op would give` +
    ` ${number(one_connection_per_s)} ops/s over one connection,` +
    ` ${number(all_connections_per_s)} over one for each caller\n`
  )
}
