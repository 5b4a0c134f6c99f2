/**
 * Runs one call of the table for a session: its right, its input within bounds, its work, and the
 * line of the log. Each act is one line, whether it was done, refused or broken off.
 */
import { codeOf, fault } from '../../core/faults.ts'
import type { BodyReader } from './body.ts'
import { type Acted, type CallContext, input_bytes_max } from './calls/call.ts'
import { calls, type TableCall } from './calls.ts'
import type { Entrance } from './entrance.ts'
import { type Right, rights } from './messages.ts'
import type { OpenSession } from './sessions.ts'
import type { ConsoleExchange, ConsoleSource } from './source.ts'

/** A row of the table, whichever it is. */
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
  /** Throws where there is no engine now. */
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
      exchange.is_told = true
      emit('console_acted', { act: name, by: session.name, code, ...acted })
    }
  }
}

export function checkRight(has: Right | undefined, needs: Right): void {
  if (has !== undefined && rights.indexOf(has) >= rights.indexOf(needs)) return
  throw fault('access_denied', `this needs the right ${needs}; the session has ${has ?? 'none'}`)
}
