/**
 * The port behind which commits become durable: a sequence of frames (commit-log/frame) with
 * ascending numbers. Implementations: the two segment files beside the data file
 * (commit-log/segments), and a table in PostgreSQL (cluster/postgres-log).
 *
 * A frame is in the arena of its memtable, and a round of frames fills one arena; after `rotate`
 * the next round begins in the other.
 */
/** A frame at its place in the arena of a memtable, with zeros up to the end of its last block. */
export interface NewFrame {
  readonly arena: Buffer
  readonly from: number
  readonly end: number
  readonly seq: number
}

export interface CommitLog {
  /**
   * The frame is durable, and follows the last one, when it resolves with the milliseconds of the
   * write. One call at a time. Rejects with `no_space` if there is no such frame: it may be
   * appended again. After any other rejection nothing more is appended.
   */
  append(frame: NewFrame): Promise<number>
  /** The next frame is at the start of the other arena. */
  rotate(): void
  /** The data file has everything up to this position. */
  merged(to_seq: number): void
  /** A frame that ends before this position of its arena takes nothing more of the disk. */
  preallocatedBytes(): number
  /** False while the place of a refused frame has to be cleared, by the next frame or `settle`. */
  isSettled(): boolean
  /** Rejects with `no_space` while the disk is still full. */
  settle(): Promise<void>
  /**
   * No append follows, and the last checkpoint begins. Where there are other nodes, this one gives
   * up the ownership here, so that the next owner need not wait for the checkpoint.
   */
  end(): Promise<void>
  close(): Promise<void>
}
