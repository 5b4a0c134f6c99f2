/**
 * A task as the client hands it out: its data twice, as the exact text and, when asked for, parsed.
 */
import { parsePlain } from '../codec/json.ts'
import type { ClientTask } from './api.ts'

export function taskWith(task: Omit<ClientTask, 'data'>): ClientTask {
  return {
    ...task,
    get data(): unknown {
      return parsePlain(task.dataText)
    },
  }
}
