/**
 * The data file of a node is a cache of the commit log: it says of which cluster and partition it
 * is and which position it holds, and following goes on from there. Before it does, the frame at
 * that position must be the one that the file has, or the log was set back meanwhile.
 */
import { type Fault, fault } from '../core/faults.ts'
import { changesOf } from '../store/change-buffer.ts'
import { frameOf } from '../store/commit-log/checkpoint.ts'
import { readLogMark } from '../store/commit-log/log-mark.ts'
import {
  decodeManifest,
  encodeManifest,
  type Manifest,
  manifest_key,
} from '../store/commit-log/manifest.ts'
import {
  encodeNodeMark,
  type NodeMark,
  node_mark_key,
  readNodeMark,
} from '../store/commit-log/node-mark.ts'
import type { LmdbTree } from '../store/lmdb/lmdb-tree.ts'
import type { Connection } from './connection.ts'

const file_id_bytes = 8

export interface NodeFile {
  readonly mark: NodeMark
  readonly manifest: Manifest
}

/**
 * The mark and position of the data file; a new file gets its mark. Throws `not_possible` for one
 * that belongs to something else.
 */
export async function openNodeFile(
  tree: LmdbTree,
  path: string,
  of: { readonly cluster_id: Buffer; readonly partition: number; readonly log_id: Buffer },
  bytes: (count: number) => Buffer,
): Promise<NodeFile> {
  const cluster_id = of.cluster_id.toString('hex')
  // A file that was opened alone has gone on without the cluster.
  if ((await readLogMark(path)) !== undefined) throw ofNoCluster(path)
  const stored = tree.get(manifest_key)
  const mark = readNodeMark(tree)
  if (mark !== undefined && stored !== undefined) {
    const is_same = mark.cluster_id === cluster_id && mark.partition === of.partition
    if (!is_same || !decodeManifest(stored).id.equals(of.log_id)) throw ofAnotherCluster(path)
    return { mark, manifest: decodeManifest(stored) }
  }
  for (const _ of tree.range('', '\xff', false)) throw ofNoCluster(path)
  const file_id = bytes(file_id_bytes).toString('hex')
  const made = { cluster_id, partition: of.partition, file_id, is_loading: false }
  const manifest = { id: of.log_id, seq: 0, is_open: true }
  await writeNodeFile(tree, { mark: made, manifest })
  return { mark: made, manifest }
}

export function writeNodeFile(tree: LmdbTree, { mark, manifest }: NodeFile): Promise<void> {
  const changes = changesOf([
    [node_mark_key, encodeNodeMark(mark)],
    [manifest_key, encodeManifest(manifest)],
  ])
  return tree.write({ frames: [frameOf(changes)] })
}

/** Of what a node has: what distinguishes it from the frames of a log that was set back. */
export type LastFrame = Pick<Manifest, 'seq' | 'last_crc'>

export type PlaceInLog = typeof placeInLog

/**
 * Whether following can go on at the position of the file: `behind` where the log does not reach
 * back to it any more. Throws `not_possible` where the log has another frame there, or ends before.
 */
export async function placeInLog(
  connection: Pick<Connection, 'query'>,
  partition: number,
  { seq, last_crc }: LastFrame,
  path: string,
): Promise<'there' | 'behind'> {
  const { rows } = await connection.query<{ crc: Buffer | null; first: string; last: string }>({
    text: `SELECT (SELECT substring(frame from 5 for 4) FROM conveyor.log
        WHERE partition = $1 AND seq = $2) AS crc,
      coalesce(min(seq), 0)::text AS first, coalesce(max(seq), 0)::text AS last
      FROM conveyor.log WHERE partition = $1`,
    values: [partition, seq],
  })
  const { crc = null, first = '0', last = '0' } = rows[0] ?? {}
  if (seq === 0) return Number(first) <= 1 ? 'there' : 'behind'
  if (Number(last) < seq) throw setBack(path, seq, Number(last))
  if (crc === null) return 'behind'
  if (last_crc !== undefined && crc.readUInt32BE(0) !== last_crc) throw setBack(path, seq, seq - 1)
  return 'there'
}

function setBack(path: string, seq: number, last: number): Fault {
  const says = `the database has lost what was committed after position ${last}`
  const helps = 'keep this file, and name a new one to go on with what the database has'
  return fault('not_possible', `${says}, and ${path} has it up to ${seq}: ${helps}`)
}

function ofAnotherCluster(path: string): Fault {
  const says = `${path} is the copy of a node of another cluster or partition`
  return fault('not_possible', `${says}: name a new file, or that cluster's database`)
}

function ofNoCluster(path: string): Fault {
  const says = `${path} holds data of its own and is no copy of a node`
  return fault('not_possible', `${says}: run \`npx conveyor cluster import\`, or name a new file`)
}
