/**
 * The form of what signs a request (wire 1.1, 1.10): user, timestamp and signature, in the path,
 * its query or headers, and the mistakes reported for another form. The check uses forms only, so
 * no answer helps to guess a user or a secret. A signature is never quoted, because the caller may
 * have sent a secret in its place.
 */
export const user_id_pattern = '[1-9][0-9]{0,15}'
export const timestamp_pattern = '[1-9][0-9]{0,9}(?:\\.[0-9]{1,9})?'
/** A SHA-1, or a SHA-2 of 224, 256, 384 or 512 bits. */
export const path_signature_pattern =
  '(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{56}|[0-9a-fA-F]{64}|[0-9a-fA-F]{96}|[0-9a-fA-F]{128})'

/** Where what signs a request is. */
export type Place = 'path' | 'query' | 'hmac'

/** As received; undefined where a header is missing. */
export interface Credentials<Text = string> {
  readonly user: Text
  readonly timestamp: Text
  readonly signature: Text
}

interface Part {
  readonly form: RegExp
  readonly expected: string
  /** What a malformed text looks like; the first match counts. */
  readonly looks: readonly (readonly [RegExp, string])[]
  readonly is_quoted?: true
}

const empty = [/^$/, 'this is empty'] as const
/** Node joins repeated headers. */
const twice = [/, /, 'this header was sent twice'] as const
const signed = [/^(?:[+-]|%2b)/i, 'this has a sign'] as const
const leading_zero = [/^0/, 'this has a leading zero'] as const
const other = [/^/, 'this is no such number'] as const

const user: Part = {
  form: new RegExp(`^${user_id_pattern}$`),
  expected: 'the number of a user, such as 13000',
  is_quoted: true,
  looks: [
    empty,
    twice,
    signed,
    [/^[0-9]{17,}$/, 'this has over 16 digits'],
    [/^0[0-9]*$/, leading_zero[1]],
    [/^[^0-9]/, 'this looks like a name'],
    other,
  ],
}

const timestamp: Part = {
  form: new RegExp(`^${timestamp_pattern}$`),
  expected: 'Unix seconds',
  is_quoted: true,
  looks: [
    empty,
    twice,
    signed,
    [/^[1-9][0-9]{12}(?:\.|$)/, 'this looks like milliseconds'],
    [/^[1-9][0-9]{15}(?:\.|$)/, 'this looks like microseconds'],
    [/^[1-9][0-9]{18}(?:\.|$)/, 'this looks like nanoseconds'],
    [/^[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:[T _+]|%20|$)/i, 'this looks like a date in ISO form'],
    [/^0[0-9.]*$/, leading_zero[1]],
    [/^[0-9]+\.[0-9]*$/, 'a fraction has 1 to 9 digits'],
    [/^[0-9]+$/, 'this has over 10 digits'],
    other,
  ],
}

const hex = /^[0-9a-f]+$/i
const base64 = /^(?:(?:[\w+/-]|%2[bf]){27}|(?:[\w+/-]|%2[bf]){43})(?:=|%3d)?$/i
const not_hex = [
  twice,
  [hex, 'this has another number of them'],
  [base64, 'this looks like base64'],
  [/^/, 'this is not hex'],
] as const

const in_path: Part = {
  form: new RegExp(`^${path_signature_pattern}$`),
  expected: '40 hex digits of a SHA-1, or 56, 64, 96 or 128 of a SHA-2',
  looks: [empty, ...not_hex],
}

const signatures: Readonly<Record<Place, Part>> = {
  path: in_path,
  query: in_path,
  hmac: {
    form: /^[0-9a-fA-F]{64}$/,
    expected: '64 hex digits of an HMAC-SHA-256',
    looks: [empty, [/^[0-9a-f]{40}$/i, '40 look like the SHA-1 of a path'], ...not_hex],
  },
}

const names: Readonly<Record<Place, Credentials>> = {
  path: { user: 'user', timestamp: 'timestamp', signature: 'signature' },
  query: { user: 'user', timestamp: 'conv_time', signature: 'conv_signature' },
  hmac: { user: 'X-API-Login', timestamp: 'X-API-Timestamp', signature: 'X-API-Signature' },
}

const quoted_chars_max = 40

type Given = Credentials<string | undefined>

export function areWellFormed(given: Given, place: Place): given is Credentials {
  return (
    isOf(user, given.user) &&
    isOf(timestamp, given.timestamp) &&
    isOf(signatures[place], given.signature)
  )
}

/** The mistakes in malformed parts, for the caller. */
export function mistakesOf(given: Given, place: Place): string {
  const parts = { user, timestamp, signature: signatures[place] }
  return (['user', 'timestamp', 'signature'] as const)
    .filter((name) => !isOf(parts[name], given[name]))
    .map((name) => `${names[place][name]}: ${mistakeOf(parts[name], given[name])}`)
    .join('. ')
}

/** The mistake in the form of a timestamp; undefined if well-formed. */
export function timestampMistake(text: string): string | undefined {
  return isOf(timestamp, text) ? undefined : mistakeOf(timestamp, text)
}

function isOf({ form }: Part, text: string | undefined): boolean {
  return text !== undefined && form.test(text)
}

function mistakeOf({ expected, looks, is_quoted }: Part, text: string | undefined): string {
  if (text === undefined) return `${expected}; this header is missing`
  const [, look] = looks.find(([pattern]) => pattern.test(text)) ?? other
  const quote = is_quoted && text !== '' ? `: ${JSON.stringify(cut(text))}` : ''
  return `${expected}; ${look}${quote}`
}

function cut(text: string): string {
  return text.length > quoted_chars_max ? `${text.slice(0, quoted_chars_max)}…` : text
}
