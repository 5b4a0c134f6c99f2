/**
 * The metrics of a cluster node, in every role. Those of its engine (table.ts) exist while it is
 * the owner; the time of an append is their `conveyor_sync_duration_seconds`.
 */
import { Registry } from 'prom-client'
import type { PostgresLog } from '../cluster/node/node.ts'
import {
  awayOf,
  lagOf,
  type NodeStatus,
  positionLagOf,
  roles,
  snapshotAgeOf,
} from '../cluster/node/status.ts'
import { type EngineMetricsOptions, metricsIn } from './engine-metrics.ts'
import type { MetricRow } from './table.ts'

export type Measurable = Pick<PostgresLog, 'status'>

const gauge = (
  name: string,
  help: string,
  read: (status: NodeStatus) => number | undefined,
): MetricRow<NodeStatus> => ({
  ...{ name, type: 'gauge', help, labels: [] },
  values(status) {
    const value = read(status)
    return value === undefined ? [] : [[value]]
  },
})

export const nodeTable: readonly MetricRow<NodeStatus>[] = [
  {
    name: 'conveyor_node_role',
    type: 'gauge',
    help: 'The role of this node, 1 or 0: joining, standby, owner or ended.',
    labels: ['role'],
    values: ({ role }) => roles.map((one) => [Number(one === role), one] as const),
  },
  gauge(
    'conveyor_node_epoch',
    'The epoch that this node has seen last: it grows with each takeover.',
    ({ epoch }) => epoch,
  ),
  gauge('conveyor_node_position', 'The position that this node has.', ({ seq }) => seq),
  gauge(
    'conveyor_node_lag_seconds',
    'For how long this node has not had all that was committed.',
    lagOf,
  ),
  gauge(
    'conveyor_node_lag_positions',
    'How many frames this node lacks of those that the database had when it last looked.',
    positionLagOf,
  ),
  {
    name: 'conveyor_node_takeovers_total',
    type: 'counter',
    help: 'How many times this process has become the owner.',
    labels: [],
    values: ({ takeovers }) => [[takeovers]],
  },
  gauge('conveyor_node_fit', 'Whether this node could be the owner, 1 or 0.', ({ unfit }) =>
    Number(unfit === undefined),
  ),
  gauge('conveyor_node_lease', 'Whether this node may answer as the owner, 1 or 0.', (status) =>
    Number(status.role === 'owner' && status.has_lease),
  ),
  gauge(
    'conveyor_database_away_seconds',
    'For how long the database of the commit log has not answered; 0 while it does.',
    awayOf,
  ),
  gauge(
    'conveyor_snapshot_age_seconds',
    'The age of the newest snapshot, as reported by the owner.',
    snapshotAgeOf,
  ),
  gauge('conveyor_snapshot_bytes', 'Its bytes.', ({ snapshot }) => snapshot?.bytes),
  gauge(
    'conveyor_commit_log_bytes',
    'Bytes of the commit log in the database after the newest snapshot, as reported by the owner.',
    ({ log_bytes }) => log_bytes,
  ),
]

/**
 * Adds the metrics of a node to a register; the returned function removes them.
 *
 *     const commit_log = postgresLog({ url, node: 'a' })
 *     nodeMetrics(commit_log, { register })
 *     const engine = await openEngine('tasks.lmdb', { commit_log })
 *
 * Throws an Error if the register already has them.
 */
export function nodeMetrics(node: Measurable, options: EngineMetricsOptions = {}): () => void {
  const { addTable, remove } = metricsIn(options.register ?? new Registry())
  addTable(nodeTable, node.status)
  return remove
}
