/**
 * What says that a data file is the copy of a node, whose commit log is elsewhere: a value in LMDB
 * under a key that no backup copies. Without that commit log the file is behind what was answered,
 * so nothing else opens it.
 */

import { parsePlain } from '../../codec/json.ts'
import { type Key, metaKey } from '../../codec/keys.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Tree } from '../tree.ts'

export interface NodeMark {
  /** Random, hex. Of the cluster, and of this very data file. */
  readonly cluster_id: string
  readonly file_id: string
  readonly partition: number
  /** While a snapshot is read into the file: what it holds is not whole. */
  readonly is_loading: boolean
}

export const node_mark_key: Key = metaKey('cluster')

export function encodeNodeMark(mark: NodeMark): Buffer {
  return Buffer.from(JSON.stringify(mark))
}

export function readNodeMark(tree: Pick<Tree, 'get'>): NodeMark | undefined {
  const bytes = tree.get(node_mark_key)
  return bytes && (parsePlain(bytes.toString('utf8')) as NodeMark)
}

/** Why a data file is not opened without its commit log; undefined if it is no node's. */
export function nodeFileFault(tree: Pick<Tree, 'get'>, path: string): Fault | undefined {
  if (readNodeMark(tree) === undefined) return undefined
  const says = `${path} is the copy of a node, and its commit log is in PostgreSQL`
  const helps = 'open it with that commit log, or take a `npx conveyor backup FILE` of any node'
  return fault('not_possible', `${says}; ${helps}`)
}
