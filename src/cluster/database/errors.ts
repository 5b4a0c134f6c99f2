/**
 * What an error of the database, or of the way to it, means: each is a fault with a sentence that
 * says where and what to do, `overloaded` where the same may succeed later and `not_possible` where
 * somebody has to act first. What is in neither table is a mistake of this program and stays what
 * it is, so that it is never repeated for ever. A fault keeps its cause, for `sqlState`.
 */
import { type Fault, fault, isFault } from '../../core/faults.ts'
import type { Host } from './url.ts'

type Row = readonly [states: RegExp, helps: string]

/** By the state of the database's error: how it may become right. */
const later: readonly Row[] = [
  [/^(?:57P0[1-5]|08)/, 'it starts, stops or has gone; is it under repair?'],
  [/^25006/, 'it is read-only; name its primary, or all of its hosts'],
  [/^(?:53300|53400)/, 'raise max_connections, or end what holds its connections'],
  [/^(?:53100|58)/, 'look at its disk'],
  [/^53/, 'give it more memory'],
  [/^(?:40|55P03|57014)/, 'another transaction was in the way, or a synchronous standby is away'],
  // The prepared statement went with a session that a pooler took away, or with a new schema.
  [/^(?:26000|0A000)/, 'a pooler in front of it must pool by session'],
  [/^XX/, 'look at its log'],
]

/** What somebody has to mend; once it was right, it is asked for again until it is right again. */
const mended: readonly Row[] = [
  [/^28/, 'set PGPASSWORD or PGPASSFILE, the user in the url, and pg_hba.conf'],
  [/^3D000/, 'create it, or name another in the url'],
  [/^42501/, 'run `npx conveyor cluster init --role NAME` as the owner of the schema'],
  [/^(?:42P01|3F000)/, 'run `npx conveyor cluster init`, or restore it'],
]

const network = /^(?:ECONN|EHOST|ENET|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_|ENOENT|EACCES|EADDR)/

/**
 * The fault for what a query or an attempt to connect has thrown. `is_over`: the connection ended
 * meanwhile. With `was_right` nothing is `not_possible`: what worked before may work again.
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
    const [row, found] = [rowOf(later, state), rowOf(mended, state)]
    const says = `the database at ${name} says: ${message} (${state})`
    if (row !== undefined) return fault('overloaded', `${says}; ${row[1]}`, { cause: error })
    return found === undefined ? error : fault(refused, `${says}; ${found[1]}`, { cause: error })
  }
  if (!is_over) return error
  if (code !== undefined && network.test(code)) {
    const says = `the database at ${name} does not answer (${code})`
    return fault('overloaded', `${says}: is it running, and is this its host and port?`)
  }
  // The client package says it in words alone.
  if (!has_tls || message.startsWith('Connection terminated') || message === 'timeout expired') {
    return fault('overloaded', `the database at ${name} does not answer (${message})`)
  }
  const helps = 'set sslrootcert in the url to the file of its authority, or turn TLS on there'
  const says = `the database at ${name} is not trusted (${code ?? message})`
  return fault(refused, `${says}: ${helps}; sslmode=disable does without`, { cause: error })
}

/** Whether no answer came, or one after which the same may succeed later. */
export function isAway(error: unknown): boolean {
  return isFault(error) && error.code === 'overloaded'
}

/** The five characters by which the database says what is wrong; undefined if it said nothing. */
export function sqlState(error: unknown): string | undefined {
  const said = isFault(error) ? error.cause : error
  const { code, severity } = (said ?? {}) as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined
}

/** Whether the connection is of no use after this, although it may stand. */
export function endsConnection(error: unknown): boolean {
  return /^(?:08|57P|25006|26000|0A000|XX)/.test(sqlState(error) ?? '')
}

function rowOf(rows: readonly Row[], state: string): Row | undefined {
  return rows.find(([states]) => states.test(state))
}

function asFault(code: 'overloaded' | 'not_possible', { message, cause }: Fault): Fault {
  return fault(code, message, { cause })
}
