/**
 * The interface below group commit: a durable ordered map that takes one commit at a time. It has
 * three implementations: memory-tree, lmdb/tree (reads, and the commits of a checkpoint) and
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
  /** Of a tree that lays changes in memory over another one: both, apart. */
  parts?(): TreeParts
  /**
   * Resolves when all changes are on disk, atomically; the buffer must not change meanwhile.
   * Rejects with `no_space` if nothing was written; after any other error the outcome is unknown.
   */
  commit(changes: ChangeBuffer): Promise<void>
  /** Calls back once, with the cause, when no further commit is possible. */
  onBroken?(callback: (cause: unknown) => void): void
  /** Emits the event of such a cause; without it that is `store_failed`, the event of a disk. */
  emitBroken?(cause: unknown): void
  /**
   * Why nothing may be read, and nothing new be taken, for a while: another process may own the
   * data by now. What was taken already may still be committed.
   */
  unavailable?(): Fault | undefined
  /** Where the commit log is not on this machine: why it cannot be reached now, if it cannot. */
  commitLogError?(): string | undefined
  /**
   * The close begins: a commit whose outcome cannot be found out within so long is given up then,
   * so that no caller waits for it.
   */
  endWithin?(ms: number): void
  /** Free bytes on the disk and in the file; undefined for a tree in memory. */
  freeBytes(): number | undefined
  /** Whether a commit of a checkpoint takes long; commits go on meanwhile. */
  isCheckpointSlow?(): boolean
  /** How long the write of the last commit took, with its sync. */
  write_ms?(): number
  numbers?(): FileNumbers
  /** A sentence for each page of the file that is not what was written. */
  damage?(): Promise<string[]>
  backup(path: string): Promise<BackupFile>
  close(): Promise<void>
}

export interface TreeParts {
  /** The changes that are in memory alone so far. */
  readonly newer: readonly ChangeBuffer[]
  readonly below: Pick<Tree, 'range'>
}

/** LMDB's limit with 4 KiB pages. Every tree has it, so that memory behaves as the disk does. */
export const key_bytes_max = 1978

/** Throws `internal_error` for a key that no tree can hold. The limits of the API exclude it. */
export function checkKeyBytes(bytes: number): void {
  if (bytes > 0 && bytes <= key_bytes_max) return
  throw fault('internal_error', `a key of ${bytes} bytes; it takes 1 to ${key_bytes_max}`)
}
