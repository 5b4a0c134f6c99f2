/**
 * A run of `--cluster`: what the sides are, then the cells, then those with each network of `--netem`
 * in between. What this machine lacks is told in a sentence and left out.
 */
import { findRivals } from '../rival-packages.ts'
import { type ClusterRun, clusterCells } from './cells.ts'
import { type ClusterLine, cluster_rivals, type NetworkLine } from './line.ts'
import { type NodesLine, nodesCells } from './nodes.ts'
import { cluster_notes } from './report.ts'

interface Given extends Omit<ClusterRun, 'rivals'> {
  /** Installs the rivals that are missing. */
  readonly install: boolean
  /** As `1ms`. */
  readonly delays: readonly string[]
}

export async function* clusterRun({
  install,
  delays,
  ...run
}: Given): AsyncGenerator<ClusterLine | NetworkLine | NodesLine> {
  run.print(cluster_notes)
  const { usable: rivals, missing } = findRivals(cluster_rivals, install, run.print)
  for (const text of missing) run.print(`left out: ${text}`)
  yield* clusterCells({ ...run, rivals }, undefined)
  yield* nodesCells(run)
  for (const delay of delays) yield* clusterCells({ ...run, rivals }, msOf(delay))
}

function msOf(delay: string): number {
  const [, ms] = /^(\d+)ms$/.exec(delay) ?? []
  if (ms === undefined) throw new Error(`--netem takes a delay such as 1ms, not ${delay}`)
  return Number(ms)
}
