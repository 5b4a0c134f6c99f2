/**
 * THE key table: one database, one family byte in front of each key, big-endian numbers, so that
 * the same bytes serve any ordered key-value store. Numbers of families are never reused; a dead
 * family stays as `retired_…`. Nothing else in the program builds a key. `check` walks exactly the
 * invariants stated here.
 *
 * | no | family      | after the family byte   | value           | invariant
 * |----|-------------|-------------------------|-----------------|---------------------------------
 * | 01 | meta        | name                    | by name         | format and file id are there
 * | 02 | user        | user                    | user record     |
 * | 03 | secret      | user, n (4)             | sealed secret   | names a user
 * | 04 | certificate | name                    | whom it acts as | a user, all or nobody
 * | 05 | grant       | user, conv              | bits (1)        | names a user
 * | 06 | process     | conv                    | process head    | its version is stored
 * | 07 | version     | conv, n (4)             | definition text | names a process
 * | 08 | task        | task (12)               | task record     | reads back, in a process if live
 * | 09 | ref         | conv, ref               | task (12)       | of a live task; each has one
 * | 0a | at_node     | conv, node, task (12)   | –               | of a live task; each has one
 * | 0b | due         | conv, ms (8), task (12) | –               | of a live task; each has one
 * | 0c | ended       | conv, ms (8), task (12) | –               | of an ended task; each has one
 * | 0d | node_count  | conv, node              | count (8)       | live tasks there; none where 0
 * | 0e | replay      | (kept for answers)      |                 |
 * | 0f | outbox      | ms (8), task (12)       | –               | of a task with work; each is
 * | 10 | queue       | conv, node, ms (8), id  | –               | of a task in a queue; each is
 * | 11 | sum         | conv, node, name        | double (8)      | names a process
 *
 * Text is UTF-8. Where something follows it ends with 00, and a 00 inside is written 00 ff; nothing
 * that follows begins with ff, so byte order is text order. Due and ended keys come by process, so
 * that a paused process, however many timers it holds, costs the others nothing.
 */

/** A key: one character (U+0000 to U+00FF) per byte, so that `<` is byte order. */
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
} as const

export type KeyType = keyof typeof key_types

const head = Object.fromEntries(
  Object.entries(key_types).map(([name, number]) => [name, String.fromCharCode(number)]),
) as Record<KeyType, string>

export const metaKey = (name: string): Key => head.meta + utf8(name)
export const userKey = (user: string): Key => head.user + utf8(user)
export const secretKey = (user: string, n: number): Key => head.secret + part(user) + u32(n)
export const certificateKey = (name: string): Key => head.certificate + utf8(name)
export const grantKey = (user: string, conv: string): Key => head.grant + part(user) + utf8(conv)
export const processKey = (conv: string): Key => head.process + utf8(conv)
export const versionKey = (conv: string, n: number): Key => head.version + part(conv) + u32(n)
export const taskKey = (obj_id: string): Key => head.task + idBytes(obj_id)
export const refKey = (conv: string, ref: string): Key => head.ref + part(conv) + utf8(ref)
export const atNodeKey = (conv: string, node: string, obj_id: string): Key =>
  head.at_node + part(conv) + part(node) + idBytes(obj_id)
export const dueKey = (conv: string, due_ms: number, obj_id: string): Key =>
  head.due + part(conv) + u64(due_ms) + idBytes(obj_id)
export const endedKey = (conv: string, ended_ms: number, obj_id: string): Key =>
  head.ended + part(conv) + u64(ended_ms) + idBytes(obj_id)
export const nodeCountKey = (conv: string, node: string): Key =>
  head.node_count + part(conv) + utf8(node)

export const outboxKey = (at_ms: number, obj_id: string): Key =>
  head.outbox + u64(at_ms) + idBytes(obj_id)
export const queueKey = (conv: string, node: string, since_ms: number, obj_id: string): Key =>
  head.queue + part(conv) + part(node) + u64(since_ms) + idBytes(obj_id)
export const sumKey = (conv: string, node: string, name: string): Key =>
  head.sum + part(conv) + part(node) + utf8(name)

/** A part of the key space: `from` included, `to` excluded. */
export interface KeyRange {
  readonly from: Key
  readonly to: Key
}

export const keysOfType = (family: KeyType): KeyRange => rangeOfPrefix(head[family])
export const secretsOf = (user: string): KeyRange => rangeOfPrefix(head.secret + part(user))
export const grantsOf = (user: string): KeyRange => rangeOfPrefix(head.grant + part(user))
export const versionsOf = (conv: string): KeyRange => rangeOfPrefix(head.version + part(conv))
export const tasksAtNodes = (conv: string): KeyRange => rangeOfPrefix(head.at_node + part(conv))
export const tasksAtNode = (conv: string, node: string): KeyRange =>
  rangeOfPrefix(head.at_node + part(conv) + part(node))
export const countsOf = (conv: string): KeyRange => rangeOfPrefix(head.node_count + part(conv))
/** Due keys of a process up to and including `ms`. */
export const dueUpTo = (conv: string, ms: number): KeyRange => upTo(head.due + part(conv), ms)
export const dueOf = (conv: string): KeyRange => rangeOfPrefix(head.due + part(conv))
/** Ended keys of a process up to and including `ms`. */
export const endedUpTo = (conv: string, ms: number): KeyRange => upTo(head.ended + part(conv), ms)
export const endedOf = (conv: string): KeyRange => rangeOfPrefix(head.ended + part(conv))
/** All of the ended family behind those of `conv`. */
export const endedAfter = (conv: string): KeyRange => ({
  from: rangeOfPrefix(head.ended + part(conv)).to,
  to: keysOfType('ended').to,
})

export const queueOf = (conv: string, node: string): KeyRange =>
  rangeOfPrefix(head.queue + part(conv) + part(node))
export const sumsOf = (conv: string): KeyRange => rangeOfPrefix(head.sum + part(conv))

/** What follows a key in order, so that a scan can go on behind it. */
export const after = (key: Key): Key => `${key}\x00`

/** What a key says, read back; each reader takes keys of its own family only. */
export const userOfKey = (key: Key): string => text(key.slice(1))
export const processOfKey = (key: Key): string => text(key.slice(1))
export const certificateOfKey = (key: Key): string => text(key.slice(1))
export const taskOfKey = (key: Key): string => idHex(key.slice(-id_bytes))

export function grantOfKey(key: Key): { user: string; conv: string } {
  const [user, at] = readPart(key, 1)
  return { user, conv: text(key.slice(at)) }
}

export function secretOfKey(key: Key): { user: string; n: number } {
  const [user, at] = readPart(key, 1)
  return { user, n: readNumber(key.slice(at, at + 4)) }
}

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

/** Of a due or an ended key. */
export function timeOfKey(key: Key): { conv: string; ms: number; obj_id: string } {
  const [conv, at] = readPart(key, 1)
  return { conv, ms: readNumber(key.slice(at, at + 8)), obj_id: taskOfKey(key) }
}

const id_bytes = 12

/** The id last turned from one form to the other: an op builds several keys of the same task. */
let last_hex = ''
let last_bytes = ''

/** 24 hex digits to 12 bytes. */
export function idBytes(obj_id: string): string {
  if (obj_id !== last_hex) {
    last_bytes = obj_id.length === 2 * id_bytes ? bytesOfId(obj_id) : bytesOfHex(obj_id)
    last_hex = obj_id
  }
  return last_bytes
}

/** Digit by digit: three times as fast as a Buffer in between. */
function bytesOfId(hex: string): string {
  return String.fromCharCode(
    byteAt(hex, 0),
    byteAt(hex, 2),
    byteAt(hex, 4),
    byteAt(hex, 6),
    byteAt(hex, 8),
    byteAt(hex, 10),
    byteAt(hex, 12),
    byteAt(hex, 14),
    byteAt(hex, 16),
    byteAt(hex, 18),
    byteAt(hex, 20),
    byteAt(hex, 22),
  )
}

function byteAt(hex: string, at: number): number {
  return ((digitAt(hex, at) << 4) | digitAt(hex, at + 1)) & 255
}

/** Letters stand from 0x41 and 0x61 on. */
function digitAt(hex: string, at: number): number {
  const char = hex.charCodeAt(at)
  return (char & 15) + (char >> 6) * 9
}

/** What is no whole id: the end of a range, or nothing. */
function bytesOfHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1', 0, id_bytes)
}

export function idHex(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('hex')
}

/** The digits of each byte. */
const digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** What the ids made last begin with, in both forms. */
let last_head_hex = ''
let last_head_bytes = ''

/** A new id: 18 hex digits and a number of 3 bytes. */
export function newId(head_hex: string, counter: number): string {
  if (head_hex !== last_head_hex) {
    last_head_bytes = bytesOfHex(head_hex)
    last_head_hex = head_hex
  }
  const [first, second, third] = [counter >>> 16, (counter >>> 8) & 255, counter & 255]
  last_bytes = last_head_bytes + String.fromCharCode(first, second, third)
  last_hex = head_hex + digits[first] + digits[second] + digits[third]
  return last_hex
}

const id_value = Buffer.alloc(id_bytes)

/** An id as the value of a key, good until the next one is made. */
export function idValue(obj_id: string): Buffer {
  id_value.write(idBytes(obj_id), 'latin1')
  return id_value
}

export function idOfValue(value: Buffer): string {
  last_hex = value.toString('hex')
  last_bytes = value.toString('latin1')
  return last_hex
}

const ascii = /^[\x01-\x7f]*$/

/** Text to its UTF-8 bytes, one character each. */
function utf8(value: string): string {
  return ascii.test(value) ? value : Buffer.from(value, 'utf8').toString('latin1')
}

/** Ids of processes, nodes and users come again and again: as they stand in keys, by text. */
const parts = new Map<string, string>()
const parts_max = 1_000

function part(value: string): string {
  let known = parts.get(value)
  if (known === undefined) {
    if (parts.size >= parts_max) parts.clear()
    known = `${utf8(value).replaceAll('\x00', '\x00\xff')}\x00`
    parts.set(value, known)
  }
  return known
}

function text(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

function readPart(key: Key, from: number): [string, number] {
  let at = from
  for (;;) {
    at = key.indexOf('\x00', at)
    if (at === -1) throw new Error('a key without the end of its part')
    if (key.charCodeAt(at + 1) !== 0xff) break
    at += 2
  }
  return [text(key.slice(from, at).replaceAll('\x00\xff', '\x00')), at + 1]
}

function u32(value: number): string {
  return String.fromCharCode(value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255)
}

/** Whole numbers of 0 to 2^53 - 1. */
function u64(value: number): string {
  return u32(Math.floor(value / 2 ** 32)) + u32(value % 2 ** 32)
}

function readNumber(bytes: string): number {
  let value = 0
  for (let at = 0; at < bytes.length; at++) value = value * 256 + bytes.charCodeAt(at)
  return value
}

function rangeOfPrefix(prefix: string): KeyRange {
  const last = prefix.charCodeAt(prefix.length - 1)
  return { from: prefix, to: prefix.slice(0, -1) + String.fromCharCode(last + 1) }
}

function upTo(prefix: string, ms: number): KeyRange {
  return { from: prefix, to: prefix + u64(Math.max(0, Math.floor(ms)) + 1) }
}
