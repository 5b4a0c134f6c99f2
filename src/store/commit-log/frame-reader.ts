/** Reads the frames of a commit log behind the commits, which it does not delay. */
import type { CommitLogWriter } from './writer.ts'

export interface FrameReader {
  /** Of the commit log. */
  readonly id: Buffer
  /** Bytes of frames that `onNew` has not had. */
  unread_bytes(): number
  /** Also called before frames leave memory. */
  read(): void
  /** Bytes that were written without a frame, because the disk lacked room for one. */
  unlogged(): number
}

/** `onNew` gets copies of durable frames, each once and in order. */
export type OnNewFrames = (frames: readonly Buffer[]) => void

export function newFrameReader(
  id: Buffer,
  commitLog: () => CommitLogWriter | undefined,
  unlogged: () => number,
  onNew: OnNewFrames,
): FrameReader {
  let read_bytes = 0
  return {
    id,
    unread_bytes: () => (commitLog()?.writtenBytes() ?? 0) - read_bytes,
    read() {
      read_bytes = commitLog()?.writtenBytes() ?? 0
      const frames = commitLog()?.newFrames() ?? []
      if (frames.length > 0) onNew(frames)
    },
    unlogged,
  }
}
