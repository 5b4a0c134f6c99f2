/**
 * The history of a task as text, as its record holds it: entry after entry, appended by
 * concatenation and parsed only when somebody reads it.
 *
 *     entry   why  [time]  ['/' node]  ['@' | '=' user]  ['!' tag]
 *     why     one of the letters A to Z below; never reused
 *     time    milliseconds since the task was created, base 36; without one, that of the last entry
 *     node, user, tag: the length in UTF-16 units as one character, then the text
 *
 * An entry without a node is about the node of the last one; `@` is the user who created the task.
 * The first entry always has a node and a time, also after older ones were dropped.
 */
import type { HistoryEntry, HistoryWhy } from '../core/model.ts'

const letters: Readonly<Record<HistoryWhy, string>> = {
  create: 'C',
  modify: 'M',
  callback: 'B',
  go: 'G',
  timer: 'T',
  fail: 'F',
  handler: 'H',
  call: 'A',
  code: 'K',
  copy: 'Y',
  rpc: 'P',
  reply: 'R',
  queue: 'Q',
  count: 'N',
  retry: 'E',
  move: 'V',
  migrate: 'I',
  cancel: 'X',
  schedule: 'S',
}

const whys = new Map(Object.entries(letters).map(([why, letter]) => [letter, why as HistoryWhy]))

const [slash, equals, at_sign, mark] = ['/', '=', '@', '!'].map((sign) => sign.charCodeAt(0))
const text_chars_max = 255

/** `since_ms`: since the task was created; -1 for the time of the last entry. */
export function entryText(why: HistoryWhy, since_ms: number, node_id?: string): string {
  const start = since_ms === -1 ? letters[why] : letters[why] + since_ms.toString(36)
  return node_id === undefined ? start : start + nodeText(node_id)
}

/** What follows `entryText` for an entry by a user; `user_id` is who created the task. */
export function byText(by: string, user_id: string | undefined): string {
  return by === user_id ? '@' : `=${sized(by)}`
}

/** What follows the texts above for a failure. */
export const tagText = (tag: string): string => `!${sized(tag)}`

/** Ids of nodes are used again and again. */
const node_texts = new Map<string, string>()
const node_texts_max = 1_000

function nodeText(node_id: string): string {
  let known = node_texts.get(node_id)
  if (known === undefined) {
    if (node_texts.size >= node_texts_max) node_texts.clear()
    known = `/${sized(node_id)}`
    node_texts.set(node_id, known)
  }
  return known
}

function sized(text: string): string {
  const kept = text.length > text_chars_max ? text.slice(0, text_chars_max) : text
  return String.fromCharCode(kept.length) + kept
}

/** The entry that was read last; the reads below reuse it. */
interface Cursor {
  text: string
  at: number
  letter: string
  since_ms: number
  node_id: string
  /** Where the user and the tag of the entry begin. */
  rest_at: number
  by: string | undefined
  is_by_creator: boolean
  tag: string | undefined
}

const cursor: Cursor = {
  ...{ text: '', at: 0, letter: '', since_ms: 0, node_id: '', rest_at: 0 },
  ...{ by: undefined, is_by_creator: false, tag: undefined },
}

function begin(text: string): void {
  cursor.text = text
  cursor.at = 0
  cursor.since_ms = 0
  cursor.node_id = ''
}

function readEntry(): void {
  const { text } = cursor
  cursor.letter = text.charAt(cursor.at++)
  const time_at = cursor.at
  while (isDigit(text.charCodeAt(cursor.at))) cursor.at++
  if (cursor.at > time_at) cursor.since_ms = Number.parseInt(text.slice(time_at, cursor.at), 36)
  if (text.charCodeAt(cursor.at) === slash) cursor.node_id = readText()
  cursor.rest_at = cursor.at
  cursor.is_by_creator = text.charCodeAt(cursor.at) === at_sign
  if (cursor.is_by_creator) cursor.at++
  cursor.by = text.charCodeAt(cursor.at) === equals ? readText() : undefined
  cursor.tag = text.charCodeAt(cursor.at) === mark ? readText() : undefined
}

/** Whether it is one of 0 to 9 and a to z. */
function isDigit(char: number): boolean {
  return (char >= 48 && char <= 57) || (char >= 97 && char <= 122)
}

function readText(): string {
  const from = cursor.at + 2
  cursor.at = from + cursor.text.charCodeAt(from - 1)
  return cursor.text.slice(from, cursor.at)
}

/** The history without its first `dropped` entries. */
export function dropEntries(text: string, dropped: number): string {
  begin(text)
  for (let n = 0; n <= dropped; n++) {
    if (cursor.at >= text.length) return ''
    readEntry()
  }
  const { letter, since_ms, node_id, rest_at } = cursor
  return letter + since_ms.toString(36) + nodeText(node_id) + text.slice(rest_at)
}

export interface HistoryText {
  readonly history: string
  readonly create_ms: number
  readonly user_id: string | undefined
}

/** The entries, the oldest first. */
export function parseHistory({ history, create_ms, user_id }: HistoryText): HistoryEntry[] {
  const entries: HistoryEntry[] = []
  begin(history)
  while (cursor.at < history.length) {
    readEntry()
    const { letter, since_ms, node_id, tag } = cursor
    const by = cursor.is_by_creator ? user_id : cursor.by
    entries.push({
      ...{ node_id, at_ms: create_ms + since_ms, why: whys.get(letter) as HistoryWhy },
      ...(by === undefined ? {} : { by }),
      ...(tag === undefined ? {} : { tag }),
    })
  }
  return entries
}
