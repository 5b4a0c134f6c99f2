/**
 * How the checkpoint process is started: Node's arguments for the file beside this one. The bundle
 * replaces this module, because there the script is text.
 */
import { fileURLToPath } from 'node:url'
import { threadStart } from '../../core/thread-start.ts'

/** Throws `not_possible` where the script is missing. */
export function checkpointScript(): string[] {
  const { script } = threadStart(import.meta.url, 'checkpoint-child')
  return script instanceof URL ? [fileURLToPath(script)] : ['-e', script, '--']
}
