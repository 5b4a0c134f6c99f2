/**
 * The types of the data file in the engine's process, which reads by LMDB while another process
 * writes. They do not need the package `lmdb`.
 */
import type { Key } from '../../codec/keys.ts'
import type { Tree } from '../tree.ts'

export interface LmdbReads extends Pick<Tree, 'get' | 'range' | 'backup' | 'close'> {
  /** Makes commits of another process visible. */
  refresh(): void
  freeBytes(): number
  usage(): FileUsage
  /** False if the opening found the last commit without sums of its pages. */
  readonly has_last_sums: boolean
  /** A sentence per damaged page; no commit may run meanwhile. */
  damage(): Promise<string[]>
  /**
   * While a large file is compared with its sums: resolves at its end, rejects with `store_failed`
   * for damage. No commit may run before.
   */
  verified(): Promise<void> | undefined
}

export interface LmdbTree extends LmdbReads {
  /**
   * Durable and visible when it resolves; `onCommit` follows each commit but the last. Rejects with
   * `no_space` on a full disk, and may be repeated then. One at a time.
   */
  write(job: WriteJob, onCommit?: () => void): Promise<void>
}

export interface WritableTree extends LmdbReads {
  /**
   * Durable when it returns. `fill` is synchronous; its keys must pass `checkKeyBytes`. Throws
   * `no_space` if nothing was written on a full disk, or the error of LMDB. With `goes_on` a later
   * commit writes the sums of pages.
   */
  commit(fill: (writer: LmdbWriter) => void, goes_on?: boolean): void
}

/** Changes for the data file, the last of each key. */
export interface WriteJob {
  /** Whole frames, in order. */
  readonly frames: readonly Buffer[]
  /** Checked against the frames of a commit log. */
  readonly commit_log?: {
    readonly id: Buffer
    readonly first_seq: number
    readonly last_seq: number
  }
  /** For the last commit. */
  readonly manifest?: { readonly id: Buffer; readonly seq: number; readonly is_open: boolean }
  /** A later job brings the sums of pages up to date. */
  readonly goes_on?: boolean
  /** The bounds of one commit; default a single commit. */
  readonly slice?: { readonly changes_max: number; readonly bytes_max: number }
}

/** As of the last write or `refresh`. */
export interface FileUsage {
  readonly used_bytes: number
  /** In pages that later commits reuse. */
  readonly reusable_bytes: number
  readonly end_bytes: number
}

export interface LmdbWriter {
  /** `null` deletes the key. */
  put(key: Key, value: Buffer | null): void
  /** The value follows its key in the arena, which must not change; -1 bytes delete the key. */
  putSlice(arena: Buffer, key_from: number, key_bytes: number, value_bytes: number): void
}
