/**
 * The store as the engine uses it: an ordered map from byte strings to byte strings, changed by
 * transactions. A transaction is a synchronous function without side effects except through `tx`,
 * and may run more than once: time, ids and random bytes are arguments.
 */

import type { Key } from '../codec/keys.ts'
import type { Fault } from '../core/faults.ts'

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
   * are durable. If `fn` throws, nothing is changed and the promise rejects with that, as late as
   * it would have resolved. Rejects with `no_space` on a full disk (nothing is changed), and with
   * `store_failed` from the first failed commit on. While the store is unavailable a transaction
   * that only reads or throws rejects with the reason, and one that writes waits.
   */
  update<T>(fn: (tx: Tx) => T): Promise<T>
  /** Runs `fn` on durable state only. Rejects with the reason while the store is unavailable. */
  view<T>(fn: (view: View) => T): Promise<T>
  /**
   * The first keys of a range in the data file alone: those that only the commit log has yet are
   * missing, and those that were deleted since are there. So no recent changes have to be sorted.
   */
  settledKeys(range: Range): Promise<Key[]>
  /** Free bytes on the disk and in the file; undefined for a store in memory. */
  freeBytes(): number | undefined
  /** Why the store takes nothing now and may again later, of itself; undefined while it does. */
  unavailable(): Fault | undefined
  /** As that of its tree (tree.ts). */
  readonly commitLogError: (() => string | undefined) | undefined
  /** For how long a commit is under way; 0 where none is. */
  commit_ms(): number
  /** Whether a checkpoint waits for the disk for longer than a commit may take. */
  isCheckpointSlow(): boolean
  /** Whether so many are free; if not, and the disk is full, emits `no_space`. */
  hasRoom(bytes: number): boolean
  /** Whether the disk was full, and not much more is free than requests need at least. */
  isFull(): boolean
  /** A sentence for each page of the file that is not what was written; none in memory. */
  damage(): Promise<string[]>
  /** Writes a synced copy of the durable state to a new file, and reads it back. */
  backup(path: string): Promise<BackupFile>
  /** As of now; costs no system call. */
  numbers(): StoreNumbers
  /** Calls the listener after each commit; one at a time, no one by default. */
  onCommit(listener: CommitListener | undefined): void
  /** Waits for pending commits, then releases the file. */
  close(): Promise<void>
}

/** A copy. One with damage is at `path` with `.damaged` at its end. */
export interface BackupFile {
  readonly path: string
  readonly bytes: number
  readonly damage?: Damage
}

export interface Damage {
  /** Of damaged pages and records. */
  readonly count: number
  /** A sentence for each of the first. */
  readonly says: readonly string[]
}

/**
 * `ms` is the longest that a caller has waited for the commit; `write_ms` of it were the write and
 * its sync, 0 in memory.
 */
export type CommitListener = (ms: number, write_ms: number) => void

/** Counts are since the open. */
export interface StoreNumbers {
  readonly commits: number
  /** Undefined for a store in memory. */
  readonly file: FileNumbers | undefined
}

export interface FileNumbers {
  /** What commits have written, in the commit log or, without one, into the data file. */
  readonly written_bytes: number
  /** Bytes in the commit log that the data file does not have yet. */
  readonly debt_bytes: number
  readonly checkpoints: number
  /** The time of all of them. */
  readonly checkpoint_ms: number
  /** Together the size of the data file after the last checkpoint. */
  readonly used_bytes: number
  readonly reusable_bytes: number
  /** Of the disk. */
  readonly free_bytes: number
}
