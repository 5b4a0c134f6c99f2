/**
 * A cluster in a database of its own of a test's server, owned by nobody's node: epoch 1 is the
 * test's, and its commit log is opened over a connection of the test.
 */

import { dirname } from 'node:path'
import { type Connection, newConnection } from '../../src/cluster/database/connection.ts'
import { initCluster } from '../../src/cluster/database/schema.ts'
import { databaseOf } from '../../src/cluster/database/url.ts'
import {
  type PostgresLogPort,
  postgresCommitLog,
} from '../../src/cluster/ownership/postgres-log.ts'
import { steadyClock } from '../../src/core/clock.ts'
import type { CommitLog } from '../../src/store/commit-log/commit-log.ts'
import { fakeChance } from './fake-clock.ts'
import type { Postgres } from './postgres.ts'

export interface DatabaseCluster {
  readonly url: string
  sql<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Row[]>
  /** Frames by position, as the database has them. */
  frames(): Promise<Buffer[]>
}

export const log_id = Buffer.alloc(8, 7)

export function connectionTo(url: string, answer_ms_max = 10_000): Connection {
  const database = databaseOf(url, 'test')
  return newConnection({ database, purpose: 'test', clock: steadyClock, answer_ms_max })
}

export async function newCluster(postgres: Postgres, role?: string): Promise<DatabaseCluster> {
  const url = await postgres.createDatabase()
  const name = url.slice(url.lastIndexOf('/') + 1)
  // Its socket trusts everybody, whatever its other callers have to say.
  const { folder, port } = postgres
  const near = `${encodeURIComponent(dirname(folder))}:${port}`
  const connection = connectionTo(`postgres://postgres@${near}/${name}`)
  const id = fakeChance(name).bytes(16)
  await initCluster(connection, { id, log_id, partition: 0, role })
  await connection.close()
  const sql: DatabaseCluster['sql'] = (text, values) => postgres.sql(text, values, name)
  await sql(`UPDATE conveyor.owner SET epoch = 1, node = 'test', released = false`)
  return {
    url,
    sql,
    async frames() {
      const rows = await sql<{ frame: Buffer }>('SELECT frame FROM conveyor.log ORDER BY seq')
      return rows.map(({ frame }) => frame)
    },
  }
}

/** As the owner of epoch 1. */
export function logOver(connection: Connection, port: Partial<PostgresLogPort> = {}): CommitLog {
  return postgresCommitLog({
    ...{ connection, clock: steadyClock, partition: 0, epoch: () => 1 },
    release: async () => {},
    ...{ onMerged() {}, onAppended() {}, onAway() {} },
    ...port,
  })
}
