/**
 * Sealing of secrets: AES-256-GCM under a 32-byte key, so that a copy of the data file alone shows
 * none of them. What is sealed is bound to its place (`about`): moved elsewhere, it does not open.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'

const nonce_bytes = 12
const tag_bytes = 16
export const encryption_key_bytes = 32

/** Base64 of nonce, tag and cipher text. `nonce` must be 12 fresh random bytes. */
export function encrypt(key: Buffer, about: string, plain: string, nonce: Buffer): string {
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(about))
  const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')
}

/** The plain text, or undefined where key, place or bytes are not those it was sealed with. */
export function decrypt(key: Buffer, about: string, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64')
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

/** 64 hex digits or base64 of 32 bytes; undefined for anything else. */
export function parseKey(text: string): Buffer | undefined {
  const trimmed = text.trim()
  const key = Buffer.from(trimmed, /^[0-9a-fA-F]{64}$/.test(trimmed) ? 'hex' : 'base64')
  return key.length === encryption_key_bytes ? key : undefined
}

export { nonce_bytes }
