/**
 * One of the two files of a log: a place for frames, written from its beginning again and again.
 *
 * A write is on disk when `write` resolves. The file is filled with zeros ahead of the writes, so
 * that a write changes nothing but bytes that are there and costs one sync; where it has to go
 * further it is merely slower. What stood there before is left behind the last write.
 *
 * A write goes through a thread of the pool, so that the process can do other things while the disk
 * works. Where nothing else waits and the disk answers faster than threads wake each other, a short
 * one is made in place: that saves a lone caller a quarter of its time. A disk that turns slow is
 * noticed by one such write, and gets no other until it is fast again.
 */
import { close, constants, fdatasync, open, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'

export interface Segment {
  readonly path: string
  /**
   * Writes at a place; one at a time, and never before the end of the last one of this round.
   * `is_alone` as `Tree.commit` has it.
   */
  write(bytes: Buffer, at: number, is_alone: boolean): Promise<void>
  close(): Promise<void>
}

/** So far ahead the file is filled, and so much at once: little enough to delay no write much. */
const ahead_bytes = 1024 * 1024
const zeros = Buffer.alloc(ahead_bytes)

/** Where the system knows the flag each write syncs itself; elsewhere a call does it behind. */
const sync_flag: number | undefined = process.platform === 'linux' ? constants.O_DSYNC : undefined

/** What is written in place: no more bytes, and where a write lately took no longer. */
const in_place = { bytes_max: 64 * 1024, took_ms_max: sync_flag === undefined ? 0 : 0.3 }

/** A new file (mode 0600) whose name is not taken, filled as far as the first writes go. */
export async function createSegment(path: string): Promise<Segment> {
  const { O_RDWR, O_CREAT, O_EXCL } = constants
  const fd = await promisify(open)(path, O_RDWR | O_CREAT | O_EXCL | (sync_flag ?? 0), 0o600)
  let filled_bytes = 0
  let filling: Promise<void> | undefined
  /** The mean of the last writes, the newest counting most. */
  let took_ms = in_place.took_ms_max + 1

  async function fill(): Promise<void> {
    await writeAll(fd, zeros, filled_bytes)
    filled_bytes += ahead_bytes
  }

  function fillAhead(end: number): void {
    if (filled_bytes - end >= ahead_bytes / 2 || filling !== undefined) return
    filling = fill().finally(() => {
      filling = undefined
    })
    // What is wrong with the disk comes out at the next write.
    filling.catch(() => {})
  }

  /** No zeros may come behind these bytes any more. */
  async function writeFurther(bytes: Buffer, at: number): Promise<void> {
    await filling?.catch(() => {})
    await writeAll(fd, bytes, at)
    filled_bytes = Math.max(filled_bytes, at + bytes.length)
    fillAhead(filled_bytes)
  }

  try {
    await fill()
  } catch (error) {
    await promisify(close)(fd)
    throw error
  }
  return {
    path,
    async write(bytes, at, is_alone) {
      const end = at + bytes.length
      if (end > filled_bytes) return writeFurther(bytes, at)
      fillAhead(end)
      const is_short = bytes.length <= in_place.bytes_max
      const began_ms = performance.now()
      if (is_alone && is_short && took_ms <= in_place.took_ms_max) writeNow(fd, bytes, at)
      else await writeAll(fd, bytes, at)
      if (is_short) took_ms += (performance.now() - began_ms - took_ms) / 8
    },
    async close() {
      await filling?.catch(() => {})
      await promisify(close)(fd)
    },
  }
}

function writeAll(fd: number, bytes: Buffer, at: number): Promise<void> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, bytes.length, at, (error, written) => {
      if (error !== null) reject(error)
      else if (written !== bytes.length) reject(cutShort(written, bytes))
      else if (sync_flag !== undefined) resolve()
      else fdatasync(fd, (failed) => (failed === null ? resolve() : reject(failed)))
    })
  })
}

/** Only where the write syncs itself. */
function writeNow(fd: number, bytes: Buffer, at: number): void {
  const written = writeSync(fd, bytes, 0, bytes.length, at)
  if (written !== bytes.length) throw cutShort(written, bytes)
}

function cutShort(written: number, bytes: Buffer): Error {
  return new Error(`only ${written} of ${bytes.length} bytes were written`)
}
