/**
 * Turns the data file of a stopped node into a standalone copy, like a backup, when the cluster's
 * database is lost. Two owners of one state diverge, so this is refused while the database has the
 * cluster and all that the file has. A node that starts on the file later is refused.
 */
import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { fault, isFault } from '../../core/faults.ts'
import { writeLogMark } from '../../store/commit-log/log-mark.ts'
import { lockFile } from '../../store/disk/file-lock.ts'
import { openReadOnly, type ReadOnlyFile } from '../../store/read-only.ts'
import { type Connection, isAway, sqlState } from '../database/connection.ts'
import { readCluster } from '../database/schema.ts'
import { placeInLog } from '../node/file.ts'

/** SQL state: unknown database. */
const no_database = '3D000'

export interface Detaching {
  readonly position: number
  readonly has: string
  readonly reason: string
}

/**
 * Undefined, without a change, unless `isWanted`. Rejects: `not_possible`, `file_held`,
 * `not_a_database`.
 */
export async function detachFile(
  connection: Connection,
  path: string,
  isWanted: (detaching: Detaching) => Promise<boolean>,
): Promise<Detaching | undefined> {
  return whileLocked(path, async (real_path) => {
    const file = await openReadOnly(real_path, { takes_nodes: true })
    const detaching = await detachingOf(connection, file, path).finally(file.close)
    if (!(await isWanted(detaching))) return undefined
    await writeLogMark(real_path, { state: 'copy' })
    return detaching
  })
}

/** Works on a file under its lock. Rejects with `file_held` while a process has the file open. */
export async function whileLocked<T>(
  path: string,
  work: (real_path: string) => Promise<T>,
): Promise<T> {
  if (!existsSync(path)) throw fault('not_possible', `${path} is not there`)
  const lock = await lockFile(path)
  if (lock === undefined) throw fault('file_held', `${path} is held by a process; stop it first`)
  try {
    return await work(await realpath(path))
  } finally {
    await lock.release()
  }
}

async function detachingOf(
  connection: Connection,
  { node }: ReadOnlyFile,
  path: string,
): Promise<Detaching> {
  if (node === undefined) {
    throw fault('not_possible', `${path} is no copy of a node: it opens alone as it is`)
  }
  const reason = await lostReason(connection, node, path)
  if (reason !== undefined) return { position: node.manifest.seq, has: node.says, reason }
  const says = `the database has the cluster of ${path}, and all that this file has`
  throw fault('not_possible', `${says}: start the node with it (serve --commit-log URL)`)
}

/** Why the node cannot use the database; undefined if the database has all of the file. */
export async function lostReason(
  connection: Connection,
  { mark, manifest }: Pick<NonNullable<ReadOnlyFile['node']>, 'mark' | 'manifest'>,
  path: string,
): Promise<string | undefined> {
  try {
    const cluster = await readCluster(connection.query)
    if (cluster === undefined) return 'the database holds no cluster'
    if (cluster.id.toString('hex') !== mark.cluster_id) return 'the database holds another cluster'
    await placeInLog(connection, mark.partition, manifest, path)
    return undefined
  } catch (error) {
    const state = sqlState(error)
    const is_set_back = isFault(error) && error.code === 'not_possible' && error.cause === undefined
    // Others, such as a wrong password, say nothing about the cluster.
    if (isAway(error) || state === no_database || is_set_back) return (error as Error).message
    throw error
  }
}
