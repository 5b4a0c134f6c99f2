/**
 * What tells a restart of a node from another node: its very data file, which one process at a time
 * has, on a system that has run since. So an earlier process with the same identity has ended.
 */
import { readFileSync, statSync } from 'node:fs'

export interface Identity {
  /** Of the data file; a copy of it is another file. */
  readonly file_id: string
  /** Of the running system; empty where it does not say. */
  readonly boot_id: string
}

export function identityOf(path: string, random_id: string): Identity {
  const { dev, ino } = statSync(path)
  return { file_id: `${random_id}:${dev}:${ino}`, boot_id: bootId() }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}
