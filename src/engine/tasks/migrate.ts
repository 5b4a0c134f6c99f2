/**
 * Migrates tasks from nodes that an import dropped to the nodes that the import names: in slices in
 * the background, or earlier when an op, timer or job needs one of them, so no task runs in a
 * dropped node.
 */

import type { Process } from '../transactions/catalog.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { enterNode } from './advance.ts'
import { recordEntry } from './history.ts'
import type { TaskDraft } from './task-store.ts'
import { migrationTarget } from './waits.ts'

/**
 * Migrates the task if its node was dropped; returns whether it did. The caller saves the task. A
 * waiting task enters the new node and advances; a failed one stays failed there until retry or
 * cancel.
 */
export function migrateTask(tx: Transaction, process: Process, draft: TaskDraft): boolean {
  const { task } = draft
  const node_id = migrationTarget(process, task)
  if (node_id === undefined) return false
  if (task.status === 'failed') {
    task.node_prev_id = task.node_id
    task.node_id = node_id
    task.visit++
    recordEntry(tx, task, 'migrate')
  } else enterNode(tx, process, draft, node_id, 'migrate')
  return true
}
