/**
 * The history of a task as text, as its record holds it: entries are appended by concatenation and
 * parsed only on request.
 *
 *     entry   why  [time]  ['/' place]  ['@' | '=' user]  ['!' tag]
 *     why     one of the letters A to Z below; never reused
 *     time    milliseconds since the task was created, base 36; without one, that of the last entry
 *     place   of the node in the record's list of nodes, as one character
 *     user, tag: the length in UTF-16 units as one character, then the text
 *
 * An entry without a node has the node of the last one; `@` is the user who created the task. The
 * first entry always has a node and a time.
 */
import type { HistoryEntry, HistoryWhy } from '../core/model.ts'
import { placeOf } from './task-record.ts'

const letters: Readonly<Record<HistoryWhy, string>> = {
  create: 'C',
  modify: 'M',
  callback: 'B',
  go: 'G',
  timer: 'T',
  fail: 'F',
  handler: 'H',
  call: 'A',
  db: 'D',
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
export function entryText(why: HistoryWhy, since_ms: number, place?: number): string {
  const start = since_ms === -1 ? letters[why] : letters[why] + since_ms.toString(36)
  return place === undefined ? start : `${start}/${String.fromCharCode(place)}`
}

/** What follows `entryText` for an entry by a user; `user_id` is who created the task. */
export function byText(by: string, user_id: string | undefined): string {
  return by === user_id ? '@' : `=${sized(by)}`
}

/** What follows the texts above for a failure. */
export const tagText = (tag: string): string => `!${sized(tag)}`

function sized(text: string): string {
  const kept = text.length > text_chars_max ? text.slice(0, text_chars_max) : text
  return String.fromCharCode(kept.length) + kept
}

/**
 * Where the parts of the entry that was passed last begin, each up to the next one. A time and a
 * node that it lacks are those of an entry before it.
 */
const part_at = { time: 0, time_end: 0, node: 0, by: 0, tag: 0, end: 0 }

/** Notes only places: to drop an entry, nothing of it need be read. */
function passEntry(text: string, from: number): void {
  let at = from + 1
  while (isDigit(text.charCodeAt(at))) at++
  if (at > from + 1) {
    part_at.time = from + 1
    part_at.time_end = at
  }
  if (text.charCodeAt(at) === slash) {
    part_at.node = at
    at += 2
  }
  part_at.by = at
  if (text.charCodeAt(at) === equals) at = endOfPart(text, at)
  else if (text.charCodeAt(at) === at_sign) at++
  part_at.tag = at
  if (text.charCodeAt(at) === mark) at = endOfPart(text, at)
  part_at.end = at
}

/** Whether it is one of 0 to 9 and a to z. */
function isDigit(char: number): boolean {
  return (char >= 48 && char <= 57) || (char >= 97 && char <= 122)
}

/** Of a sign, a length, and a text of that length. */
function endOfPart(text: string, at: number): number {
  return at + 2 + text.charCodeAt(at + 1)
}

/** The history without its first `dropped` entries. */
export function dropEntries(text: string, dropped: number): string {
  let from = 0
  passEntry(text, from)
  for (let n = 0; n < dropped; n++) {
    from = part_at.end
    if (from >= text.length) return ''
    passEntry(text, from)
  }
  const { time, time_end, node, by } = part_at
  return (
    text.charAt(from) + text.slice(time, time_end) + text.slice(node, node + 2) + text.slice(by)
  )
}

/** The history with places in `kept`, which begins empty, of the nodes that it names. */
export function keepNodes(text: string, nodes: readonly string[], kept: string[]): string {
  let out = ''
  for (let from = 0; from < text.length; from = part_at.end) {
    passEntry(text, from)
    const { node, end } = part_at
    if (node < from) out += text.slice(from, end)
    else {
      const place = placeOf(kept, nodes[text.charCodeAt(node + 1)] as string)
      out += text.slice(from, node + 1) + String.fromCharCode(place) + text.slice(node + 2, end)
    }
  }
  return out
}

/** The entries, the oldest first. `nodes`, `create_ms` and `user_id` are of the task. */
export function parseHistory(
  text: string,
  nodes: readonly string[],
  create_ms: number,
  user_id: string | null,
): HistoryEntry[] {
  const entries: HistoryEntry[] = []
  for (let from = 0; from < text.length; from = part_at.end) {
    passEntry(text, from)
    const { time, time_end, node, by, tag, end } = part_at
    entries.push({
      node_id: nodes[text.charCodeAt(node + 1)] as string,
      at_ms: create_ms + Number.parseInt(text.slice(time, time_end), 36),
      why: whys.get(text.charAt(from)) as HistoryWhy,
      ...(by === tag
        ? {}
        : { by: text[by] === '@' ? (user_id as string) : text.slice(by + 2, tag) }),
      ...(tag === end ? {} : { tag: text.slice(tag + 2, end) }),
    })
  }
  return entries
}
