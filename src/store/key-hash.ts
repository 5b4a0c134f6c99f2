/**
 * The hash of a key, for tables of places. One seed serves the whole process, so that a key that is
 * looked for in one table after the other is hashed once. It is random, so that callers cannot
 * choose refs that meet in one slot, and nothing that anybody sees depends on it.
 */
import type { Key } from '../codec/keys.ts'
import { systemChance } from '../core/clock.ts'

const seed = systemChance.bytes(4).readInt32BE(0)

let last_key: Key = ''
let last_hash = 0

/** FNV-1a, stirred, so that its low bits depend on all of the key. */
export function hashOf(key: Key): number {
  if (key === last_key) return last_hash
  let hash = seed
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  last_key = key
  last_hash = hash ^ (hash >>> 13)
  return last_hash
}
