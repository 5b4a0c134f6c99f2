/**
 * LMDB as the commit log and its checkpoints use it: reads, and commits of this process. The types
 * stand apart from what implements them, so that they are known where the package `lmdb` is not.
 */
import type { Key } from '../../codec/keys.ts'
import type { Tree } from '../tree.ts'

export interface LmdbTree extends Pick<Tree, 'get' | 'range' | 'backup' | 'close'> {
  /**
   * Durable when it returns. `fill` is synchronous; its keys must pass `checkKeyBytes`. Throws
   * `no_space` if the disk is full and nothing was written, or the error of LMDB. Where it
   * `goes_on`, the sums of pages are left to a later commit.
   */
  commit(fill: (writer: LmdbWriter) => void, goes_on?: boolean): void
  /** Makes commits of other threads visible to reads. */
  refresh(): void
  /** Free bytes of the disk. */
  freeBytes(): number
  usage(): FileUsage
  /** A sentence for each damaged page; no commit may happen meanwhile. */
  damage(): Promise<string[]>
  /**
   * While a large file is compared with its sums: resolves when it is, and rejects with
   * `store_failed` where it is damaged. No commit may happen before.
   */
  verified(): Promise<void> | undefined
}

/** As of the last commit or `refresh`. */
export interface FileUsage {
  readonly used_bytes: number
  /** In pages that later commits reuse. */
  readonly reusable_bytes: number
}

/** Puts the changes of one commit. */
export interface LmdbWriter {
  /** `null` deletes the key. */
  put(key: Key, value: Buffer | null): void
  /** The value follows its key in the arena, which must not change; -1 bytes delete the key. */
  putSlice(arena: Buffer, key_from: number, key_bytes: number, value_bytes: number): void
}
