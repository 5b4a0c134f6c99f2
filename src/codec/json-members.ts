/**
 * Members laid over others by their text, for what need not look at the values. Answers what the
 * way over parsed values would, to the byte, or undefined where only that way can tell.
 *
 * Takes the text of a Doc alone (codec/json): as `stringifyJson` prints it, so there is no white
 * space, a key has one spelling and comes once.
 */
import {
  backslash,
  brace_close,
  brace_open,
  bracket_close,
  bracket_open,
  comma,
  digit_0,
  digit_9,
  quote,
} from './json-chars.ts'

/** Where a member of an object stands in its text. */
interface Member {
  /** With its quotes. */
  readonly key: string
  readonly from: number
  readonly value_at: number
  /** Behind the value: the place of the comma or the brace. */
  readonly to: number
}

/**
 * The members of `patch` laid over those of `base`, neither of them empty: known keys keep their
 * place, new ones follow. A key that begins with a digit may be one that objects put in front.
 */
export function mergedText(base: string, patch: string): string | undefined {
  if (base.charCodeAt(base.length - 1) !== brace_close) return undefined
  const laid = membersOf(patch)
  for (const { key } of laid) if (isDigit(key.charCodeAt(1))) return undefined
  let out = ''
  let copied = 0
  for (const { key, value_at, to } of membersOf(base)) {
    const at = laid.findIndex((member) => member.key === key)
    if (at === -1) continue
    const [member] = laid.splice(at, 1) as [Member]
    out += base.slice(copied, value_at) + patch.slice(member.value_at, member.to)
    copied = to
  }
  out += base.slice(copied, -1)
  for (const { from, to } of laid) out += `,${patch.slice(from, to)}`
  return `${out}}`
}

function isDigit(char: number): boolean {
  return char >= digit_0 && char <= digit_9
}

/** The members of an object that is not empty. */
function membersOf(text: string): Member[] {
  const members: Member[] = []
  for (let from = 1; from < text.length; ) {
    const key_to = endOfString(text, from) + 1
    const value_at = key_to + 1
    const to = endOfValue(text, value_at)
    members.push({ key: text.slice(from, key_to), from, value_at, to })
    from = to + 1
  }
  return members
}

/** The place of the comma or the bracket behind the value at `from`. */
function endOfValue(text: string, from: number): number {
  let level = 0
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) at = endOfString(text, at)
    else if (char === comma) {
      if (level === 0) return at
    } else if (char === brace_open || char === bracket_open) level++
    else if (char === brace_close || char === bracket_close) {
      if (level === 0) return at
      level--
    }
  }
  return text.length
}

/** The place of the quote that closes the string opened at `open`; the text's end if none does. */
export function endOfString(text: string, open: number): number {
  let at = open
  for (;;) {
    at = text.indexOf('"', at + 1)
    if (at === -1) return text.length
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return at
  }
}
