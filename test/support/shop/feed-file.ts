/**
 * What a consumer of the feed has seen, a line for each change. A line has the position of its
 * change, so what was seen and where to go on are one write. Lines that a crash has cut off count as
 * not seen, and come again.
 */
import { open } from 'node:fs/promises'
import type { TaskChange } from '../../../src/index.ts'

export interface FeedFile {
  /** Of the last change in the file; undefined in an empty one. */
  readonly position: string | undefined
  append(change: TaskChange): Promise<void>
  close(): Promise<void>
}

/** More than a line has. */
const tail_bytes = 4096

export async function openFeedFile(path: string): Promise<FeedFile> {
  const file = await open(path, 'a+')
  const { size } = await file.stat()
  const tail = Buffer.alloc(Math.min(size, tail_bytes))
  await file.read(tail, 0, tail.length, size - tail.length)
  const end = tail.lastIndexOf('\n') + 1
  await file.truncate(size - tail.length + end)
  const last = tail.toString('utf8', 0, end).split('\n').at(-2)
  return {
    position: last === undefined ? undefined : (JSON.parse(last) as TaskChange).position,
    append: (change) => file.appendFile(`${JSON.stringify(change)}\n`),
    close: () => file.close(),
  }
}
