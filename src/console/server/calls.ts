/**
 * The table of the calls of the operator's page: a row for each of `ConsoleCalls` that works on an
 * engine. The server checks the session and its right, reads the input, runs the row, and writes
 * what `acts` tells into the log.
 */
import { cancel, modify, move, pause, resume, retry } from './calls/acts.ts'
import { bulk, bulk_count, bulk_jobs, bulk_resume } from './calls/bulk.ts'
import type { CallRow } from './calls/call.ts'
import { frame } from './calls/frame.ts'
import { importCall } from './calls/import.ts'
import { process, versions } from './calls/process.ts'
import { task } from './calls/task.ts'
import { find, tasks } from './calls/tasks.ts'
import type { CallName } from './messages.ts'

export type TableCall = Exclude<CallName, 'sign_in' | 'sign_out'>
export type CallTable = { readonly [Name in TableCall]: CallRow<Name> }

export const calls: CallTable = {
  ...{ frame, process, versions, find, tasks, task, bulk_jobs },
  ...{ modify, retry, move, cancel, bulk_count, bulk, bulk_resume },
  ...{ pause, resume, import: importCall },
}
