/**
 * The store port: an ordered map from byte strings to byte strings, changed by transactions.
 *
 * The law of `fn`: synchronous, no effect but through `tx`, and fit to be run again. Time, ids and
 * chance come in as arguments. A remote store may run it on a snapshot, fetch what was missing and
 * run it again; no caller may learn that today's stores are local.
 */

import type { Key } from '../codec/keys.ts'

export interface Entry {
  readonly key: Key
  readonly value: Buffer
}

/** An entry as a transaction changed it; `null` where it is deleted. */
export interface Change {
  readonly key: Key
  readonly value: Buffer | null
}

export interface Range {
  /** First key, included. */
  readonly from: Key
  /** End, excluded. */
  readonly to: Key
  readonly limit: number
  readonly reverse?: boolean
}

/**
 * Reads. A Buffer that comes out is good until the reading function returns; keep a copy, not it.
 */
export interface View {
  get(key: Key): Buffer | undefined
  /** In key order (descending with `reverse`), at most `limit` entries. */
  scan(range: Range): Entry[]
}

export interface Tx extends View {
  /** Copies the value: the buffer may be used again. */
  put(key: Key, value: Buffer): void
  del(key: Key): void
}

export interface Store {
  /**
   * Runs `fn` in a transaction and resolves with what it returned once that is durable, together
   * with all it read. A throw of `fn` rejects and changes nothing, and so does `no_space`, with
   * which a full disk refuses it. Rejects with `store_failed` from the first failed commit on.
   */
  update<T>(fn: (tx: Tx) => T): Promise<T>
  /** Runs `fn` on durable state only. */
  view<T>(fn: (view: View) => T): Promise<T>
  /** Bytes that the disk and the file have free; undefined where there are none. */
  room(): number | undefined
  /**
   * Writes a synced copy of the durable state to a path that does not exist yet; answers its bytes.
   */
  backup(path: string): Promise<number>
  /** Waits for what is under way, then lets go of the file. */
  close(): Promise<void>
}

/**
 * Changes of one commit: the last value of each key, `null` where it is deleted. They are good
 * until the commit has settled; whoever needs a value for longer copies it.
 */
export interface Writes extends Iterable<readonly [Key, Buffer | null]> {
  readonly size: number
  keys(): Iterable<Key>
}

/** A durable ordered map that takes one commit at a time; store/group-commit builds on it. */
export interface Tree {
  get(key: Key): Buffer | undefined
  /** Lazily, in key order; `limit` is not the tree's business. */
  range(from: Key, to: Key, reverse: boolean): Iterable<Entry>
  /**
   * Resolves when all writes are on disk, none without the others. Rejects with `no_space` where
   * nothing of it was written, with anything else when its fate is unknown.
   */
  commit(writes: Writes): Promise<void>
  /** Told, once, why no commit can be made any more, though none may have failed. */
  onBroken?(told: (cause: unknown) => void): void
  /** As `Store.room`. */
  room(): number | undefined
  backup(path: string): Promise<number>
  close(): Promise<void>
}
