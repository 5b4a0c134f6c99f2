/**
 * What the database knows of a cluster: the owner of a partition, the nodes, sizes, and what its
 * settings guarantee. Ages are by the database's clock and decide nothing. The rights of a node
 * suffice to read it.
 */
import { type Clock, pause } from '../../core/clock.ts'
import { version } from '../../core/version.ts'
import type { Connection } from '../database/connection.ts'
import { checkedCluster } from '../database/schema.ts'
import { type Settings, settingsFault, settingsQuery } from '../database/settings.ts'
import { type NodeRow, readNodes } from '../node/rows.ts'
import { type OwnerRow, readOwnerRow } from '../ownership/owner-row.ts'

export interface NodeReport {
  readonly node: string
  /** `gone`: ended, or no beat for a minute. */
  readonly role: 'owner' | 'standby' | 'gone'
  readonly address: string
  /** Of the last frame, as of the last beat; `lag` frames follow. The owner has all. */
  readonly position: number
  readonly lag: number
  readonly version: string
  /** Why this standby cannot become the owner; null if it can. */
  readonly unfit: string | null
  readonly seen_s_ago: number
}

export interface ClusterStatus {
  readonly cluster: string
  readonly schema_version: number
  readonly partition: number
  /** Null without an owner; `is_alive`: it renewed its row during the check. */
  readonly owner: {
    readonly node: string
    readonly address: string
    readonly version: string
    readonly lease_ms: number
    readonly since: string
    readonly is_alive: boolean
  } | null
  readonly epoch: number
  readonly position: number
  readonly members: readonly NodeReport[]
  readonly log: { readonly frames: number; readonly bytes: number }
  readonly snapshot: {
    readonly position: number
    readonly bytes: number
    readonly age_s: number
  } | null
  readonly database: {
    readonly version: string
    readonly now: string
    readonly settings: Omit<Settings, 'is_standby' | 'read_only' | 'followers'>
    readonly followers: number
  }
  /** Where an answered op is durable. */
  readonly durable: string
  /** The setting by which an answered op can be lost, as a sentence; null if none. */
  readonly risk: string | null
  readonly warnings: readonly string[]
}

const missing_after_s = 60

const poll_ms = 50

export async function clusterStatus(
  connection: Connection,
  partition: number,
  clock: Clock,
): Promise<ClusterStatus> {
  const cluster = await checkedCluster(connection)
  const row = await readOwnerRow(connection, partition)
  const is_owned = !row.released && row.node !== ''
  const is_alive = is_owned && (await givesSign(connection, partition, row, clock))
  const [found] = (await connection.query<Found>({ text: found_text, values: [partition] })).rows
  const { rows } = await connection.query<Settings>(settingsQuery(answer_ms))
  const settings = rows[0] as Settings
  const facts = found as Found
  const position = Number(facts.position)
  const members = (await readNodes(connection, partition)).map((row_of_node): NodeReport => {
    const { address, version, seen_s, node } = row_of_node
    const unfit = row_of_node.unfit || null
    const role = is_owned && node === row.node ? 'owner' : isSeen(row_of_node) ? 'standby' : 'gone'
    const reached = role === 'owner' ? position : Math.min(row_of_node.reached, position)
    return {
      ...{ node, role, address, position: reached, lag: position - reached, version },
      ...{ unfit: role === 'standby' ? unfit : null, seen_s_ago: seen_s },
    }
  })
  const { fsync, full_page_writes, synchronous_commit, synchronous_standby_names } = settings
  const { node, address, lease_ms, epoch } = row
  const known: Omit<ClusterStatus, 'warnings'> = {
    ...{ cluster: cluster.id.toString('hex'), schema_version: cluster.schema_version, partition },
    owner: is_owned
      ? {
          ...{ node, address, lease_ms, is_alive },
          ...{ version: facts.owner_version, since: facts.since },
        }
      : null,
    ...{ epoch, position, members },
    log: { frames: Number(facts.frames), bytes: Number(facts.log_bytes) },
    snapshot: facts.snapshot,
    database: {
      ...{ version: facts.database_version, now: facts.now, followers: settings.followers },
      settings: { fsync, full_page_writes, synchronous_commit, synchronous_standby_names },
    },
    durable: durableText(settings),
    risk: settingsFault(settings, 'this address', false)?.message ?? null,
  }
  return { ...known, warnings: warningsOf(known) }
}

/** Whether the row changes within two thirds of the lease: an owner renews it each third. */
export async function givesSign(
  connection: Connection,
  partition: number,
  { epoch, renewal, lease_ms }: OwnerRow,
  clock: Clock,
): Promise<boolean> {
  const until_ms = clock.now_ms() + (2 * lease_ms) / 3
  do {
    await pause(clock, Math.min(poll_ms, lease_ms / 6))
    const now = await readOwnerRow(connection, partition)
    if (now.epoch !== epoch || now.renewal !== renewal) return true
  } while (clock.now_ms() < until_ms)
  return false
}

const answer_ms = 10_000

interface Found {
  readonly position: string
  readonly frames: string
  readonly log_bytes: string
  readonly owner_version: string
  readonly since: string
  readonly database_version: string
  readonly now: string
  readonly snapshot: ClusterStatus['snapshot']
}

const utc = (of: string): string =>
  `to_char(${of} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
const age = (of: string): string => `greatest(0, extract(epoch FROM now() - ${of}))::float8`

const found_text = `SELECT
  (SELECT coalesce(max(seq), 0) FROM conveyor.log WHERE partition = $1) AS position,
  (SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM conveyor.log WHERE partition = $1) AS frames,
  pg_total_relation_size('conveyor.log') AS log_bytes,
  owner.version AS owner_version, ${utc('owner.since')} AS since,
  current_setting('server_version') AS database_version, ${utc('now()')} AS now,
  (SELECT json_build_object('position', seq, 'bytes', bytes, 'age_s', ${age('at')})
    FROM conveyor.snapshot WHERE partition = $1 AND chunks IS NOT NULL
    ORDER BY seq DESC LIMIT 1) AS snapshot
  FROM conveyor.owner AS owner WHERE partition = $1`

function durableText({ synchronous_standby_names: names, synchronous_commit }: Settings): string {
  if (synchronous_commit === 'off') return 'nowhere at once: synchronous_commit is off'
  if (names === '' || synchronous_commit === 'local') return 'on the disk of this database'
  const at = synchronous_commit === 'remote_write' ? 'in the memory of' : 'on the disks of'
  return `on the disk of this database and ${at} its synchronous standbys (${names})`
}

function warningsOf({ owner, members, epoch, risk }: Omit<ClusterStatus, 'warnings'>): string[] {
  const standbys = members.filter(({ role }) => role === 'standby')
  const missing = members.filter(({ role }) => role === 'gone').map(({ node }) => node)
  const others = members.filter((one) => one.role !== 'gone' && one.version !== version)
  return [
    ...(risk === null ? [] : [risk]),
    ...(owner === null ? [`no node owns the data${epoch === 0 ? ' yet' : ''}: start one`] : []),
    ...(owner?.is_alive === false
      ? [`the owner ${owner.node} gives no sign; a standby takes over after its lease`]
      : []),
    ...standbys.flatMap(({ node, unfit }) =>
      unfit === null ? [] : [`${node} could not be the owner: ${unfit}`],
    ),
    ...(owner !== null && standbys.length === 0 ? ['there is no standby: start another node'] : []),
    ...missing.map(
      (node) => `${node} is not seen: start it, or run \`npx conveyor cluster remove ${node}\``,
    ),
    ...others.map((one) => `${one.node} runs conveyor ${one.version}, this is ${version}`),
  ]
}

/** Whether a node runs, by its last beat. */
export function isSeen({ is_registered, seen_s }: NodeRow): boolean {
  return is_registered && seen_s <= missing_after_s
}
