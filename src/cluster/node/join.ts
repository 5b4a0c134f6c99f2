/**
 * How a node joins its cluster: connects to a database with a known schema, and places its data
 * file in the commit log. A file from before its start loads a snapshot.
 */
import type { Clock } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { CommitLogOpening } from '../../store/commit-log/source.ts'
import type { Connection } from '../database/connection.ts'
import { checkedCluster } from '../database/schema.ts'
import { untilAnswered, type Waiting } from '../database/waiting.ts'
import { readOwnerRow } from '../ownership/owner-row.ts'
import { loadSnapshot } from '../snapshots/load.ts'
import { type NodeFile, openNodeFile, type PlaceInLog } from './file.ts'
import type { Registration } from './rows.ts'
import type { NodeSettings } from './settings.ts'
import type { StatusKeeper } from './status.ts'

export interface Joining extends Waiting {
  readonly settings: NodeSettings
  readonly opening: CommitLogOpening
  readonly status: StatusKeeper
  readonly connection: Connection
  readonly placeInLog: PlaceInLog
  /** Registers the node's name with the position of its data file. */
  register(file: NodeFile, seq: number): Promise<Registration>
}

const round_trips_tried = 3
/** Two attempts for each of the three renewals. */
const round_trips_per_lease = 6

/** The data file, at a position from which the commit log continues. */
export async function join(joining: Joining): Promise<NodeFile> {
  const { connection, opening, status, settings } = joining
  const { partition, node } = settings
  const { file, is_behind } = await untilAnswered(joining, () => find(joining))
  const registration = await joining.register(file, is_behind ? 0 : file.manifest.seq)
  if (!is_behind) return file
  for (let before_seq = -1; ; ) {
    const loaded = await loadSnapshot({
      ...joining,
      ...{ partition, file, node, tree: opening.tree, emit: opening.emit },
      onBegin({ seq }) {
        status.set({ seq })
        registration.report(seq)
      },
      onLoaded: (loading) => status.set({ loading }),
    })
    status.set({ loading: undefined })
    const { manifest } = loaded
    const place = await untilAnswered(joining, () =>
      joining.placeInLog(connection, partition, manifest, opening.path),
    )
    if (place === 'there') return loaded
    // A later snapshot has replaced this one and the log before it.
    if (manifest.seq === before_seq) throw noSnapshot()
    before_seq = manifest.seq
  }
}

async function find({
  connection,
  opening,
  settings,
  placeInLog,
}: Joining): Promise<{ readonly file: NodeFile; readonly is_behind: boolean }> {
  const { partition, lease_ms, clock } = settings
  await connection.connect()
  const cluster = await checkedCluster(connection)
  const row = await readOwnerRow(connection, partition)
  await checkRoundTrip(clock, lease_ms, () => readOwnerRow(connection, partition))
  const of = { cluster_id: cluster.id, partition, log_id: row.log_id }
  const file = await openNodeFile(opening.tree, opening.path, of, opening.bytes)
  if (file.mark.is_loading) return { file, is_behind: true }
  const place = await placeInLog(connection, partition, file.manifest, opening.path)
  return { file, is_behind: place === 'behind' }
}

async function checkRoundTrip(
  clock: Clock,
  lease_ms: number,
  ask: () => Promise<unknown>,
): Promise<void> {
  let shortest_ms = Number.POSITIVE_INFINITY
  for (let n = 0; n < round_trips_tried; n++) {
    const sent_ms = clock.now_ms()
    await ask()
    shortest_ms = Math.min(shortest_ms, clock.now_ms() - sent_ms)
  }
  const least_ms = Math.ceil(round_trips_per_lease * shortest_ms)
  if (lease_ms >= least_ms) return
  const says = `the database takes ${Math.ceil(shortest_ms)} ms to answer`
  const helps = `set one of at least ${least_ms} ms`
  throw fault('not_possible', `${says}, too long for a lease of ${lease_ms} ms: ${helps}`)
}

function noSnapshot(): Fault {
  const says = 'the commit log in the database does not reach back to this node'
  return fault('not_possible', `${says}, and there is no snapshot before it: restore the database`)
}
