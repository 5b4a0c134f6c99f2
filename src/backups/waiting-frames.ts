/**
 * Frames that wait for the target, in memory, at most `bytes_max`: more are dropped, and only a
 * snapshot leads past the gap. Each item has the frames of one read and the time of it.
 */
import { type Frame, framesIn } from '../store/commit-log/frame.ts'

export interface WaitingPart {
  readonly bytes: Buffer
  readonly first_seq: number
  readonly last_seq: number
  readonly at_ms: number
  readonly crcs: ReadonlyMap<number, number>
}

export interface WaitingFrames {
  add(frames: readonly Buffer[], at_ms: number): void
  first(): WaitingPart | undefined
  /** The first is in the target. */
  shift(): void
  /** Drops the frames up to this position. */
  dropTo(seq: number): void
  bytes(): number
  frameAt(seq: number): Pick<Frame, 'crc'> | undefined
  /** How many times frames were dropped for lack of room. */
  overflows(): number
}

export function newWaitingFrames(bytes_max: number): WaitingFrames {
  let parts: WaitingPart[] = []
  let bytes = 0
  let overflows = 0

  function partOf(frames: readonly Frame[], at_ms: number): WaitingPart | undefined {
    const [first, last] = [frames[0], frames.at(-1)]
    if (first === undefined || last === undefined) return undefined
    return {
      bytes: Buffer.concat(frames.map((frame) => frame.bytes)),
      ...{ first_seq: first.seq, last_seq: last.seq, at_ms },
      crcs: new Map(frames.map(({ seq, crc }) => [seq, crc])),
    }
  }

  return {
    add(buffers, at_ms) {
      const frames = buffers.flatMap((buffer) => [...framesIn(buffer)])
      const part = partOf(frames, at_ms)
      if (part === undefined) return
      if (bytes + part.bytes.length > bytes_max && parts.length > 0) {
        parts = []
        bytes = 0
        overflows++
      }
      parts.push(part)
      bytes += part.bytes.length
    },
    first: () => parts[0],
    shift() {
      bytes -= parts.shift()?.bytes.length ?? 0
    },
    dropTo(seq) {
      parts = parts.flatMap((part) => {
        if (part.first_seq > seq) return [part]
        const frames = [...framesIn(part.bytes)].filter((frame) => frame.seq > seq)
        return partOf(frames, part.at_ms) ?? []
      })
      bytes = parts.reduce((sum, part) => sum + part.bytes.length, 0)
    },
    bytes: () => bytes,
    frameAt(seq) {
      for (const { crcs } of parts) {
        const crc = crcs.get(seq)
        if (crc !== undefined) return { crc }
      }
      return undefined
    },
    overflows: () => overflows,
  }
}
