/**
 * Node's arguments for the checkpoint process. The bundle replaces this module: its script is text.
 */
import { fileURLToPath } from 'node:url'
import { threadStart } from '../../core/thread-start.ts'

export interface CheckpointScript {
  readonly args: readonly string[]
  /** The script, read from standard input. */
  readonly text?: string
}

/** Throws `not_possible` where the script is missing. */
export function checkpointScript(): CheckpointScript {
  const { script } = threadStart(import.meta.url, 'checkpoint-child')
  return { args: typeof script === 'string' ? ['-e', script, '--'] : [fileURLToPath(script)] }
}
