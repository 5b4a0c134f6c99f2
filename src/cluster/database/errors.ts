/**
 * Maps database and transport errors to faults: `overloaded` if a repeat may succeed,
 * `not_possible` if an operator has to act. The cause is kept for `sqlState`. An unknown error is a
 * bug and thrown as it is, so that it is not repeated for ever.
 */
import { type Fault, fault, isFault } from '../../core/faults.ts'
import type { Host } from './url.ts'

type Row = readonly [states: RegExp, helps: string]

/** By SQL state: a repeat may succeed. */
const temporary: readonly Row[] = [
  [/^(?:57P0[1-5]|08)/, 'it starts, stops or is gone; is it under maintenance?'],
  [/^25006/, 'it is read-only; name its primary, or all of its hosts'],
  [/^(?:53300|53400)/, 'raise max_connections, or end what holds its connections'],
  [/^(?:53100|58)/, 'look at its disk'],
  [/^53/, 'give it more memory'],
  [/^(?:40|55P03|57014)/, 'another transaction was in the way, or a synchronous standby is away'],
  // A pooler switched the session, or a new schema dropped the prepared statement.
  [/^(?:26000|0A000)/, 'a pooler in front of it must pool by session'],
  [/^XX/, 'look at its log'],
]

/** By SQL state: an operator has to act, unless a connection has succeeded before. */
const refused_states: readonly Row[] = [
  [/^28/, 'set PGPASSWORD or PGPASSFILE, the user in the url, and pg_hba.conf'],
  [/^3D000/, 'create it, or name another in the url'],
  [/^42501/, 'run `npx conveyor cluster init --role NAME` as the owner of the schema'],
  [/^(?:42P01|3F000)/, 'run `npx conveyor cluster init`, or restore it'],
]

const network = /^(?:ECONN|EHOST|ENET|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_|ENOENT|EACCES|EADDR)/

/**
 * The fault for an error of a query or a connect. `is_over`: the connection has ended. With
 * `was_right` nothing is `not_possible`: what worked before may work again.
 */
export function databaseFault(
  error: unknown,
  { name, has_tls }: Host,
  { is_over, was_right }: { readonly is_over: boolean; readonly was_right: boolean },
): unknown {
  const refused = was_right ? 'overloaded' : 'not_possible'
  if (isFault(error)) return error.code === 'not_possible' ? asFault(refused, error) : error
  const { message, code } = error as { readonly message: string; readonly code?: string }
  const state = sqlState(error)
  if (state !== undefined) {
    const [row, found] = [rowOf(temporary, state), rowOf(refused_states, state)]
    const says = `the database at ${name} says: ${message} (${state})`
    if (row !== undefined) return fault('overloaded', `${says}; ${row[1]}`, { cause: error })
    return found === undefined ? error : fault(refused, `${says}; ${found[1]}`, { cause: error })
  }
  if (!is_over) return error
  if (code !== undefined && network.test(code)) {
    const says = `the database at ${name} does not answer (${code})`
    return fault('overloaded', `${says}: is it running, and is this its host and port?`)
  }
  // pg gives these errors no code.
  if (!has_tls || message.startsWith('Connection terminated') || message === 'timeout expired') {
    return fault('overloaded', `the database at ${name} does not answer (${message})`)
  }
  const helps = 'set sslrootcert in the url to the file of its authority, or turn TLS on there'
  const says = `the database at ${name} is not trusted (${code ?? message})`
  return fault(refused, `${says}: ${helps}; sslmode=disable does without`, { cause: error })
}

/** Whether a repeat may succeed later. */
export function isAway(error: unknown): boolean {
  return isFault(error) && error.code === 'overloaded'
}

/** Undefined for other errors. */
export function sqlState(error: unknown): string | undefined {
  const said = isFault(error) ? error.cause : error
  const { code, severity } = (said ?? {}) as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined
}

export function endsConnection(error: unknown): boolean {
  return /^(?:08|57P|25006|26000|0A000|XX)/.test(sqlState(error) ?? '')
}

function rowOf(rows: readonly Row[], state: string): Row | undefined {
  return rows.find(([states]) => states.test(state))
}

function asFault(code: 'overloaded' | 'not_possible', { message, cause }: Fault): Fault {
  return fault(code, message, { cause })
}
