/**
 * The records of drafts: one for each draft, and one for each node that it changes, so that an edit
 * costs what it changes. A draft belongs to one user and one process, and is never merged: while
 * the process has another version than the draft's base, edits and its confirm are refused, and the
 * draft stays. One that nobody has touched for a week is gone at the next look at it.
 */
import { parseStored, stringifyJson } from '../../codec/json.ts'
import {
  draftKey,
  draftNodeKey,
  draftNodeOfKey,
  draftNodesOf,
  draftOfKey,
  draftsOf,
  type KeyRange,
  keysOfType,
  userKey,
} from '../../codec/keys.ts'
import {
  type DraftRecord,
  decodeRecord,
  encodeRecord,
  type UserRecord,
} from '../../codec/records.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { JsonObject } from '../../core/model.ts'
import { nodes_max } from '../../process/definition-limits.ts'
import type { Tx, View } from '../../store/store.ts'
import type { Process } from '../transactions/catalog.ts'
import { allIn, removeAll } from '../transactions/scans.ts'

export const drafts_of_process_max = 8
export const drafts_of_user_max = 200
export const draft_bytes_max = 5 * 1024 * 1024
export const kept_ms = 7 * 86_400_000
/** An older draft of a user gives way to his next one. */
const held_ms = 86_400_000

export interface Draft {
  readonly conv_id: string
  /** Empty for the embedder. */
  readonly user: string
  readonly record: DraftRecord
  /** Of one that its first edit will store: the drafts that go then. */
  readonly replaces?: readonly Draft[]
}

/** What a draft does with one node, or with the rest of the definition. */
export interface Entry extends JsonObject {
  /** The order in which nodes were made. */
  readonly at: number
  /** `patch` changes what the base has, `whole` replaces it. */
  readonly how: 'patch' | 'whole' | 'removed'
  readonly value: JsonObject
}

/** The rest of the definition, in place of a node id. */
export const rest = ''

export function findDraft(
  view: View,
  conv_id: string,
  user: string,
  now_ms: number,
): Draft | undefined {
  const bytes = view.get(draftKey(conv_id, user))
  if (bytes === undefined) return undefined
  const record = decodeRecord<DraftRecord>(bytes)
  return isKept(record, now_ms) ? { conv_id, user, record } : undefined
}

const isKept = ({ change_ms }: DraftRecord, now_ms: number): boolean => now_ms - change_ms < kept_ms

export const draftsOfProcess = (view: View, conv_id: string, now_ms: number): Draft[] =>
  draftsIn(view, draftsOf(conv_id)).filter(({ record }) => isKept(record, now_ms))

function draftsIn(view: View, range: KeyRange): Draft[] {
  return allIn(view, range).map(({ key, value }) => {
    const { conv, user } = draftOfKey(key)
    return { conv_id: conv, user, record: decodeRecord<DraftRecord>(value) }
  })
}

export interface Opening {
  readonly user: string
  /** Undefined for the one that is open, or else the next number that is free. */
  readonly version: number | undefined
  readonly nonce: string
  readonly now_ms: number
}

/** The draft to edit, or a new one that `putEntry` stores; writes nothing. */
export function draftToEdit(
  view: View,
  { conv_id, record, graph }: Process,
  { user, version, nonce, now_ms }: Opening,
): Draft {
  const own = findDraft(view, conv_id, user, now_ms)
  if (own !== undefined && (version === undefined || own.record.version === version)) {
    requireBase(view, own, record)
    return own
  }
  const others = draftsOfProcess(view, conv_id, now_ms).filter((one) => one.user !== user)
  const taken = new Set([...others.map((one) => one.record.version), record.confirmed_draft])
  if (version !== undefined) {
    const known = versionRefused(version, { others, record })
    if (known !== undefined) throw known
  }
  if (own !== undefined) {
    if (own.record.changed > 0 && now_ms - own.record.change_ms < held_ms) {
      throw refused(`Version ${own.record.version} is open`)
    }
  }
  if (others.length >= drafts_of_process_max) {
    throw refused(`process ${conv_id} has ${drafts_of_process_max} drafts already`)
  }
  const all = draftsIn(view, keysOfType('draft'))
  const mine = all.filter((one) => one.user === user && isKept(one.record, now_ms))
  if (mine.length - (own === undefined ? 0 : 1) >= drafts_of_user_max) {
    throw refused(`you have ${drafts_of_user_max} drafts already`)
  }
  let free = version ?? Math.floor(now_ms / 1000)
  while (version === undefined && taken.has(free)) free++
  const opened: DraftRecord = {
    version: free,
    base: record.version,
    opened_ms: now_ms,
    change_ms: now_ms,
    nonce,
    edits: 0,
    nodes: graph.nodes.size,
    changed: 0,
    bytes: 0,
  }
  const is_gone = (one: Draft): boolean => !isKept(one.record, now_ms)
  const replaces = all.filter((one) => is_gone(one) || isSame(one, { conv_id, user }))
  return { conv_id, user, record: opened, replaces }
}

const isSame = (one: Pick<Draft, 'conv_id' | 'user'>, other: typeof one): boolean =>
  one.conv_id === other.conv_id && one.user === other.user

/** Why a version that is not the user's own cannot be opened; undefined where it can. */
export function versionRefused(
  version: number,
  known: { readonly others: readonly Draft[]; readonly record: Process['record'] },
): Fault | undefined {
  const other = known.others.find(({ record }) => record.version === version)
  if (other !== undefined) return refused(`Version ${version} is another user's`)
  if (known.record.confirmed_draft !== version) return undefined
  return refused(`Version ${version} is confirmed`)
}

/** Throws `draft_outdated`, naming both, where a version was confirmed since the draft began. */
export function requireBase(
  view: View,
  { record: { version, base } }: Draft,
  { version: newest, confirmed_by }: Process['record'],
): void {
  if (base === newest) return
  const bytes = confirmed_by === undefined ? undefined : view.get(userKey(confirmed_by))
  const name = bytes === undefined ? '' : decodeRecord<UserRecord>(bytes).name
  const who = confirmed_by === undefined ? '' : `user ${confirmed_by}${name && ` (${name})`} `
  const since = who === '' ? `${newest} was confirmed since` : `${who}confirmed ${newest} since`
  throw fault('draft_outdated', `Version ${version} is based on ${base}; ${since}`)
}

export const refused = (text: string): Fault => fault('not_possible', text)

export function entryOf(view: View, draft: Draft, node_id: string): Entry | undefined {
  const { conv_id, user, replaces } = draft
  if (replaces !== undefined) return undefined
  const bytes = view.get(draftNodeKey(conv_id, user, node_id))
  return bytes && decodeEntry(bytes)
}

export function entriesOf(view: View, { conv_id, user }: Draft): Map<string, Entry> {
  const all = allIn(view, draftNodesOf(conv_id, user))
  const entries = all.map(({ key, value }) => [draftNodeOfKey(key), decodeEntry(value)] as const)
  return new Map(entries.sort(([, a], [, b]) => a.at - b.at))
}

const decodeEntry = (bytes: Buffer): Entry => parseStored(bytes.toString('utf8')) as Entry

/** One edit: undefined takes back what the draft did with the node. `by` more nodes are there. */
export function putEntry(
  tx: Tx,
  draft: Draft,
  node_id: string,
  edit: { readonly entry: Omit<Entry, 'at'> | undefined; readonly by: -1 | 0 | 1 },
  now_ms: number,
): Draft {
  const { conv_id, user, record } = draft
  const key = draftNodeKey(conv_id, user, node_id)
  const old = draft.replaces === undefined ? tx.get(key) : undefined
  const old_bytes = old?.length ?? 0
  const at = old === undefined ? record.edits : decodeEntry(old).at
  const { entry } = edit
  const made = entry && Buffer.from(stringifyJson({ at, ...entry }))
  const bytes = record.bytes - old_bytes + (made?.length ?? 0)
  const nodes = record.nodes + edit.by
  if (bytes > draft_bytes_max && made !== undefined && made.length > old_bytes) {
    throw refused(`a draft has at most ${draft_bytes_max} bytes of changes, not ${bytes}`)
  }
  if (nodes > nodes_max && edit.by > 0) {
    throw refused(`a draft has at most ${nodes_max} nodes`)
  }
  const changed = record.changed + (made === undefined ? 0 : 1) - (old === undefined ? 0 : 1)
  const edits = record.edits + 1
  const next: DraftRecord = { ...record, nodes, changed, bytes, change_ms: now_ms, edits }
  for (const one of draft.replaces ?? []) dropDraft(tx, one)
  if (made === undefined) tx.del(key)
  else tx.put(key, made)
  tx.put(draftKey(conv_id, user), encodeRecord(next))
  return { conv_id, user, record: next }
}

/** Changes what the draft is based on. */
export function storeDraft(
  tx: Tx,
  { conv_id, user, record }: Draft,
  change: Pick<DraftRecord, 'base' | 'nodes'>,
  now_ms: number,
): Draft {
  const next = { ...record, ...change, change_ms: now_ms, edits: record.edits + 1 }
  tx.put(draftKey(conv_id, user), encodeRecord(next))
  return { conv_id, user, record: next }
}

export function dropDraft(tx: Tx, { conv_id, user }: Pick<Draft, 'conv_id' | 'user'>): void {
  tx.del(draftKey(conv_id, user))
  removeAll(tx, draftNodesOf(conv_id, user))
}
