/**
 * The parts of a signed request as the usual mistakes make them: timestamps, secrets and bodies,
 * each with the sentence that names the mistake. Variants that are equal to the right part or to an
 * earlier one are left out, and those of a body are made up to a bounded size.
 */
import { parsePlain } from '../../codec/json.ts'

export interface SignedParts {
  readonly timestamp: string
  readonly secret: string
  readonly body: Buffer
}

/** A part as a mistake makes it, and the sentence that names the mistake; '' for the right one. */
type Variant<Part> = readonly [says: string, part: Part]

const varied_bytes_max = 1_048_576

/** Each list begins with the right part. */
export function variantsOf({ timestamp, secret, body }: SignedParts): {
  readonly timestamps: readonly Variant<string>[]
  readonly secrets: readonly Variant<Buffer>[]
  readonly bodies: readonly Variant<Buffer>[]
} {
  return {
    timestamps: distinct(timestamp, timestampVariants(timestamp), (text) => text),
    secrets: distinct(Buffer.from(secret), secretVariants(secret), bytesKey),
    bodies: distinct(body, body.length > varied_bytes_max ? [] : bodyVariants(body), bytesKey),
  }
}

const bytesKey = (bytes: Buffer): string => bytes.toString('latin1')

/** The right part, then the variants that differ from all before them. */
function distinct<Part>(
  right: Part,
  variants: readonly Variant<Part>[],
  keyOf: (part: Part) => string,
): Variant<Part>[] {
  const seen = new Set([keyOf(right)])
  const others = variants.filter(([, part]) => {
    const key = keyOf(part)
    return seen.has(key) ? false : seen.add(key)
  })
  return [['', right], ...others]
}

function timestampVariants(timestamp: string): Variant<string>[] {
  const seconds = Number(timestamp)
  const near = Number.isSafeInteger(seconds) ? [-3, -2, -1, 1, 2, 3] : []
  const offText = (by: number): string => (by > 0 ? `${by} s later` : `${-by} s earlier`)
  return [
    ['the signed timestamp had no fraction; sign what is sent', timestamp.split('.')[0] ?? ''],
    ...near.map(
      (by): Variant<string> => [
        `the signed timestamp was ${offText(by)}; make it once, and sign what is sent`,
        String(seconds + by),
      ],
    ),
  ]
}

function secretVariants(secret: string): Variant<Buffer>[] {
  const bytes = Buffer.from(secret)
  const is_hex = /^(?:[0-9a-fA-F]{2})+$/.test(secret)
  const decoded = 'the secret was decoded; it is text, used as it is'
  const encoded = 'the secret was encoded; it is text, used as it is'
  return [
    ['the secret has a line feed behind it', Buffer.from(`${secret}\n`)],
    ['the secret has a space behind it', Buffer.from(`${secret} `)],
    ['the secret has quotes around it', Buffer.from(`"${secret}"`)],
    ['the secret has quotes around it', Buffer.from(`'${secret}'`)],
    [`${encoded} (hex)`, Buffer.from(bytes.toString('hex'))],
    [`${encoded} (base64)`, Buffer.from(bytes.toString('base64'))],
    ...(is_hex ? [[`${decoded} (hex)`, Buffer.from(secret, 'hex')] as const] : []),
    [`${decoded} (base64)`, Buffer.from(secret, 'base64')],
    ['the secret is URL-encoded', Buffer.from(encodeURIComponent(secret))],
    ['the secret is in lower case', Buffer.from(secret.toLowerCase())],
    ['the secret is empty', Buffer.alloc(0)],
  ]
}

function bodyVariants(body: Buffer): Variant<Buffer>[] {
  const text = body.toString('utf8')
  const as = (says: string, made: string): Variant<Buffer> => [
    `the body was signed ${says}; sign the bytes that are sent`,
    Buffer.from(made),
  ]
  const variants = [
    as('without its line feed at the end', text.replace(/[\r\n]+$/, '')),
    as('with a line feed behind it', `${text}\n`),
    as('with a line feed behind it', `${text}\r\n`),
    as('with \\n in place of \\r\\n', text.replaceAll('\r\n', '\n')),
    as('with \\r\\n in place of \\n', text.replaceAll(/\r?\n/g, '\r\n')),
    as('without line ends', text.replaceAll(/[\r\n]/g, '')),
    as('without the spaces around it', text.trim()),
    as('without its byte order mark', text.replace(/^\ufeff/, '')),
    as('with a byte order mark', `\ufeff${text}`),
    as('URL-encoded', encodeURIComponent(text)),
    as('URL-encoded', encodeURIComponent(text).replaceAll('%20', '+')),
    as('encoded as base64', body.toString('base64')),
    as('encoded as a JSON text', JSON.stringify(text)),
    as('encoded twice as UTF-8', body.toString('latin1')),
    as('as an empty text', ''),
    as('as "[object Object]"', '[object Object]'),
  ]
  const latin1: Variant<Buffer> = [
    'the body was signed as Latin-1; sign the bytes that are sent',
    Buffer.from(text, 'latin1'),
  ]
  return [...variants, latin1, ...reserialised(text, as)]
}

function reserialised(
  text: string,
  as: (says: string, made: string) => Variant<Buffer>,
): Variant<Buffer>[] {
  let value: unknown
  let sorted: string
  try {
    value = parsePlain(text)
    sorted = JSON.stringify(withSortedKeys(value))
  } catch {
    return []
  }
  const again = (how: string): string => `serialised again, ${how}`
  const compact = JSON.stringify(value)
  const spaced = spacedJson(compact)
  return [
    as(again('without spaces'), compact),
    as(again('with spaces behind : and ,'), spaced),
    as(again('with \\u escapes'), escaped(compact)),
    as(again('with spaces and \\u escapes'), escaped(spaced)),
    as(again('with \\/'), compact.replaceAll('/', '\\/')),
    as(again('with \\/ and \\u escapes'), escaped(compact.replaceAll('/', '\\/'))),
    as(again('indented by two'), JSON.stringify(value, null, 2)),
    as(again('indented by four'), JSON.stringify(value, null, 4)),
    as(again('its keys sorted'), sorted),
    as(again('its keys sorted, with spaces'), spacedJson(sorted)),
    as(again('its keys sorted, with spaces and \\u escapes'), escaped(spacedJson(sorted))),
  ]
}

/** A space after each `:` and `,` outside strings. */
function spacedJson(compact: string): string {
  return compact.replaceAll(/"(?:[^"\\]|\\.)*"|[:,]/g, (part) =>
    part === ':' || part === ',' ? `${part} ` : part,
  )
}

function escaped(json: string): string {
  return json.replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([key, member]) => [key, withSortedKeys(member)]))
}
