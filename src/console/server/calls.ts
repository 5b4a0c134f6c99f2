/**
 * The table of the calls, a row for each of `ConsoleCalls` that works on an engine, and how one
 * runs: checks the right of the session, reads the input within bounds, runs the row, and logs one
 * line for each act, whether it was done, refused or interrupted.
 */

import { codeOf, fault } from '../../core/faults.ts'
import { cancel, modify, move, pause, resume, retry } from './calls/acts.ts'
import { bulk, bulk_count, bulk_jobs, bulk_resume } from './calls/bulk.ts'
import { type Acted, type CallContext, type CallRow, input_bytes_max } from './calls/call.ts'
import { importCall } from './calls/import.ts'
import { process, versions } from './calls/process.ts'
import { frame, task } from './calls/task.ts'
import { find, tasks } from './calls/tasks.ts'
import type { Entrance } from './entrance.ts'
import { type CallName, type Right, rights } from './messages.ts'
import type { BodyReader } from './request-checks.ts'
import type { OpenSession } from './sessions.ts'
import type { ConsoleExchange, ConsoleSource } from './source.ts'

export type TableCall = Exclude<CallName, 'sign_in' | 'sign_out'>
export type CallTable = { readonly [Name in TableCall]: CallRow<Name> }

export const calls: CallTable = {
  ...{ frame, process, versions, find, tasks, task, bulk_jobs },
  ...{ modify, retry, move, cancel, bulk_count, bulk, bulk_resume },
  ...{ pause, resume, import: importCall },
}

export interface Row {
  readonly right: Right
  readonly input_bytes_max?: number
  acts?(input: unknown, output?: unknown): Acted | undefined
  run(context: CallContext, input: unknown): Promise<unknown>
}

export function rowOf(name: string): Row | undefined {
  return Object.hasOwn(calls, name) ? (calls[name as TableCall] as Row) : undefined
}

export interface CallParts extends Pick<ConsoleSource, 'limits' | 'emit'> {
  readonly readBody: BodyReader
  readonly rightOf: Entrance['rightOf']
  context(): CallContext
}

export async function runCall(
  { limits, emit, readBody, rightOf, context }: CallParts,
  exchange: ConsoleExchange,
  { session, name, row }: { session: OpenSession; name: string; row: Row },
): Promise<unknown> {
  let acted: Acted | undefined = {}
  let code: string = 'ok'
  try {
    checkRight(rightOf(session), row.right)
    const bytes_max = row.input_bytes_max ?? input_bytes_max + 2 * limits.task_bytes_max
    const input = await readBody(exchange.request, bytes_max)
    // A body may be long in coming.
    checkRight(rightOf(session), row.right)
    acted = row.acts?.(input)
    const output = await row.run(context(), input)
    acted = row.acts?.(input, output)
    return output
  } catch (error) {
    code = codeOf(error)
    throw error
  } finally {
    if (row.acts !== undefined && acted !== undefined) {
      exchange.is_logged = true
      emit('console_acted', { act: name, by: session.name, code, ...acted })
    }
  }
}

export function checkRight(has: Right | undefined, needs: Right): void {
  if (has !== undefined && rights.indexOf(has) >= rights.indexOf(needs)) return
  throw fault('access_denied', `this needs the right ${needs}; the session has ${has ?? 'none'}`)
}
