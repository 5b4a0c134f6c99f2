/** What a query needs of a connection, alike for each driver, and how its failures are named. */
import type { Socket } from 'node:net'
import type { Answer } from './answer.ts'
import type { DatabaseInstance } from './instances.ts'

export interface Connection {
  /**
   * Readies the session for one job. `key` is what the server shows of it; `time_ms_max` is after
   * what the server ends the query by itself, where it can.
   */
  begin(key: string, time_ms_max: number): Promise<void>
  /** Runs one statement. Resolves with the rows that the server has counted. */
  run(text: string, values: readonly (string | null)[], answer: Answer): Promise<number | undefined>
  /** Makes the session as new. Rejects where it is not as it was, such as in a transaction. */
  reset(): Promise<void>
  readonly socket: Socket
  isOver(): boolean
  destroy(): void
}

/**
 * `lost`: there is no connection, or no more; `late`: the server has ended the query; `refused`: it
 * does not run it.
 */
export type TroubleKind = 'lost' | 'late' | 'refused'

export interface Trouble {
  readonly trouble: TroubleKind
  readonly says: string
}

export interface Driver {
  /** Opens a connection over a socket that is not connected yet. */
  connect(instance: DatabaseInstance, socket: Socket): Promise<Connection>
  /** What an error of this driver means. */
  troubleOf(error: unknown): Trouble
}

/** By the SQLSTATE of an error; one without a state is of the connection. */
export function troubleBy(
  state: string | undefined,
  { message, code }: { readonly message?: string; readonly code?: string },
  rows: readonly (readonly [states: RegExp, trouble: TroubleKind])[],
): Trouble {
  if (state === undefined) return { trouble: 'lost', says: message || (code ?? 'no connection') }
  const [, trouble = 'refused'] = rows.find(([states]) => states.test(state)) ?? []
  return { trouble, says: `SQLSTATE ${state}: ${message}` }
}
