/**
 * How long a key may be. The bound is LMDB's with pages of 4 KiB; every tree has it, so that what
 * runs in memory also runs on disk.
 *
 * Limits at the doors keep keys far below it. A key over it is a mistake in the program, told
 * before anything of its transaction is written.
 */
import type { Key } from '../codec/keys.ts'
import { fault } from '../core/faults.ts'

export const key_bytes_max = 1978

/** Throws `internal_error` for a key that no tree can hold. */
export function checkKeySize(key: Key): void {
  checkKeyBytes(key.length)
}

export function checkKeyBytes(bytes: number): void {
  if (bytes > 0 && bytes <= key_bytes_max) return
  throw fault('internal_error', `a key of ${bytes} bytes; it takes 1 to ${key_bytes_max}`)
}
