/** Partitions, connections and data files of nodes for the tests of snapshots. */

import type { Connection } from '../../src/cluster/database/connection.ts'
import { checkedCluster } from '../../src/cluster/database/schema.ts'
import { type NodeFile, openNodeFile } from '../../src/cluster/node/file.ts'
import { readOwnerRow } from '../../src/cluster/ownership/owner-row.ts'
import { loadSnapshot, type SnapshotLoad } from '../../src/cluster/snapshots/load.ts'
import {
  completeSnapshot,
  type SnapshotDraft,
  writeSnapshot,
} from '../../src/cluster/snapshots/rows.ts'
import { metaKey, taskKey } from '../../src/codec/keys.ts'
import { steadyClock, systemChance } from '../../src/core/clock.ts'
import { emitNothing } from '../../src/core/events.ts'
import { manifest_key } from '../../src/store/commit-log/manifest.ts'
import { node_mark_key } from '../../src/store/commit-log/node-mark.ts'
import { chunksOf } from '../../src/store/snapshots/chunk.ts'
import type { Entry } from '../../src/store/store.ts'
import { type InProcessTree, openInProcess } from './in-process-tree.ts'
import { initPartition } from './postgres-open.ts'

export const chunk_bytes = 2_000

let partitions = 0

/** A partition that a node owns in epoch 1. */
export async function ownedPartition(url: string, connection: Connection): Promise<number> {
  const partition = ++partitions
  await initPartition(url, partition)
  await connection.query({
    text: 'UPDATE conveyor.owner SET epoch = 1 WHERE partition = $1',
    values: [partition],
  })
  return partition
}

/** In key order. `mark` tells one state from another. */
export function entriesOf(count: number, mark: string): Entry[] {
  const tasks = Array.from({ length: count }, (_, n) => ({
    key: taskKey(n.toString(16).padStart(24, '0')),
    value: Buffer.from(`${mark} ${n} ${'.'.repeat(n % 97)}`),
  }))
  return [{ key: metaKey('format'), value: Buffer.from(mark) }, ...tasks]
}

export const newDraft = (partition: number, seq: number, epoch = 1): SnapshotDraft => ({
  ...{ partition, epoch, seq, last_crc: seq },
  id: systemChance.bytes(8),
})

/** `step` may end it, as a kill would. */
export async function write(
  connection: Connection,
  draft: SnapshotDraft,
  entries: readonly Entry[],
  step?: (bytes: number) => Promise<void> | void,
): Promise<void> {
  const chunks = chunksOf(entries, draft.id, chunk_bytes)
  await completeSnapshot(
    connection.query,
    draft,
    await writeSnapshot(connection, draft, chunks, step),
  )
}

/** The data file of a node, which this process writes itself. */
export interface NodeTree extends InProcessTree {
  readonly path: string
}

export async function openTree(path: string): Promise<NodeTree> {
  return { ...(await openInProcess(path)), path }
}

/** As a node does at its start. */
export async function fileOf(
  tree: NodeTree,
  connection: Connection,
  partition: number,
): Promise<NodeFile> {
  const cluster = await checkedCluster(connection)
  const log_id = (await readOwnerRow(connection, partition)).log_id
  const of = { cluster_id: cluster.id, partition, log_id }
  return openNodeFile(tree, tree.path, of, systemChance.bytes)
}

export async function load(
  tree: NodeTree,
  connection: Connection,
  partition: number,
  port: Partial<Pick<SnapshotLoad, 'onBegin' | 'onLoaded' | 'hasLeft'>> = {},
): Promise<NodeFile> {
  const file = await fileOf(tree, connection, partition)
  return loadSnapshot({
    ...{ tree, connection, partition, file, clock: steadyClock, emit: emitNothing, node: 'test' },
    ...{ onBegin() {}, onLoaded() {}, hasLeft: () => false },
    ...{ onAway() {}, onBack() {}, left: new Promise(() => {}) },
    ...port,
  })
}

/** Without what belongs to the one file. */
export function stateOf(tree: NodeTree): [string, string][] {
  const state: [string, string][] = []
  for (const { key, value } of tree.range('', '\xff', false)) {
    if (key === manifest_key || key === node_mark_key) continue
    state.push([key, Buffer.from(value).toString()])
  }
  return state
}

export const asState = (entries: readonly Entry[]): [string, string][] =>
  entries.map(({ key, value }) => [key, value.toString()])
