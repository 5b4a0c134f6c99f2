/**
 * The option `commit_log` of `openEngine`: a commit log that is not beside the data file, and that
 * other nodes may own meanwhile. Opening resolves once this node owns it.
 */
import type { Emit } from '../../core/events.ts'
import type { Fault } from '../../core/faults.ts'
import type { ChangeBuffer } from '../changes/change-buffer.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'
import type { BackupFile } from '../store.ts'
import type { Tree } from '../tree.ts'
import type { Frame } from './frame.ts'

export interface CommitLogSource {
  /**
   * Resolves with the tree over the data file and this commit log. Rejects with `not_possible`,
   * `older_format`, `newer_format` or `shutting_down`, and a sentence. The caller holds the lock of
   * the data file and closes `tree` on a rejection.
   */
  open(opening: CommitLogOpening): Promise<Tree>
  /** Operations on a node that does not own the data. */
  readonly standby?: Standby
}

export interface Standby {
  /** A standalone copy of what this node has; `has` says in words what that is. */
  backup(path: string): Promise<BackupFile & { readonly has: string }>
  /** Why it refuses the rest: `not_possible`, or `overloaded` while its database is away. */
  refusal(): Fault
}

export interface CommitLogOpening {
  readonly tree: LmdbTree
  /** The data file, without symbolic links. */
  readonly path: string
  readonly emit: Emit
  /** Bytes of the disk to leave free if possible. */
  readonly reserve_bytes: number
  readonly checkpoint_bytes: number
  readonly slow_commit_ms?: number
  /** Whether the close may block this thread; default true. */
  readonly blocking?: boolean
  bytes(count: number): Buffer
  /**
   * Makes a new state the engine's; undefined if it is already. Throws for the state of another
   * format or program.
   */
  claim(found: Pick<Tree, 'get' | 'range'>): ChangeBuffer | undefined
  /** Rejects if this node lacks the key of the secrets in the state. */
  checkKey(found: Pick<Tree, 'get' | 'range'>): Promise<void>
  /** Reads of the state while another node owns the data. */
  readonly reads?: StandbyReads | undefined
}

/** The caller awaits each call before the next. */
export interface StandbyReads {
  /** Called once the copy has had all commits. */
  begin(copy: StandbyCopy): Promise<void>
  /** Called once reads find these frames. */
  taken(frames: readonly Frame[]): Promise<void>
  /** The copy is no longer read once this resolves. A no-op before `begin`. */
  end(): Promise<void>
}

/** A state that the owner has committed; later ones follow. */
export interface StandbyCopy {
  readonly tree: Pick<Tree, 'get' | 'range'>
  /** Position of the last frame. */
  seq(): number
  /** The staleness: for how long it may have lacked commits. */
  age_ms(): number
  /** Names the owner, for operators. */
  says(): string
}
