/**
 * What `openEngine` takes as `commit_log`: a commit log that is not beside the data file, and that
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
   * Resolves with the tree over the data file and this commit log; rejects with `not_possible`,
   * `older_format`, `newer_format` or `shutting_down`, and a sentence. The caller holds the lock of
   * the data file and closes `tree` if this rejects.
   */
  open(opening: CommitLogOpening): Promise<Tree>
  /** What an operator may ask of this node while it does not own the data. */
  readonly standby?: Standby
}

export interface Standby {
  /** A copy that opens alone, of what this node has, which `has` says in words. */
  backup(path: string): Promise<BackupFile & { readonly has: string }>
  /**
   * Why it does nothing else, and who does: `not_possible`, or `overloaded` while its database does
   * not answer.
   */
  refusal(): Fault
}

export interface CommitLogOpening {
  readonly tree: LmdbTree
  /** Of the data file, without symbolic links. */
  readonly path: string
  readonly emit: Emit
  /** Bytes of the disk to leave free if possible. */
  readonly reserve_bytes: number
  /** As the limit of this name. */
  readonly checkpoint_bytes: number
  readonly slow_commit_ms?: number
  /** Whether the close may block this thread; true by default. */
  readonly blocking?: boolean
  bytes(count: number): Buffer
  /**
   * What makes a new state one of the engine's; undefined if it is one. Throws where this program
   * cannot own the state: it is of another format or program.
   */
  claim(found: Pick<Tree, 'get' | 'range'>): ChangeBuffer | undefined
  /** Rejects where this node lacks the key of the secrets in the state. */
  checkKey(found: Pick<Tree, 'get' | 'range'>): Promise<void>
  /** Reads what this node has while another owns the data; undefined where nothing does. */
  readonly reads?: StandbyReads | undefined
}

/** The caller awaits each answer before it takes more. */
export interface StandbyReads {
  /** Once the copy has had all that was committed. */
  begin(copy: StandbyCopy): Promise<void>
  /** After these frames, of which reads find all. */
  taken(frames: readonly Frame[]): Promise<void>
  /** The copy is read no more once this resolves. Nothing happens where nothing has begun. */
  end(): Promise<void>
}

/** What a standby has: a state that the owner has committed, which others follow. */
export interface StandbyCopy {
  readonly tree: Pick<Tree, 'get' | 'range'>
  /** Position of the last frame in it. */
  seq(): number
  /** For so long it may not have had all that was committed. */
  age_ms(): number
  /** Who the owner is, for operators. */
  says(): string
}
