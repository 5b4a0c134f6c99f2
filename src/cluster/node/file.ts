/**
 * The data file of a node: a cache of the commit log. Its mark names the cluster and partition, its
 * manifest the position. A node follows from there if the log has the same frame at that position;
 * otherwise the log was set back.
 */
import { readFileSync, statSync } from 'node:fs'
import type { Clock } from '../../core/clock.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { changesOf } from '../../store/changes/change-buffer.ts'
import { frameOf } from '../../store/commit-log/checkpoint.ts'
import type { CommitLog } from '../../store/commit-log/commit-log.ts'
import { type Frame, frameCrc } from '../../store/commit-log/frame.ts'
import { readLogMark } from '../../store/commit-log/log-mark.ts'
import {
  decodeManifest,
  encodeManifest,
  type Manifest,
  manifest_key,
} from '../../store/commit-log/manifest.ts'
import {
  encodeNodeMark,
  type NodeMark,
  node_mark_key,
  readNodeMark,
} from '../../store/commit-log/node-mark.ts'
import type { CommitLogOpening } from '../../store/commit-log/source.ts'
import { type CommitLogTree, commitLogTree } from '../../store/commit-log/tree.ts'
import { writerOver } from '../../store/commit-log/writer.ts'
import type { LmdbTree } from '../../store/lmdb/lmdb-tree.ts'
import type { Connection } from '../database/connection.ts'
import type { NodeSettings } from './settings.ts'

const file_id_bytes = 8

export interface NodeFile {
  readonly mark: NodeMark
  readonly manifest: Manifest
}

/** Marks a new file. Throws `not_possible` for a file that belongs to something else. */
export async function openNodeFile(
  tree: LmdbTree,
  path: string,
  of: { readonly cluster_id: Buffer; readonly partition: number; readonly log_id: Buffer },
  bytes: (count: number) => Buffer,
): Promise<NodeFile> {
  const cluster_id = of.cluster_id.toString('hex')
  // A file that was opened alone has changes that the cluster lacks.
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
  const file = {
    mark: { cluster_id, partition: of.partition, file_id, is_loading: false },
    manifest: { id: of.log_id, seq: 0, is_open: true },
  }
  await writeNodeFile(tree, file)
  return file
}

export function writeNodeFile(tree: LmdbTree, { mark, manifest }: NodeFile): Promise<void> {
  const changes = changesOf([
    [node_mark_key, encodeNodeMark(mark)],
    [manifest_key, encodeManifest(manifest)],
  ])
  return tree.write({ frames: [frameOf(changes)] })
}

/**
 * Tells a restart of a node from another node. Only one process at a time has the data file, so an
 * earlier process with the same identity has ended.
 */
export interface Identity {
  /** A copy of the data file has another id. */
  readonly file_id: string
  /** Of the running system; empty if it has none. */
  readonly boot_id: string
}

export function identityOf(path: string, random_id: string): Identity {
  const { dev, ino } = statSync(path)
  return { file_id: `${random_id}:${dev}:${ino}`, boot_id: bootId() }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}

/** The last frame of a node, by which it detects a log that was set back. */
export type LastFrame = Pick<Manifest, 'seq' | 'last_crc'>

/** The data file as a tree: the state in LMDB, then the frames after it from the commit log. */
export interface NodeCopy {
  readonly tree: CommitLogTree
  readonly file: NodeFile
  /** Applies frames that follow the last one. */
  take(frames: readonly Frame[]): Promise<void>
  last(): LastFrame
}

/** Closing the copy leaves the data file open. */
export function openNodeCopy(
  opening: CommitLogOpening,
  file: NodeFile,
  commit_log: CommitLog,
): NodeCopy {
  const { tree: below, path, emit, reserve_bytes, checkpoint_bytes } = opening
  const { slow_commit_ms, blocking } = opening
  const { manifest } = file
  let last: LastFrame = manifest
  const noted: CommitLog = {
    ...commit_log,
    async append(frame) {
      const write_ms = await commit_log.append(frame)
      last = { seq: frame.seq, last_crc: frameCrc(frame.arena, frame.from) }
      return write_ms
    },
  }
  const kept = { ...below, close: () => Promise.resolve() }
  const tree = commitLogTree(kept, path, manifest, writerOver(noted, manifest), {
    ...{ emit, reserve_bytes, checkpoint_bytes },
    ...(slow_commit_ms !== undefined && { slow_commit_ms }),
    ...(blocking !== undefined && { blocking }),
  })
  return {
    ...{ tree, file },
    async take(frames) {
      await tree.take(frames.map(({ bytes }) => bytes))
      const { seq, crc } = frames.at(-1) ?? { ...last, crc: last.last_crc }
      last = { seq, last_crc: crc }
    },
    last: () => last,
  }
}

export type PlaceInLog = typeof placeInLog

/**
 * Whether a node can follow from its file's position; `behind` if the log lacks the next frames.
 * Throws `not_possible` if the log has another frame there, or ends before.
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

/** Patroni demotes a suspended primary sooner. */
const stale_primary_ms_max = 20_000

/**
 * `placeInLog` for several hosts. After a failover a stale primary may answer that the log ends
 * early. So the log counts as set back only after `stale_primary_ms_max` of such answers; until
 * then the database counts as away (`overloaded`).
 */
export function newPlaceFinder({ clock, database }: NodeSettings): PlaceInLog {
  const isLasting = newPatience(clock)
  return async (connection, partition, last, path) => {
    try {
      return await placeInLog(connection, partition, last, path)
    } catch (error) {
      if (!isFault(error) || error.code !== 'not_possible') throw error
      if (database.hosts.length === 1 || isLasting()) throw error
      throw fault('overloaded', error.message, { cause: error })
    }
  }
}

/** True once calls have gone on for `stale_primary_ms_max` without a gap of that length. */
function newPatience(clock: Clock): () => boolean {
  let first_ms = Number.NEGATIVE_INFINITY
  let last_ms = Number.NEGATIVE_INFINITY
  return () => {
    const now_ms = clock.now_ms()
    if (now_ms - last_ms > stale_primary_ms_max) first_ms = now_ms
    last_ms = now_ms
    return now_ms - first_ms >= stale_primary_ms_max
  }
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
