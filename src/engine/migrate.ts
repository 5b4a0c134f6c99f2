/**
 * Tasks whose node an import dropped. The import says where they go; they are moved in small steps,
 * or before that as soon as something wants them, so no task is ever worked on in a node that is
 * gone.
 *
 * A resting task enters the new node and runs; a failed one stays failed there, for retry and
 * cancel are its only ways on.
 */

import { type Advanced, enterNode } from './advance.ts'
import type { Process } from './catalog.ts'
import type { Draft } from './task-store.ts'
import type { TransactionContext } from './transaction-context.ts'
import { migrationTarget } from './waits.ts'

/**
 * Puts the task into its new node if its own is gone, and tells whether it did. The caller saves
 * it.
 */
export function migrateTask(
  context: TransactionContext,
  process: Process,
  draft: Draft,
): Advanced | undefined {
  const { task } = draft
  const home = migrationTarget(process, task)
  if (home === undefined) return undefined
  if (task.status === 'failed') {
    task.node_prev_id = task.node_id
    task.node_id = home
    task.visit++
    return { keep_ended: true }
  }
  return enterNode(context, process, draft, home)
}
