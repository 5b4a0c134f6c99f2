/**
 * What the operating system says about a data file, as one sentence that tells a person what to do.
 *
 * Opening a file fails for few reasons, and each has a row here; anything else keeps its code in
 * the sentence and its error as the cause.
 */
import { type Fault, fault } from '../core/faults.ts'

const sentences: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist; create it first',
  ENOTDIR: 'a part of the path is no folder; correct the path',
  EISDIR: 'it is a folder; name a file in it',
  EACCES: 'this user may not read and write it; change its owner or mode',
  EPERM: 'this user may not read and write it; change its owner or mode',
  EROFS: 'it lies on a read-only file system; move it to one that can be written',
  ENAMETOOLONG: 'the path is too long; choose a shorter one',
  EMFILE: 'this process has too many open files; raise its limit',
  ENOSPC: 'the disk is full; make room',
}

/** A `not_possible` for the error that opening `path` ended with. */
export function fileFault(path: string, error: unknown): Fault {
  const code = (error as { code?: unknown } | null)?.code
  const says = typeof code === 'string' ? sentences[code] : undefined
  const text = says ?? `it cannot be opened (${error instanceof Error ? error.message : error})`
  return fault('not_possible', `${path}: ${text}`, { cause: error })
}
