/**
 * Node's arguments for the checkpoint process: the file beside this one. The bundle replaces this
 * module, because there the script is text.
 */
import { fileURLToPath } from 'node:url'
import { threadStart } from '../../core/thread-start.ts'

export interface CheckpointScript {
  /** Of Node. */
  readonly args: readonly string[]
  /** What the script reads from standard input first. */
  readonly text?: string
}

/** Throws `not_possible` where the script is missing. */
export function checkpointScript(): CheckpointScript {
  const { script } = threadStart(import.meta.url, 'checkpoint-child')
  return { args: typeof script === 'string' ? ['-e', script, '--'] : [fileURLToPath(script)] }
}
