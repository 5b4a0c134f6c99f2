/**
 * Why a signature is not the right one: makes the signatures that the usual mistakes lead to, each
 * alone and then two together, and names those whose signature is the given one.
 *
 * The work is bounded: pairs of mistakes are tried for short bodies only.
 */
import { createHash, createHmac } from 'node:crypto'
import type { SignatureKind } from '../../core/model.ts'
import { type SignedParts, variantsOf } from './variants.ts'

/** Where a signature was found: the kind, and what is wrong; nothing where it is right. */
export interface FoundSignature {
  readonly kind: SignatureKind
  readonly mistakes: readonly string[]
}

interface Form {
  readonly says: string
  readonly kind: SignatureKind
  digest(parts: { timestamp: string; key: Buffer; body: Buffer }): Buffer
}

const pair_bytes_max = 65_536

/** Undefined where no usual mistake leads to this signature (hex in either case, or base64). */
export function findSignature(given: string, parts: SignedParts): FoundSignature | undefined {
  const wanted = given.trim()
  const hex = wanted.toLowerCase()
  const match = (digest: Buffer): string | undefined => {
    if (digest.toString('hex') === hex) return ''
    if (digest.toString('base64') === wanted) return encoded_as_base64
    if (digest.toString('base64url') === wanted.replace(/=+$/, '')) return encoded_as_base64
    return undefined
  }
  const varied = variantsOf(parts)
  const is_short = parts.body.length <= pair_bytes_max
  for (const mistakes_max of is_short ? [0, 1, 2] : [0, 1]) {
    for (const [timestamp_says, timestamp] of varied.timestamps) {
      for (const [secret_says, key] of varied.secrets) {
        for (const [body_says, body] of varied.bodies) {
          const said = [timestamp_says, secret_says, body_says].filter((says) => says !== '')
          if (said.length > mistakes_max) continue
          for (const form of forms) {
            const says = form.says === '' ? said : [...said, form.says]
            if (says.length !== mistakes_max) continue
            const found = match(form.digest({ timestamp, key, body }))
            if (found === undefined) continue
            return { kind: form.kind, mistakes: found === '' ? says : [...says, found] }
          }
        }
      }
    }
  }
  return foundInMs(parts, match)
}

const encoded_as_base64 = 'it is in base64; it must be hex'

/** The timestamp of the signature was in milliseconds: each of the thousand of its second. */
function foundInMs(
  { timestamp, secret, body }: SignedParts,
  match: (digest: Buffer) => string | undefined,
): FoundSignature | undefined {
  if (!/^[0-9]{1,10}$/.test(timestamp) || body.length > pair_bytes_max) return undefined
  const says = 'the signed timestamp was in milliseconds; sign the seconds that are sent'
  for (let ms = 0; ms < 1_000; ms++) {
    const text = `${timestamp}${String(ms).padStart(3, '0')}`
    for (const { kind, digest } of forms.filter((form) => form.says === '')) {
      const found = match(digest({ timestamp: text, key: Buffer.from(secret), body }))
      if (found !== undefined) return { kind, mistakes: [says] }
    }
  }
  return undefined
}

type Order = (timestamp: string, secret: Buffer, body: Buffer) => readonly (string | Buffer)[]

function form(kind: SignatureKind, says: string, digest: Form['digest']): Form {
  return { kind, says, digest }
}

const path = (order: Order): Form['digest'] => hashing('sha1', order)
const sha256 = (order: Order): Form['digest'] => hashing('sha256', order)

function hashing(algorithm: string, order: Order): Form['digest'] {
  return ({ timestamp, key, body }) => {
    const hash = createHash(algorithm)
    for (const part of order(timestamp, key, body)) hash.update(part)
    return hash.digest()
  }
}

function keyed(algorithm: string, order: Order): Form['digest'] {
  return ({ timestamp, key, body }) => {
    const hash = createHmac(algorithm, key)
    for (const part of order(timestamp, key, body)) hash.update(part)
    return hash.digest()
  }
}

const right_path = 'in the path it is SHA-1 of timestamp, secret, body and secret'
const right_hmac = 'in headers it is HMAC-SHA-256, keyed with the secret, of timestamp and body'

const order_path = `another order of parts; ${right_path}`
const plain_sha256 = `it is a plain SHA-256; ${right_hmac}`
const order_hmac = `another order of parts; ${right_hmac}`

// biome-ignore format: a table
const forms: readonly Form[] = [
  form('path', '', path((t, s, b) => [t, s, b, s])),
  form('hmac', '', keyed('sha256', (t, _s, b) => [t, b])),
  form('path:sha224', '', hashing('sha224', (t, s, b) => [t, s, b, s])),
  form('path:sha256', '', sha256((t, s, b) => [t, s, b, s])),
  form('path:sha384', '', hashing('sha384', (t, s, b) => [t, s, b, s])),
  form('path:sha512', '', hashing('sha512', (t, s, b) => [t, s, b, s])),
  form('path', 'the secret is missing at the end', path((t, s, b) => [t, s, b])),
  form('path', 'no secret after the timestamp', path((t, s, b) => [t, b, s])),
  form('path', 'there is no secret in it', path((t, _s, b) => [t, b])),
  form('path', 'no timestamp was signed', path((_t, s, b) => [s, b, s])),
  form('path', order_path, path((t, s, b) => [s, t, b, s])),
  form('path', order_path, path((t, s, b) => [s, b, t, s])),
  form('path', order_path, path((t, s, b) => [b, t, s])),
  form('path', `it is MD5; ${right_path}`, hashing('md5', (t, s, b) => [t, s, b, s])),
  form('hmac', `it is HMAC-SHA-1; ${right_hmac}`, keyed('sha1', (t, _s, b) => [t, b])),
  form('hmac', `it is HMAC-SHA-512; ${right_hmac}`, keyed('sha512', (t, _s, b) => [t, b])),
  form('hmac', order_hmac, keyed('sha256', (t, _s, b) => [b, t])),
  form('hmac', 'no timestamp was signed', keyed('sha256', (_t, _s, b) => [b])),
  form('hmac', plain_sha256, sha256((t, s, b) => [t, s, b])),
  form('hmac', plain_sha256, sha256((t, s, b) => [s, t, b])),
]

export function usualMistakes(parts: SignedParts): readonly string[] {
  const { timestamps, secrets, bodies } = variantsOf(parts)
  const said = [...timestamps, ...secrets, ...bodies].map(([says]) => says)
  const all = [...said, ...forms.map(({ says }) => says)].filter((says) => says !== '')
  return [...new Set(all)]
}
