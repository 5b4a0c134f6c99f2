/**
 * The table of the calls of the operator's page: a row for each of `ConsoleCalls` that works on an
 * engine. The server checks the session and its right, reads the input, runs the row, and writes
 * what `acts` tells into the log.
 */
import type { Call } from './calls/call.ts'
import { frame } from './calls/frame.ts'
import { task } from './calls/task.ts'
import { find, tasks } from './calls/tasks.ts'
import type { CallName } from './messages.ts'

export type TableCall = Exclude<CallName, 'sign_in' | 'sign_out'>
export type CallTable = { readonly [Name in TableCall]?: Call<Name> }

export const calls: CallTable = { frame, find, tasks, task }
