/**
 * The store as the engine uses it: an ordered map from byte strings to byte strings. A transaction
 * is a synchronous function without side effects except through `tx`, and may run more than once:
 * time, ids and random bytes are arguments.
 */

import type { Key } from '../codec/keys.ts'
import type { Fault } from '../core/faults.ts'

export interface Entry {
  readonly key: Key
  readonly value: Buffer
}

export interface Range {
  /** Included. */
  readonly from: Key
  /** Excluded. */
  readonly to: Key
  readonly limit: number
  readonly reverse?: boolean
}

/** A returned Buffer is valid until the reading function returns; copy it to keep it. */
export interface View {
  get(key: Key): Buffer | undefined
  /** In key order (descending with `reverse`), at most `limit` entries. */
  scan(range: Range): Entry[]
}

export interface Tx extends View {
  /** Copies the value. */
  put(key: Key, value: Buffer): void
  del(key: Key): void
}

export interface Store {
  /**
   * Runs `fn` in a transaction; resolves with its result once its writes, and all that it read, are
   * durable. If `fn` throws, nothing is changed, and the promise rejects equally late. Rejects with
   * `no_space` on a full disk (no change), with `store_failed` after the first failed commit. While
   * the store is unavailable, a transaction that only reads or throws rejects, and others wait.
   */
  update<T>(fn: (tx: Tx) => T): Promise<T>
  /** Runs `fn` on durable state only. Rejects while the store is unavailable. */
  view<T>(fn: (view: View) => T): Promise<T>
  /**
   * The first keys of a range in the data file alone, without the changes of the commit log, so
   * that these need not be sorted.
   */
  settledKeys(range: Range): Promise<Key[]>
  /** Bytes free on the disk and in the file; undefined in memory. */
  freeBytes(): number | undefined
  /** Why the store refuses requests for now; undefined while it accepts them. */
  unavailable(): Fault | undefined
  /** As `Tree.commitLogError`. */
  readonly commitLogError: (() => string | undefined) | undefined
  /** Age of the commit under way; 0 without one. */
  commit_ms(): number
  /** Whether a checkpoint waits for the disk for longer than a commit may take. */
  isCheckpointSlow(): boolean
  /** Whether `bytes` are free; if not, and the disk is full, emits `no_space`. */
  hasRoom(bytes: number): boolean
  /** Whether the disk was full and has not regained a little more than its minimum. */
  isFull(): boolean
  /** A sentence per damaged page of the file; none in memory. */
  damage(): Promise<string[]>
  /** Writes a synced copy of the durable state to a new file, and verifies it. */
  backup(path: string): Promise<BackupFile>
  /** Costs no system call. */
  numbers(): StoreNumbers
  /** Replaces the one listener of commits. */
  onCommit(listener: CommitListener | undefined): void
  /** Waits for pending commits, then releases the file. */
  close(): Promise<void>
}

/** A damaged copy is at `path` with `.damaged` at its end. */
export interface BackupFile {
  readonly path: string
  readonly bytes: number
  readonly damage?: Damage
}

export interface Damage {
  readonly count: number
  /** A sentence for each of the first. */
  readonly says: readonly string[]
}

/** `ms` is the longest wait of a caller, `write_ms` its write and sync (0 in memory). */
export type CommitListener = (ms: number, write_ms: number) => void

/** Counts since the open. */
export interface StoreNumbers {
  readonly commits: number
  /** Undefined in memory. */
  readonly file: FileNumbers | undefined
}

export interface FileNumbers {
  /** Written by commits, to the commit log or, without one, to the data file. */
  readonly written_bytes: number
  /** Bytes in the commit log that the data file lacks. */
  readonly debt_bytes: number
  readonly checkpoints: number
  /** Total of all checkpoints. */
  readonly checkpoint_ms: number
  /** Together the size of the data file after the last checkpoint. */
  readonly used_bytes: number
  readonly reusable_bytes: number
  readonly free_bytes: number
}
