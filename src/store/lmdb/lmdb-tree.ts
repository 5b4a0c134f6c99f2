/**
 * The types of the data file in the engine's process, which reads by LMDB while another process
 * writes. They need no package `lmdb`.
 */
import type { Key } from '../../codec/keys.ts'
import type { Tree } from '../tree.ts'

export interface LmdbReads extends Pick<Tree, 'get' | 'range' | 'backup' | 'close'> {
  /** Makes commits of another process visible to reads. */
  refresh(): void
  /** Free bytes of the disk. */
  freeBytes(): number
  usage(): FileUsage
  /** False where the opening found the last commit without sums of its pages. */
  readonly has_last_sums: boolean
  /** A sentence for each damaged page; no commit may happen meanwhile. */
  damage(): Promise<string[]>
  /**
   * While a large file is compared with its sums: resolves when it is, and rejects with
   * `store_failed` where it is damaged. No commit may happen before.
   */
  verified(): Promise<void> | undefined
}

export interface LmdbTree extends LmdbReads {
  /**
   * Durable, and visible to reads, when it resolves; `onCommit` is called after each commit but the
   * last. Rejects with `no_space` if the disk is full: then it may be repeated. One at a time.
   */
  write(job: WriteJob, onCommit?: () => void): Promise<void>
}

/** In the process that writes. */
export interface WritableTree extends LmdbReads {
  /**
   * Durable when it returns. `fill` is synchronous; its keys must pass `checkKeyBytes`. Throws
   * `no_space` if the disk is full and nothing was written, or the error of LMDB. Where it
   * `goes_on`, the sums of pages are left to a later commit.
   */
  commit(fill: (writer: LmdbWriter) => void, goes_on?: boolean): void
}

/** Changes that go into the data file, each key's last one. */
export interface WriteJob {
  /** Whole frames (commit-log/frame), in order. */
  readonly frames: readonly Buffer[]
  /** What they must be, if they are of a commit log. */
  readonly commit_log?: {
    readonly id: Buffer
    readonly first_seq: number
    readonly last_seq: number
  }
  /** In the last commit. */
  readonly manifest?: { readonly id: Buffer; readonly seq: number; readonly is_open: boolean }
  /** Another job follows, which brings the sums of pages up to date. */
  readonly goes_on?: boolean
  /** The bounds of one commit; without them there is one commit. */
  readonly slice?: { readonly changes_max: number; readonly bytes_max: number }
}

/** As of the last write or `refresh`. */
export interface FileUsage {
  readonly used_bytes: number
  /** In pages that later commits reuse. */
  readonly reusable_bytes: number
  /** Where the last page ends. */
  readonly end_bytes: number
}

/** Puts the changes of one commit. */
export interface LmdbWriter {
  /** `null` deletes the key. */
  put(key: Key, value: Buffer | null): void
  /** The value follows its key in the arena, which must not change; -1 bytes delete the key. */
  putSlice(arena: Buffer, key_from: number, key_bytes: number, value_bytes: number): void
}
