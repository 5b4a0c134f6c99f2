/**
 * The tables of the schema `conveyor` and their migrations. `version` counts migrations; a later
 * one is refused, because this program does not know its rules.
 */
import { fault } from '../../core/faults.ts'
import { type Ask, type Connection, sqlState } from './connection.ts'

const vacuumed = ['', 'toast.']
  .flatMap((of) => [
    `${of}autovacuum_vacuum_scale_factor = 0`,
    `${of}autovacuum_vacuum_threshold = 5000`,
    `${of}autovacuum_vacuum_cost_delay = 0`,
    `${of}vacuum_truncate = off`,
  ])
  .join(', ')

/**
 * One script per version. `owner` has a row per partition; `log_id` is in every frame of its log. A
 * snapshot is complete once its row has the number of chunks. Deleted rows are vacuumed soon for
 * reuse; the tables do not shrink, because that locks out appends.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE conveyor.cluster (
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
     version text NOT NULL DEFAULT '',
     since timestamptz NOT NULL DEFAULT now()
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
     unfit text NOT NULL DEFAULT '',
     seen_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (partition, node)
   ) WITH (fillfactor = 50);`,
]

/** Optional columns, so that earlier versions can use the schema. */
const added_columns = `ALTER TABLE conveyor.replica
  ADD COLUMN IF NOT EXISTS reached bigint NOT NULL DEFAULT 0`

export const schema_version = migrations.length

export interface ClusterRow {
  readonly id: Buffer
  readonly schema_version: number
}

/** Undefined without a schema or for an empty one. Throws `not_possible` for a foreign one. */
export async function readCluster(ask: Ask): Promise<ClusterRow | undefined> {
  const { rows: parts } = await ask<{ name: string | null; columns: string[] }>({
    text: `SELECT c.relname AS name, array(SELECT attname::text FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) AS columns
      FROM pg_namespace AS n LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind = 'r'
      WHERE n.nspname = 'conveyor'`,
  })
  if (parts.every(({ name }) => name === null)) return undefined
  const cluster = parts.find(({ name }) => name === 'cluster')
  if (cluster === undefined || !cluster.columns.includes('schema_version')) throw ofAnother()
  const { rows } = await ask<{ id: Buffer; schema_version: number }>({
    text: 'SELECT id, schema_version FROM conveyor.cluster',
  })
  return rows[0]
}

/** Throws `not_possible` for another schema version or missing rights. */
export async function checkedCluster({ query }: Pick<Connection, 'query'>): Promise<ClusterRow> {
  try {
    const found = await readCluster(query)
    const init = 'run `npx conveyor cluster init`'
    if (found === undefined) throw fault('not_possible', `the database holds no cluster: ${init}`)
    if (found.schema_version > schema_version) throw newer(found)
    if (found.schema_version < schema_version) {
      const says = `the schema of the cluster has version ${found.schema_version}`
      throw fault('not_possible', `${says}, this conveyor needs ${schema_version}: ${init}`)
    }
    const { rows } = await query<{ has_all: boolean }>({ text: `SELECT ${rights_text} AS has_all` })
    if (rows[0]?.has_all !== true) throw lacksRights()
    return found
  } catch (error) {
    throw sqlState(error) === '42501' ? lacksRights() : error
  }
}

/**
 * Creates or upgrades the schema and the partition; existing rows stay. `id` (16 bytes) and
 * `log_id` (8) are random. An existing `role` gets exactly the rights that a node needs.
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
  try {
    return await connection.inTransaction(async (ask) => {
      // Serialises concurrent calls; the number is arbitrary.
      await ask({ text: 'SELECT pg_advisory_xact_lock(7203851977)' })
      const found = await readCluster(ask)
      if (found !== undefined && found.schema_version > schema_version) throw newer(found)
      const { rows } = await ask({ text: `SELECT FROM pg_namespace WHERE nspname = 'conveyor'` })
      // A role without CREATE can be given an empty schema.
      if (rows.length === 0) await ask({ text: 'CREATE SCHEMA conveyor' })
      for (const text of migrations.slice(found?.schema_version ?? 0)) await ask({ text })
      await ask(
        found === undefined
          ? {
              text: 'INSERT INTO conveyor.cluster (id, schema_version) VALUES ($1, $2)',
              values: [given.id, schema_version],
            }
          : { text: 'UPDATE conveyor.cluster SET schema_version = $1', values: [schema_version] },
      )
      await ask({ text: added_columns })
      const { rowCount } = await ask({
        text: `INSERT INTO conveyor.owner (partition, log_id) VALUES ($1, $2)
          ON CONFLICT (partition) DO NOTHING`,
        values: [given.partition, given.log_id],
      })
      if (given.role !== undefined) await ask({ text: grantsFor(given.role) })
      return { was_there: found !== undefined && rowCount === 0 }
    })
  } catch (error) {
    const state = sqlState(error)
    if (state === '42501') throw lacksRights()
    if (state !== '42704') throw error
    const says = `the database has no role ${given.role}`
    throw fault('not_possible', `${says}: run CREATE ROLE, or name another`)
  }
}

/** An append locks the owner's row, which needs UPDATE. */
const rights = {
  cluster: 'SELECT',
  owner: 'SELECT, UPDATE',
  log: 'SELECT, INSERT, DELETE',
  snapshot: 'SELECT, INSERT, UPDATE, DELETE',
  snapshot_chunk: 'SELECT, INSERT, DELETE',
  replica: 'SELECT, INSERT, UPDATE, DELETE',
}

const rights_text = Object.entries(rights)
  .flatMap(([table, all]) => all.split(', ').map((right) => [table, right]))
  .map(([table, right]) => `has_table_privilege('conveyor.${table}', '${right}')`)
  .join(' AND ')

function grantsFor(role: string): string {
  const name = `"${role.replaceAll('"', '""')}"`
  const grants = Object.entries(rights).map(
    ([table, all]) => `GRANT ${all} ON conveyor.${table} TO ${name};`,
  )
  return `GRANT USAGE ON SCHEMA conveyor TO ${name}; ${grants.join(' ')}`
}

function ofAnother(): Error {
  const says = 'the schema conveyor in the database is of another program'
  return fault('not_possible', `${says}: make a database for the cluster alone`)
}

function newer(found: ClusterRow): Error {
  const says = `the schema of the cluster has version ${found.schema_version}`
  return fault('newer_format', `${says}, of a newer conveyor: use that one`)
}

function lacksRights(): Error {
  const says = 'the role of the commit log lacks rights on the schema conveyor'
  return fault(
    'not_possible',
    `${says}: run \`npx conveyor cluster init --role NAME\` as its owner`,
  )
}
