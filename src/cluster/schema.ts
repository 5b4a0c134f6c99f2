/**
 * The tables in the schema `conveyor`, and what makes and migrates them. `version` counts the
 * migrations; a schema of a later version is refused, because its rules are not known here.
 */
import { fault } from '../core/faults.ts'
import { type Connection, sqlState } from './connection.ts'

/** Storage parameters, also of the table that holds the long values. */
const vacuumed = ['', 'toast.']
  .flatMap((of) => [
    `${of}autovacuum_vacuum_scale_factor = 0`,
    `${of}autovacuum_vacuum_threshold = 5000`,
    `${of}autovacuum_vacuum_cost_delay = 0`,
    `${of}vacuum_truncate = off`,
  ])
  .join(', ')

/**
 * One script for each version, in order. `owner` has a row for each partition; `log_id` is in every
 * frame of its log. A snapshot is complete once its row says how many chunks it has. What is
 * deleted of the log and of snapshots is vacuumed soon, so that its space is used again; the tables
 * do not shrink, which would lock out appends.
 */
export const migrations: readonly string[] = [
  `CREATE SCHEMA IF NOT EXISTS conveyor;
   CREATE TABLE conveyor.cluster (
     id bytea NOT NULL,
     schema_version int NOT NULL
   );
   CREATE TABLE conveyor.owner (
     partition int PRIMARY KEY,
     log_id bytea NOT NULL,
     epoch bigint NOT NULL DEFAULT 0,
     renewal bigint NOT NULL DEFAULT 0,
     node text NOT NULL DEFAULT '',
     address text NOT NULL DEFAULT '',
     lease_ms int NOT NULL DEFAULT 0,
     released boolean NOT NULL DEFAULT true,
     hand_over_to text NOT NULL DEFAULT '',
     file_id text NOT NULL DEFAULT '',
     boot_id text NOT NULL DEFAULT '',
     version text NOT NULL DEFAULT ''
   ) WITH (fillfactor = 50);
   CREATE TABLE conveyor.log (
     partition int NOT NULL,
     seq bigint NOT NULL,
     epoch bigint NOT NULL,
     frame bytea NOT NULL,
     at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (partition, seq)
   );
   ALTER TABLE conveyor.log ALTER COLUMN frame SET STORAGE EXTERNAL;
   CREATE TABLE conveyor.snapshot (
     partition int NOT NULL,
     id bytea NOT NULL,
     epoch bigint NOT NULL,
     seq bigint NOT NULL,
     last_crc bigint NOT NULL,
     chunks int,
     bytes bigint NOT NULL DEFAULT 0,
     at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (partition, id)
   );
   CREATE TABLE conveyor.snapshot_chunk (
     partition int NOT NULL,
     snapshot bytea NOT NULL,
     chunk int NOT NULL,
     data bytea NOT NULL,
     PRIMARY KEY (partition, snapshot, chunk)
   );
   ALTER TABLE conveyor.snapshot_chunk ALTER COLUMN data SET STORAGE EXTERNAL;
   ALTER TABLE conveyor.log SET (${vacuumed});
   ALTER TABLE conveyor.snapshot_chunk SET (${vacuumed});
   CREATE TABLE conveyor.replica (
     partition int NOT NULL,
     node text NOT NULL,
     seq bigint NOT NULL DEFAULT 0,
     beat bigint NOT NULL DEFAULT 0,
     instance text NOT NULL DEFAULT '',
     address text NOT NULL DEFAULT '',
     version text NOT NULL DEFAULT '',
     seen_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (partition, node)
   ) WITH (fillfactor = 50);`,
]

export const schema_version = migrations.length

export interface ClusterRow {
  readonly id: Buffer
  readonly schema_version: number
}

/** Undefined where there is no schema yet. */
export async function readCluster(connection: Connection): Promise<ClusterRow | undefined> {
  try {
    const { rows } = await connection.query<{ id: Buffer; schema_version: number }>({
      text: 'SELECT id, schema_version FROM conveyor.cluster',
    })
    return rows[0]
  } catch (error) {
    if (isMissing(error)) return undefined
    if (sqlState(error) === '42501') throw lacksRights()
    throw error
  }
}

/** The schema or a table is not there. */
function isMissing(error: unknown): boolean {
  return sqlState(error) === '3F000' || sqlState(error) === '42P01'
}

/** Throws `not_possible` unless it is there in the version of this program. */
export async function checkedCluster(connection: Connection): Promise<ClusterRow> {
  const found = await readCluster(connection)
  const init = 'run `npx conveyor cluster init`'
  if (found === undefined) throw fault('not_possible', `the database holds no cluster: ${init}`)
  if (found.schema_version > schema_version) {
    const says = 'the schema of the cluster is of a newer conveyor'
    throw fault('newer_format', `${says}: version ${found.schema_version}; use that one`)
  }
  if (found.schema_version < schema_version) {
    const says = `the schema of the cluster has version ${found.schema_version}`
    throw fault('not_possible', `${says}, this conveyor needs ${schema_version}: ${init}`)
  }
  return found
}

/**
 * Makes the schema, brings an earlier one up to date, and makes the partition; changes nothing that
 * is there already. `id` and `log_id` are random: 16 and 8 bytes. With `role` that role, which must
 * exist, gets the rights that a node needs and no others.
 */
export async function initCluster(
  connection: Connection,
  given: {
    readonly id: Buffer
    readonly log_id: Buffer
    readonly partition: number
    readonly role?: string | undefined
  },
): Promise<{ readonly was_there: boolean }> {
  const found = await readCluster(connection)
  if (found !== undefined && found.schema_version > schema_version) await checkedCluster(connection)
  await connection.query({ text: 'BEGIN' })
  try {
    for (const text of migrations.slice(found?.schema_version ?? 0)) {
      await connection.query({ text })
    }
    await connection.query(
      found === undefined
        ? {
            text: 'INSERT INTO conveyor.cluster (id, schema_version) VALUES ($1, $2)',
            values: [given.id, schema_version],
          }
        : { text: 'UPDATE conveyor.cluster SET schema_version = $1', values: [schema_version] },
    )
    const { rowCount } = await connection.query({
      text: `INSERT INTO conveyor.owner (partition, log_id) VALUES ($1, $2)
        ON CONFLICT (partition) DO NOTHING`,
      values: [given.partition, given.log_id],
    })
    if (given.role !== undefined) await connection.query({ text: grantsFor(given.role) })
    await connection.query({ text: 'COMMIT' })
    return { was_there: found !== undefined && rowCount === 0 }
  } catch (error) {
    await connection.query({ text: 'ROLLBACK' }).catch(() => {})
    throw sqlState(error) === '42501' ? lacksRights() : error
  }
}

function grantsFor(role: string): string {
  const name = `"${role.replaceAll('"', '""')}"`
  return `GRANT USAGE ON SCHEMA conveyor TO ${name};
    GRANT SELECT ON conveyor.cluster TO ${name};
    GRANT SELECT, UPDATE ON conveyor.owner TO ${name};
    GRANT SELECT, INSERT, DELETE ON conveyor.log, conveyor.snapshot_chunk TO ${name};
    GRANT SELECT, INSERT, UPDATE, DELETE ON conveyor.snapshot, conveyor.replica TO ${name};`
}

export function lacksRights(): Error {
  const says = 'the role of the commit log lacks rights on the schema conveyor'
  return fault(
    'not_possible',
    `${says}: run \`npx conveyor cluster init --role NAME\` as its owner`,
  )
}
