/**
 * The bounds of a commit log segment, and of one commit of a checkpoint. A larger segment costs the
 * checkpoint process less, because it writes each page once and only the last change of each key,
 * but memory and a longer close. At 64 MiB that process takes 3 to 15 % less CPU than at 32, and
 * both processes together a hundred megabytes more; the rate is the same.
 */
import { totalmem } from 'node:os'

/** Short, and large enough for neighbours to share pages. */
export interface SliceBounds {
  readonly changes_max: number
  readonly bytes_max: number
}

/** Commits four times as large cost no less in total. */
export const slice_bounds: SliceBounds = { changes_max: 4_096, bytes_max: 1024 * 1024 }

/** Bounds of the active segment's frames and of its index. */
export interface CommitLogBounds {
  /** A checkpoint starts here, unless one runs. */
  readonly checkpoint_bytes: number
  /** Commits wait for the checkpoint here. */
  readonly bytes_max: number
  readonly slice: SliceBounds
}

const mib = 1024 * 1024
const [usual_min, usual_max] = [8 * mib, 32 * mib]

/** By the limit `checkpoint_bytes`; 0 derives it from the memory available to the process. */
export function boundsFor(given: number): CommitLogBounds {
  const bytes = given === 0 ? usualBytes() : given
  return { checkpoint_bytes: bytes, bytes_max: 2 * bytes, slice: slice_bounds }
}

function usualBytes(): number {
  // Without a bound of the system it is 0, or more than there is.
  const bound = process.constrainedMemory()
  const memory = Math.min(totalmem(), bound === 0 ? Number.POSITIVE_INFINITY : bound)
  return Math.min(Math.max(usual_min, Math.floor(memory / 64)), usual_max)
}
