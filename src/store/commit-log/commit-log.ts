/**
 * The port behind which commits become durable: a sequence of frames with ascending numbers.
 * Implementations: two segment files beside the data file (commit-log/segments), and a table in
 * PostgreSQL (cluster/ownership/postgres-log). A round of frames fills the arena of one memtable;
 * after `rotate` the next round begins in the other.
 */
/** Its place in a memtable's arena, zero-padded to the end of its last block. */
export interface NewFrame {
  readonly arena: Buffer
  readonly from: number
  readonly end: number
  readonly seq: number
}

export interface CommitLog {
  /**
   * Resolves, with the milliseconds of the write, once the frame is durable after the last one. One
   * call at a time. Rejects with `no_space` if the frame was not written and may be appended again;
   * after any other rejection nothing more is appended.
   */
  append(frame: NewFrame): Promise<number>
  /** The next frame is at the start of the other arena. */
  rotate(): void
  /** The data file has all frames up to this position. */
  merged(to_seq: number): void
  /** A frame that ends before this position of its arena allocates nothing on the disk. */
  preallocatedBytes(): number
  /** False while the place of a refused frame must be cleared, by the next frame or `settle`. */
  isSettled(): boolean
  /** Rejects with `no_space` while the disk is full. */
  settle(): Promise<void>
  /**
   * No append follows; the last checkpoint begins. A cluster node releases the ownership here, so
   * that the next owner need not wait for the checkpoint.
   */
  end(): Promise<void>
  close(): Promise<void>
}
