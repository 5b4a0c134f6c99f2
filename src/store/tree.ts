/**
 * The interface below group commit: a durable ordered map with one commit at a time.
 * Implementations: memory-tree, lmdb/tree (reads, and the commits of a checkpoint) and
 * commit-log/tree (a commit log in front of LMDB).
 */
import type { Key } from '../codec/keys.ts'
import { type Fault, fault } from '../core/faults.ts'
import type { ChangeBuffer } from './changes/change-buffer.ts'
import type { BackupFile, Entry, FileNumbers } from './store.ts'

export interface Tree {
  get(key: Key): Buffer | undefined
  /** Lazy, in key order, `from` included and `to` excluded. */
  range(from: Key, to: Key, reverse: boolean): Iterable<Entry>
  /** Of a tree with changes in memory over another tree: both. */
  parts?(): TreeParts
  /**
   * Atomic; durable when it resolves. The buffer must not change meanwhile. Rejects with `no_space`
   * if nothing was written; after any other error the outcome is unknown.
   */
  commit(changes: ChangeBuffer): Promise<void>
  /** Called once, with the cause, when no further commit is possible. */
  onBroken?(callback: (cause: unknown) => void): void
  /** Emits the event of such a cause; default `store_failed`, the event of a disk. */
  emitBroken?(cause: unknown): void
  /**
   * Why reads and new requests are refused for now: another process may own the data. Accepted ones
   * may still be committed.
   */
  unavailable?(): Fault | undefined
  /** Why a remote commit log cannot be reached now. */
  commitLogError?(): string | undefined
  /** Closing: gives up a commit whose outcome stays unknown for `ms`, so callers do not wait. */
  endWithin?(ms: number): void
  /** On the disk and in the file; undefined in memory. */
  freeBytes(): number | undefined
  /** Whether a checkpoint's commit is slow; commits continue meanwhile. */
  isCheckpointSlow?(): boolean
  /** Of the last commit, with its sync. */
  write_ms?(): number
  numbers?(): FileNumbers
  /** A sentence per damaged page of the file. */
  damage?(): Promise<string[]>
  backup(path: string): Promise<BackupFile>
  close(): Promise<void>
}

export interface TreeParts {
  /** Changes that are only in memory. */
  readonly newer: readonly ChangeBuffer[]
  readonly below: Pick<Tree, 'range'>
}

/** LMDB's limit with 4 KiB pages, in every tree, so that memory behaves like the disk. */
export const key_bytes_max = 1978

/** Throws `internal_error` for a key too long for a tree. The API's limits exclude it. */
export function checkKeyBytes(bytes: number): void {
  if (bytes > 0 && bytes <= key_bytes_max) return
  throw fault('internal_error', `a key of ${bytes} bytes; it takes 1 to ${key_bytes_max}`)
}
