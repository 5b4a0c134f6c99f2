/**
 * The key table of the data file. A key is one byte for its type, then the parts listed here, so
 * that any ordered key-value store can hold them. No other file builds a key, and `check` verifies
 * the invariants listed here. Numbers of types are never reused.
 *
 * | no | type        | after the first byte    | value           | invariant
 * |----|-------------|-------------------------|-----------------|---------------------------------
 * | 01 | meta        | name                    | by name         | format and file id exist
 * | 02 | user        | user                    | user record     |
 * | 03 | secret      | user, n (4)             | secret record   | of user, webhook, addresses
 * | 04 | certificate | name                    | whom it acts as | a user, all or nobody
 * | 05 | grant       | user, conv              | bits (1)        | names a user
 * | 06 | process     | conv                    | process record  | its version is stored
 * | 07 | version     | conv, n (4)             | definition text | names a process
 * | 08 | task        | task (12)               | task record     | readable; in a process if live
 * | 09 | ref         | conv, ref               | task (12)       | live, or the newest ended one
 * | 0a | at_node     | conv, node, task (12)   | –               | of a live task; each has one
 * | 0b | due         | conv, ms (8), task (12) | –               | of a live task; each has one
 * | 0c | ended       | conv, ms (8), task (12) | –               | of an ended task; each has one
 * | 0d | node_count  | conv, node              | count by status | tasks there; none if all are 0
 * | 0e | replay      | how, s (4), user, id    | replay record   | of a known kind; readable
 * | 0f | outbox      | ms (8), task (12)       | –               | of a task with a job; each is
 * | 10 | queue       | conv, node, ms (8), id  | –               | of a queued task; each is
 * | 11 | sum         | conv, node, name        | double (8)      | names a process
 * | 12 | alias       | name, without @         | conv            | a name and a conv
 * | 13 | variable    | name, without @         | JSON text       | a name and a value
 * | 14 | change      | n (8)                   | change entry    | with the one before; numbered on
 * | 15 | schedule    | id                      | schedule record | due later than its last task
 * | 16 | failed      | conv, ms (8), task (12) | –               | of a failed task; each has one
 * | 17 | bulk        | id                      | bulk record     | its place is before its end
 * | 18 | page_sum    | block (4), or nothing   | of pages (lmdb) | no scan finds it, no snapshot
 * | 19 | shape       | conv, n (4)             | shape of data   | n is made of the shape
 * | 1a | draft       | conv, user or nothing   | draft record    | of a process and, if named, user
 * | 1b | draft_node  | conv, user, node        | change, as JSON | of a draft
 * | 1c | limit       | conv, node, name, value | numbers, JSON   | counts its slots
 * | 1d | slot        | limit, n (8), task (12) | –               | task_slot says the same
 * | 1e | task_slot   | task (12), node, name   | value and n     | of a live task; its slot is
 * | 1f | limit_next  | conv                    | limit or empty  | of a process
 * | 20 | limit_due   | ms (8), limit           | –               | of a limit, which has it
 * Sizes in bytes are in parentheses; numbers are big-endian, text is UTF-8. A text that something
 * follows ends with 00, and a 00 in it is written 00 ff. What follows never begins with ff, so keys
 * sort as their texts do. The ms of an ended or a failed task is its change time.
 */
import { id_bytes, idBytes, idHex } from './ids.ts'

/** The bytes of a key, one character (U+0000 to U+00FF) each, so that `<` is byte order. */
export type Key = string

export const key_types = {
  meta: 0x01,
  user: 0x02,
  secret: 0x03,
  certificate: 0x04,
  grant: 0x05,
  process: 0x06,
  version: 0x07,
  task: 0x08,
  ref: 0x09,
  at_node: 0x0a,
  due: 0x0b,
  ended: 0x0c,
  node_count: 0x0d,
  replay: 0x0e,
  outbox: 0x0f,
  queue: 0x10,
  sum: 0x11,
  alias: 0x12,
  variable: 0x13,
  change: 0x14,
  schedule: 0x15,
  failed: 0x16,
  bulk: 0x17,
  page_sum: 0x18,
  shape: 0x19,
  draft: 0x1a,
  draft_node: 0x1b,
  limit: 0x1c,
  slot: 0x1d,
  task_slot: 0x1e,
  limit_next: 0x1f,
  limit_due: 0x20,
} as const

export type KeyType = keyof typeof key_types

const prefix = Object.fromEntries(
  Object.entries(key_types).map(([name, number]) => [name, String.fromCharCode(number)]),
) as Record<KeyType, string>

export const metaKey = (name: string): Key => prefix.meta + utf8(name)
export const userKey = (user: string): Key => prefix.user + utf8(user)
export const secretKey = (user: string, n: number): Key => prefix.secret + part(user) + u32(n)
/** In place of a user: the secret from which addresses are derived (engine/addresses). */
export const address_secret = '0'
export const certificateKey = (name: string): Key => prefix.certificate + utf8(name)
export const grantKey = (user: string, conv: string): Key => prefix.grant + part(user) + utf8(conv)
export const processKey = (conv: string): Key => prefix.process + utf8(conv)
export const versionKey = (conv: string, n: number): Key => prefix.version + part(conv) + u32(n)
export const taskKey = (obj_id: string): Key => prefix.task + idBytes(obj_id)
export const refKey = (conv: string, ref: string): Key => prefix.ref + part(conv) + utf8(ref)
export const atNodeKey = (conv: string, node: string, obj_id: string): Key =>
  prefix.at_node + part(conv) + part(node) + idBytes(obj_id)
export const dueKey = (conv: string, due_ms: number, obj_id: string): Key =>
  prefix.due + part(conv) + u64(due_ms) + idBytes(obj_id)
export const endedKey = (conv: string, ended_ms: number, obj_id: string): Key =>
  prefix.ended + part(conv) + u64(ended_ms) + idBytes(obj_id)
export const failedKey = (conv: string, change_ms: number, obj_id: string): Key =>
  prefix.failed + part(conv) + u64(change_ms) + idBytes(obj_id)
export const nodeCountKey = (conv: string, node: string): Key =>
  prefix.node_count + part(conv) + utf8(node)
export const outboxKey = (at_ms: number, obj_id: string): Key =>
  prefix.outbox + u64(at_ms) + idBytes(obj_id)
export const queueKey = (conv: string, node: string, since_ms: number, obj_id: string): Key =>
  prefix.queue + part(conv) + part(node) + u64(since_ms) + idBytes(obj_id)
export const sumKey = (conv: string, node: string, name: string): Key =>
  prefix.sum + part(conv) + part(node) + utf8(name)
export const aliasKey = (name: string): Key => prefix.alias + utf8(name)
export const changeKey = (n: number): Key => prefix.change + u64(n)
export const variableKey = (name: string): Key => prefix.variable + utf8(name)
export const shapeKey = (conv: string, n: number): Key => prefix.shape + part(conv) + u32(n)
export const draftKey = (conv: string, user: string): Key => prefix.draft + part(conv) + utf8(user)
/** An empty node is the rest of the definition. */
export const draftNodeKey = (conv: string, user: string, node: string): Key =>
  prefix.draft_node + part(conv) + part(user) + utf8(node)
export const bulkKey = (id: string): Key => prefix.bulk + utf8(id)
/** `name` is the limit in its node, `value` what the data of a task gave for its key. */
export type LimitPlace = Readonly<Record<'conv' | 'node' | 'name' | 'value', string>>
const placePart = ({ conv, node, name }: LimitPlace): string => part(conv) + part(node) + part(name)
export const limitKey = (place: LimitPlace): Key =>
  prefix.limit + placePart(place) + utf8(place.value)
/** `n`: 0 for a task that holds a slot, else its place in line. */
export const slotKey = (place: LimitPlace, n: number, obj_id: string): Key =>
  slotsPart(place) + u64(n) + idBytes(obj_id)
const slotsPart = (place: LimitPlace): string =>
  prefix.slot + placePart(place) + newPart(place.value)
export const taskSlotKey = (obj_id: string, node: string, name: string): Key =>
  prefix.task_slot + idBytes(obj_id) + part(node) + utf8(name)
export const limitDueKey = (ms: number, place: LimitPlace): Key =>
  prefix.limit_due + u64(ms) + limitKey(place).slice(1)
export const limitNextKey = (conv: string): Key => prefix.limit_next + utf8(conv)
export const scheduleKey = (id: string): Key => prefix.schedule + utf8(id)
export const pageSumKey = (n?: number): Key => prefix.page_sum + (n === undefined ? '' : u32(n))

const types = new Map<number, KeyType>(
  Object.entries(key_types).map(([name, number]) => [number, name as KeyType]),
)
/** Undefined for bytes that are no key of ours. */
export const typeOfKey = (key: Key): KeyType | undefined => types.get(key.charCodeAt(0))

/**
 * What the seconds of a replay key are. `_at`: the time that its request names, so neighbours in
 * time are neighbours in the file. `_in`: the beginning of the period in which the request came,
 * without a time near ours. `id`: 12 bytes of a signature, or 16 of a UUID or a key's hash.
 */
export const replay_kinds = { signed_at: 1, signed_in: 2, keyed_at: 3, keyed_in: 4 } as const
export type ReplayKind = keyof typeof replay_kinds

const replayPrefix = (kind: ReplayKind): string =>
  prefix.replay + String.fromCharCode(replay_kinds[kind])

export const replayKey = (
  kind: ReplayKind,
  time_s: number,
  user: string | undefined,
  id: string,
): Key => replayPrefix(kind) + u32(time_s) + part(user ?? '') + id

/** Keys in order: `from` included, `to` excluded. */
export interface KeyRange {
  readonly from: Key
  readonly to: Key
}

export const keysOfType = (type: KeyType): KeyRange => rangeOfPrefix(prefix[type])
export const secretsOf = (user: string): KeyRange => rangeOfPrefix(prefix.secret + part(user))
export const grantsOf = (user: string): KeyRange => rangeOfPrefix(prefix.grant + part(user))
export const versionsOf = (conv: string): KeyRange => rangeOfPrefix(prefix.version + part(conv))
export const shapesOf = (conv: string): KeyRange => rangeOfPrefix(prefix.shape + part(conv))
export const draftsOf = (conv: string): KeyRange => rangeOfPrefix(prefix.draft + part(conv))
/** Of one user, or of all. */
export const draftNodesOf = (conv: string, user?: string): KeyRange =>
  rangeOfPrefix(prefix.draft_node + part(conv) + (user === undefined ? '' : part(user)))
export const tasksAtNodes = (conv: string): KeyRange => rangeOfPrefix(prefix.at_node + part(conv))
export const tasksAtNode = (conv: string, node: string): KeyRange =>
  rangeOfPrefix(prefix.at_node + part(conv) + part(node))
export const countsOf = (conv: string): KeyRange => rangeOfPrefix(prefix.node_count + part(conv))
/** Due keys of a process up to and including `ms`. */
export const dueUpTo = (conv: string, ms: number): KeyRange => upTo(prefix.due + part(conv), ms)
export const dueOf = (conv: string): KeyRange => rangeOfPrefix(prefix.due + part(conv))
/** Ended keys of a process up to and including `ms`. */
export const endedUpTo = (conv: string, ms: number): KeyRange => upTo(prefix.ended + part(conv), ms)
export const endedOf = (conv: string): KeyRange => rangeOfPrefix(prefix.ended + part(conv))
export const failedOf = (conv: string): KeyRange => rangeOfPrefix(prefix.failed + part(conv))
/** The ref keys of a process whose refs begin with a text. */
export const refsOf = (conv: string, begin: string): KeyRange =>
  rangeOfPrefix(prefix.ref + part(conv) + utf8(begin))
/** The keys of the processes after that of `key` in key order, for types that begin with one. */
export function keysOfNextProcess(type: KeyType, key: Key): KeyRange {
  const [conv] = readPart(key, 1)
  return { from: rangeOfPrefix(prefix[type] + part(conv)).to, to: keysOfType(type).to }
}
export const processOfPart = (key: Key): string => readPart(key, 1)[0]

/** Replay keys of a kind from one time on, up to and without another. */
export const replaysIn = (kind: ReplayKind, from_s: number, to_s: number): KeyRange => ({
  from: replayPrefix(kind) + u32(from_s),
  to: replayPrefix(kind) + u32(Math.max(from_s, Math.floor(to_s))),
})
export const replaysOf = (kind: ReplayKind): KeyRange => rangeOfPrefix(replayPrefix(kind))
export const queueOf = (conv: string, node: string): KeyRange =>
  rangeOfPrefix(prefix.queue + part(conv) + part(node))
export const limitsDueUpTo = (ms: number): KeyRange => upTo(prefix.limit_due, ms)
export const limitsOf = (conv: string): KeyRange => rangeOfPrefix(prefix.limit + part(conv))
export const slotsFrom = (place: LimitPlace, n: number): KeyRange => ({
  from: slotsPart(place) + u64(n),
  to: rangeOfPrefix(slotsPart(place)).to,
})
/** Not by `rangeOfPrefix`, because an id may end with ff. */
export const taskSlotsOf = (obj_id: string): KeyRange => {
  const from = prefix.task_slot + idBytes(obj_id)
  return { from, to: `${from}\xff` }
}
export const sumsOf = (conv: string): KeyRange => rangeOfPrefix(prefix.sum + part(conv))
/** The first possible key after a key, where a scan continues. */
export const after = (key: Key): Key => `${key}\x00`

// The parts of a key. Each function takes keys of its own type only.
export const userOfKey = (key: Key): string => text(key.slice(1))
export const processOfKey = (key: Key): string => text(key.slice(1))
export const aliasOfKey = (key: Key): string => text(key.slice(1))
export const variableOfKey = (key: Key): string => text(key.slice(1))
export const bulkOfKey = (key: Key): string => text(key.slice(1))
export const scheduleOfKey = (key: Key): string => text(key.slice(1))
export const certificateOfKey = (key: Key): string => text(key.slice(1))
export const changeOfKey = (key: Key): number => readNumber(key.slice(1))
export const taskOfKey = (key: Key): string => idHex(key.slice(-id_bytes))

export function grantOfKey(key: Key): { user: string; conv: string } {
  const [user, at] = readPart(key, 1)
  return { user, conv: text(key.slice(at)) }
}

/** Of a draft, or of a node in one. */
export function draftOfKey(key: Key): { conv: string; user: string } {
  const [conv, at] = readPart(key, 1)
  const is_node = key.startsWith(prefix.draft_node)
  return { conv, user: is_node ? readPart(key, at)[0] : text(key.slice(at)) }
}

export function draftNodeOfKey(key: Key): string {
  return text(key.slice(readPart(key, readPart(key, 1)[1])[1]))
}

export function secretOfKey(key: Key): { user: string; n: number } {
  const [user, at] = readPart(key, 1)
  return { user, n: readNumber(key.slice(at, at + 4)) }
}

/** Of a version or a shape. */
export function versionOfKey(key: Key): { conv: string; n: number } {
  const [conv, at] = readPart(key, 1)
  return { conv, n: readNumber(key.slice(at, at + 4)) }
}

export function refOfKey(key: Key): { conv: string; ref: string } {
  const [conv, at] = readPart(key, 1)
  return { conv, ref: text(key.slice(at)) }
}

export function atNodeOfKey(key: Key): { conv: string; node: string; obj_id: string } {
  const [conv, at] = readPart(key, 1)
  const [node] = readPart(key, at)
  return { conv, node, obj_id: taskOfKey(key) }
}

export function nodeCountOfKey(key: Key): { conv: string; node: string } {
  const [conv, at] = readPart(key, 1)
  return { conv, node: text(key.slice(at)) }
}

export function outboxOfKey(key: Key): { ms: number; obj_id: string } {
  return { ms: readNumber(key.slice(1, 9)), obj_id: taskOfKey(key) }
}

export function sumOfKey(key: Key): { conv: string; node: string; name: string } {
  const [conv, at] = readPart(key, 1)
  const [node, name_at] = readPart(key, at)
  return { conv, node, name: text(key.slice(name_at)) }
}

export function queueOfKey(key: Key): {
  conv: string
  node: string
  since_ms: number
  obj_id: string
} {
  const [conv, at] = readPart(key, 1)
  const [node, since_at] = readPart(key, at)
  const since_ms = readNumber(key.slice(since_at, since_at + 8))
  return { conv, node, since_ms, obj_id: taskOfKey(key) }
}

export function limitOfKey(key: Key): LimitPlace {
  const { at, ...place } = readPlace(key)
  return { ...place, value: text(key.slice(at)) }
}

export function slotOfKey(key: Key): LimitPlace & { n: number; obj_id: string } {
  const { at, ...place } = readPlace(key)
  const [value, n_at] = readPart(key, at)
  return { ...place, value, n: readNumber(key.slice(n_at, n_at + 8)), obj_id: taskOfKey(key) }
}

export const limitDueOfKey = (key: Key): { ms: number; place: LimitPlace } => ({
  ...{ ms: readNumber(key.slice(1, 9)), place: limitOfKey(key.slice(8)) },
})
function readPlace(key: Key): Omit<LimitPlace, 'value'> & { at: number } {
  const [conv, node_at] = readPart(key, 1)
  const [node, name_at] = readPart(key, node_at)
  const [name, at] = readPart(key, name_at)
  return { conv, node, name, at }
}

export function taskSlotOfKey(key: Key): { obj_id: string; node: string; name: string } {
  const [node, name_at] = readPart(key, 1 + id_bytes)
  return { obj_id: idHex(key.slice(1, 1 + id_bytes)), node, name: text(key.slice(name_at)) }
}

/** `kind` is undefined for a number that has none. */
export function replayOfKey(key: Key): { kind: ReplayKind | undefined; time_s: number } {
  const number = key.charCodeAt(1)
  const kinds = Object.keys(replay_kinds) as ReplayKind[]
  const kind = kinds.find((kind) => replay_kinds[kind] === number)
  return { kind, time_s: readNumber(key.slice(2, 6)) }
}

/** Of a due, an ended or a failed key. */
export function timeOfKey(key: Key): { conv: string; ms: number; obj_id: string } {
  const [conv, at] = readPart(key, 1)
  return { conv, ms: readNumber(key.slice(at, at + 8)), obj_id: taskOfKey(key) }
}

const ascii = /^[\x01-\x7f]*$/

/** Text to its UTF-8 bytes, one character each. */
function utf8(value: string): string {
  return ascii.test(value) ? value : Buffer.from(value, 'utf8').toString('latin1')
}

/** Texts as key parts. Ids of processes, nodes and users are used again and again. */
const parts = new Map<string, string>()
const parts_max = 1_000

export function part(value: string): string {
  let known = parts.get(value)
  if (known === undefined) {
    if (parts.size >= parts_max) parts.clear()
    known = newPart(value)
    parts.set(value, known)
  }
  return known
}

const newPart = (value: string): string => `${utf8(value).replaceAll('\x00', '\x00\xff')}\x00`

export const text = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('utf8')

export function readPart(key: Key, from: number): [string, number] {
  let at = from
  for (;;) {
    at = key.indexOf('\x00', at)
    if (at === -1) throw new Error('a key has no end of a text')
    if (key.charCodeAt(at + 1) !== 0xff) break
    at += 2
  }
  return [text(key.slice(from, at).replaceAll('\x00\xff', '\x00')), at + 1]
}

function u32(value: number): string {
  return String.fromCharCode(value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255)
}

/** Whole numbers of 0 to 2^53 - 1. */
const u64 = (value: number): string => u32(Math.floor(value / 2 ** 32)) + u32(value % 2 ** 32)

function readNumber(bytes: string): number {
  let value = 0
  for (let at = 0; at < bytes.length; at++) value = value * 256 + bytes.charCodeAt(at)
  return value
}

function rangeOfPrefix(start: string): KeyRange {
  const last = start.charCodeAt(start.length - 1)
  return { from: start, to: start.slice(0, -1) + String.fromCharCode(last + 1) }
}

const upTo = (start: string, ms: number): KeyRange => ({
  ...{ from: start, to: start + u64(Math.max(0, Math.floor(ms)) + 1) },
})
