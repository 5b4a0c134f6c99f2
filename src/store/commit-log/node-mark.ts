/**
 * Marks a data file as a node's copy, whose commit log is elsewhere: a value in LMDB under a key
 * that no backup copies. Without that one the file may lack answered commits, so only explicit
 * operator commands read it or make it standalone.
 */

import { headOfEntry } from '../../codec/change-entry.ts'
import { parsePlain } from '../../codec/json.ts'
import { type Key, keysOfType, metaKey } from '../../codec/keys.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Tree } from '../tree.ts'
import { decodeManifest, manifest_key } from './manifest.ts'

export interface NodeMark {
  /** Random, in hex, per cluster and per data file. */
  readonly cluster_id: string
  readonly file_id: string
  readonly partition: number
  /** While a snapshot loads; the file is incomplete. */
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

/** Why a data file does not open without its commit log; undefined for other files. */
export function nodeFileFault(tree: Reads, path: string): Fault | undefined {
  const mark = readNodeMark(tree)
  if (mark === undefined) return undefined
  const says = `${path} is the copy of a node, and its commit log is in PostgreSQL`
  const has = mark.is_loading ? '' : `; it has ${nodeDataText(tree)}`
  const helps = 'open it with that commit log (serve --commit-log URL)'
  const copies = `\`npx conveyor backup FILE --db ${path}\` copies it`
  const frees = `\`npx conveyor cluster detach --db ${path} --commit-log URL\` lets it open alone`
  const lost = `where PostgreSQL is lost, ${copies} and ${frees}`
  const made = fault('not_possible', `${says}; ${helps}${has}; ${lost}`)
  refused.add(made)
  return made
}

const refused = new WeakSet<object>()

export function isNodeFileFault(error: object): boolean {
  return refused.has(error)
}

/** Why a node's copy yields no data; undefined if its state is complete. */
export function emptyNodeFault(tree: Reads, path: string, seq = nodeSeq(tree)): Fault | undefined {
  const is_loading = readNodeMark(tree)?.is_loading === true
  if (!is_loading && seq > 0) return undefined
  const has = is_loading ? 'a part of a snapshot, which it was loading' : 'no data yet'
  const helps = 'start it with its database, or take the data file of another node'
  return fault('not_possible', `the node of ${path} has ${has}: ${helps}`)
}

/** The position of the data file; 0 without one. */
export function nodeSeq(tree: Reads): number {
  const stored = tree.get(manifest_key)
  return stored === undefined ? 0 : decodeManifest(stored).seq
}

/** What a node has, in words, for operators to compare nodes. */
export function nodeDataText(tree: Reads, seq = nodeSeq(tree)): string {
  const { from, to } = keysOfType('change')
  let last = ''
  for (const { value } of tree.range(from, to, true)) {
    const head = headOfEntry(value)
    if (head !== undefined) last = `, the last change at ${new Date(head.at_ms).toISOString()}`
    break
  }
  return `all up to position ${seq}${last}`
}

type Reads = Pick<Tree, 'get' | 'range'>
