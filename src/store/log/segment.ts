/**
 * One of the two files of a log: a place for frames, written from its beginning again and again.
 *
 * A write is on disk when `write` resolves. The file is filled with zeros ahead of the writes, so
 * that a write changes nothing but bytes that are there and costs one sync; where it has to go
 * further it is merely slower. What stood there before is left behind the last write.
 */
import { close, constants, fdatasync, open, write } from 'node:fs'
import { promisify } from 'node:util'

export interface Segment {
  readonly path: string
  /** Writes at a place; one at a time, and never before the end of the last one of this round. */
  write(bytes: Buffer, at: number): Promise<void>
  close(): Promise<void>
}

/** So far ahead the file is filled, and so much at once: little enough to delay no write much. */
const ahead_bytes = 1024 * 1024
const zeros = Buffer.alloc(ahead_bytes)

/** Where the system knows the flag each write syncs itself; elsewhere a call does it behind. */
const sync_flag: number | undefined = process.platform === 'linux' ? constants.O_DSYNC : undefined

/** A new file (mode 0600) whose name is not taken, filled as far as the first writes go. */
export async function createSegment(path: string): Promise<Segment> {
  const { O_RDWR, O_CREAT, O_EXCL } = constants
  const fd = await promisify(open)(path, O_RDWR | O_CREAT | O_EXCL | (sync_flag ?? 0), 0o600)
  let filled_bytes = 0
  let filling: Promise<void> | undefined

  async function fill(): Promise<void> {
    await writeAll(fd, zeros, filled_bytes)
    filled_bytes += ahead_bytes
  }

  return {
    path,
    write(bytes, at) {
      const end = at + bytes.length
      if (end > filled_bytes) return writeFurther(bytes, at)
      if (filled_bytes - end < ahead_bytes / 2 && filling === undefined) {
        filling = fill().finally(() => {
          filling = undefined
        })
        // What is wrong with the disk comes out at the next write.
        filling.catch(() => {})
      }
      return writeAll(fd, bytes, at)
    },
    async close() {
      await filling?.catch(() => {})
      await promisify(close)(fd)
    },
  }

  /** No zeros may come behind these bytes any more. */
  async function writeFurther(bytes: Buffer, at: number): Promise<void> {
    await filling
    await writeAll(fd, bytes, at)
    filled_bytes = Math.max(filled_bytes, at + bytes.length)
  }
}

function writeAll(fd: number, bytes: Buffer, at: number): Promise<void> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, bytes.length, at, (error, written) => {
      if (error !== null) reject(error)
      else if (written !== bytes.length) reject(new Error(`${written} of ${bytes.length} bytes`))
      else if (sync_flag !== undefined) resolve()
      else fdatasync(fd, (failed) => (failed === null ? resolve() : reject(failed)))
    })
  })
}
