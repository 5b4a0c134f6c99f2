/**
 * One text for equal JSON: keys sorted, no white space, numbers by token (wire 1.2). Two creates
 * are the same create where the digests of their data agree.
 */
import { hash } from 'node:crypto'
import stableStringify from 'fast-json-stable-stringify'
import type { JsonValue } from '../words/model.ts'

/** A NumberToken prints as a string no caller can send, so tokens and texts never meet. */
export function canonicalText(value: JsonValue): string {
  return stableStringify(value)
}

/** SHA-256 of the canonical text, 32 bytes. */
export function digestOf(value: JsonValue): Buffer {
  return hash('sha256', canonicalText(value), 'buffer')
}
