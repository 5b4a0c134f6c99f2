/**
 * Encryption of secrets in the data file: AES-256-GCM with a 32-byte key that is kept elsewhere, so
 * a copy of the data file shows no secret. `about` names the record and is authenticated with the
 * secret: a secret copied into another record does not decrypt.
 */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'

export const nonce_bytes = 12
const tag_bytes = 16
export const encryption_key_bytes = 32

/** Base64 of nonce, tag and ciphertext. `nonce` must be 12 fresh random bytes. */
export function encrypt(key: Buffer, about: string, plaintext: string, nonce: Buffer): string {
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(about))
  const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')
}

/** The plaintext; undefined if the key, `about` or the bytes differ from those encrypted. */
export function decrypt(key: Buffer, about: string, encrypted: string): string | undefined {
  const bytes = Buffer.from(encrypted, 'base64')
  if (bytes.length < nonce_bytes + tag_bytes) return undefined
  const cipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonce_bytes))
  cipher.setAAD(Buffer.from(about))
  cipher.setAuthTag(bytes.subarray(nonce_bytes, nonce_bytes + tag_bytes))
  try {
    const body = bytes.subarray(nonce_bytes + tag_bytes)
    return Buffer.concat([cipher.update(body), cipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

/** A key from 64 hex digits or from base64 of 32 bytes; undefined for any other text. */
export function parseKey(text: string): Buffer | undefined {
  const trimmed = text.trim()
  // Also where it was cut short: hex digits are base64 as well, and would be another key.
  const key = Buffer.from(trimmed, /^[0-9a-fA-F]*$/.test(trimmed) ? 'hex' : 'base64')
  return key.length === encryption_key_bytes ? key : undefined
}

/** Eight hex digits that distinguish keys for people and reveal nothing of the key. */
export function keyId(key: Buffer): string {
  return createHash('sha256').update('conveyor key').update(key).digest('hex').slice(0, 8)
}
