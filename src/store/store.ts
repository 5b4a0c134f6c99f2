/**
 * The store as the engine uses it: an ordered map from byte strings to byte strings, changed by
 * transactions.
 *
 * A transaction is a synchronous function without side effects except through `tx`, and may run
 * more than once: time, ids and random bytes are arguments. So a remote store could implement this
 * interface: it would run the function on a snapshot, fetch missing keys and run it again.
 */

import type { Key } from '../codec/keys.ts'

export interface Entry {
  readonly key: Key
  readonly value: Buffer
}

export interface Range {
  /** First key, included. */
  readonly from: Key
  /** End, excluded. */
  readonly to: Key
  readonly limit: number
  readonly reverse?: boolean
}

/** Reads. A returned Buffer is valid until the reading function returns; copy it to keep it. */
export interface View {
  get(key: Key): Buffer | undefined
  /** In key order (descending with `reverse`), at most `limit` entries. */
  scan(range: Range): Entry[]
}

export interface Tx extends View {
  /** Copies the value: the caller may reuse the buffer. */
  put(key: Key, value: Buffer): void
  del(key: Key): void
}

export interface Store {
  /**
   * Runs `fn` in a transaction and resolves with its result when its writes, and all that it read,
   * are durable. If `fn` throws, the promise rejects and nothing is changed. Rejects with
   * `no_space` on a full disk (nothing is changed), and with `store_failed` from the first failed
   * commit on.
   */
  update<T>(fn: (tx: Tx) => T): Promise<T>
  /** Runs `fn` on durable state only. */
  view<T>(fn: (view: View) => T): Promise<T>
  /** How many commits have succeeded. */
  commitCount(): number
  /** Free bytes on the disk and in the file; undefined for a store in memory. */
  freeBytes(): number | undefined
  /** Writes a synced copy of the durable state to a new file; returns its size in bytes. */
  backup(path: string): Promise<number>
  /** Waits for pending commits, then releases the file. */
  close(): Promise<void>
}
