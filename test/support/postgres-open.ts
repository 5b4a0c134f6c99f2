/**
 * What stands in for `openEngine` in a run over PostgreSQL (bin/test.ts): each data file, and each
 * store in memory, becomes the file of a node that has a partition of its own, so that every test
 * runs over that commit log without knowing of it.
 *
 * The partition is known by the file itself, so whoever opens the file again, in any process and by
 * any name, has its data. A file that somebody else has written, such as a backup, stays what it is.
 */
import { createHash } from 'node:crypto'
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { newConnection } from '../../src/cluster/database/connection.ts'
import { initCluster } from '../../src/cluster/database/schema.ts'
import { databaseOf } from '../../src/cluster/database/url.ts'
import { steadyClock, systemChance } from '../../src/core/clock.ts'
import type { Engine, EngineOptions } from '../../src/engine/api/engine-api.ts'
import type { openEngine } from '../../src/open.ts'
import { postgresLog } from '../../src/postgres.ts'
import { quickFolder } from './store-folder.ts'

export interface Suite {
  readonly url: string
  /** Part of each run of the tests: a third of the vectors, each on one transport. */
  readonly is_quick: boolean
}

/** Beside this module where it is compiled for a run over PostgreSQL. */
export const suite_file = 'postgres-suite.json'
export const suite = readSuite()

const node = 'suite'
const log_id_bytes = 8
/** No other node waits for it, and a loaded machine must not let it run out. */
const lease_ms = 60_000

/** Makes the partition, and the cluster where there is none. */
export async function initPartition(server_url: string, partition: number): Promise<void> {
  const connection = newConnection({
    ...{ database: databaseOf(server_url, node), purpose: 'init' },
    ...{ clock: steadyClock, answer_ms_max: lease_ms },
  })
  const [id, log_id] = [systemChance.bytes(16), systemChance.bytes(log_id_bytes)]
  await initCluster(connection, { id, log_id, partition })
  await connection.close()
}

/** The module that takes the place of src/open.ts, which it finds by `opening`. */
export function openingText(opening: string, here: string): string {
  const imports = `import { openEngine as openFile } from '${opening}'
import { overPostgres } from '${here}'`
  return `${imports}\nexport const openEngine = overPostgres(openFile)\n`
}

export function overPostgres(openFile: typeof openEngine): typeof openEngine {
  async function open(path: string, options: EngineOptions): Promise<Engine> {
    const partition = await partitionOf(path)
    if (partition === undefined) return openFile(path, options)
    return openFile(path, {
      ...options,
      commit_log: postgresLog({ url: url(), node, partition, lease_ms }),
    })
  }

  async function openInMemory(options: EngineOptions): Promise<Engine> {
    const folder = await quickFolder('conveyor-memory-')
    const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
    try {
      const engine = await open(join(folder, 'tasks.lmdb'), options)
      const close = (): Promise<void> => engine.close().finally(remove)
      return { ...engine, path: ':memory:', close, [Symbol.asyncDispose]: close }
    } catch (error) {
      await remove()
      throw error
    }
  }

  return (path, options = {}) => {
    if (options.commit_log !== undefined) return openFile(path, options)
    if (path !== ':memory:') return open(path, options)
    return options.admin === true ? openFile(path, options) : openInMemory(options)
  }
}

function readSuite(): Suite | undefined {
  const path = join(import.meta.dirname, suite_file)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Suite) : undefined
}

function url(): string {
  if (suite === undefined) throw new Error('this is no run over PostgreSQL')
  return suite.url
}

/** How many frames of a partition there are after this position. */
export async function framesAfter(partition: number, seq: number): Promise<number> {
  const text = 'SELECT FROM conveyor.log WHERE partition = $1 AND seq > $2'
  return (await query(text, [partition, seq])).rowCount ?? 0
}

/** One connection for all files of a process, which does not keep the process alive. */
let pool: pg.Pool | undefined

function newPool(): pg.Pool {
  const made = new pg.Pool({ connectionString: url(), max: 1, allowExitOnIdle: true })
  // A connection that breaks while nobody asks is made anew by the next who does.
  return made.on('error', () => {})
}

function query(text: string, values: unknown[]): Promise<pg.QueryResult> {
  pool ??= newPool()
  return pool.query(text, values)
}

/** Makes the file and its partition where there is none; undefined for what is no node's file. */
async function partitionOf(path: string): Promise<number | undefined> {
  try {
    closeSync(openSync(path, 'a', 0o600))
  } catch {
    return undefined
  }
  const { ino, birthtimeNs, size } = statSync(path, { bigint: true })
  const digest = createHash('sha256').update(`${ino} ${birthtimeNs}`).digest()
  const partition = digest.readUInt32BE(0) >>> 1
  if (size > 0n) {
    const { rowCount } = await query('SELECT FROM conveyor.owner WHERE partition = $1', [partition])
    return rowCount === 0 ? undefined : partition
  }
  await query(
    'INSERT INTO conveyor.owner (partition, log_id) VALUES ($1, $2) ON CONFLICT DO NOTHING',
    [partition, systemChance.bytes(log_id_bytes)],
  )
  return partition
}
