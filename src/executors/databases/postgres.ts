/**
 * A connection to PostgreSQL, through `pg`. Values are bound as texts of no type, so the server
 * finds their types; cells come as text and become JSON by the type of their column.
 */
import type { Socket } from 'node:net'
import { jsonCell, numberCell } from './answer.ts'
import { type Connection, type Driver, type TroubleKind, troubleBy } from './connection.ts'
import type { DatabaseInstance } from './instances.ts'

/** By SQLSTATE. */
const states: readonly (readonly [RegExp, TroubleKind])[] = [[/^(?:08|28|3D000|53|57P)/, 'lost']]
/** Also a COPY from the client, which sends nothing, ends with the state of a cancel. */
const canceled: typeof states = [[/^57014/, 'late']]

interface ServerError {
  readonly code?: string
  readonly severity?: string
  readonly routine?: string
}

async function connect(instance: DatabaseInstance, socket: Socket): Promise<Connection> {
  const { Client, Query, types } = (await import('pg')).default
  const cellOf = cellsFor((type) => types.getTypeParser(type))
  const { host, port, database, user, ssl } = instance
  const { password, ca } = instance.login()
  const client = new Client({
    ...{ host, port, database, user, keepAlive: true },
    ssl: ssl ? { ...(ca !== undefined && { ca }) } : false,
    // Without one the client would look for it in the environment and in ~/.pgpass.
    password: () => password ?? '',
    stream: () => socket,
  })
  let is_over = false
  const over = (): void => {
    is_over = true
  }
  client.on('error', over)
  client.on('end', over)
  await client.connect()
  return {
    socket,
    async begin(key, time_ms_max) {
      const text = `select set_config('application_name', $1, false),
        set_config('statement_timeout', $2, false)`
      await client.query(text, [`conveyor ${key}`, String(time_ms_max)])
    },
    run: (text, values, answer) =>
      new Promise((resolve, reject) => {
        const config = {
          ...{ text, values: [...values], rowMode: 'array', types: { getTypeParser: cellOf } },
          // One statement by the protocol, also where there are no values.
          queryMode: 'extended',
        }
        const query = new Query(config)
        let is_named = false
        query.on('row', (cells: unknown, result) => {
          if (!is_named) answer.names(result?.fields.map(({ name }) => name) ?? [])
          is_named = true
          if (!answer.add(cells as string[])) socket.destroy()
        })
        query.on('end', ({ rowCount }) => resolve(rowCount ?? undefined))
        query.on('error', reject)
        client.query(query)
      }),
    async reset() {
      if (client.getTransactionStatus() !== 'I') throw new Error('a transaction is open')
      await client.query('discard all')
    },
    isOver: () => is_over || socket.destroyed,
    destroy: () => void socket.destroy(),
  }
}

type Cell = (text: string) => string

const number_types = [20, 21, 23, 26, 700, 701, 1700]
const json_types = [114, 3802]
/** Arrays of texts, booleans and numbers, which have a parser in the client. */
const array_types = [1000, 1005, 1007, 1009, 1015, 1021, 1022, 1231, 2951]

/** What makes JSON text of a cell; other types are text as the server writes them. */
function cellsFor(arrayParser: (type: number) => (text: string) => unknown) {
  return (type: number): Cell => {
    if (type === 16) return (text) => (text === 't' ? 'true' : 'false')
    if (number_types.includes(type)) return numberCell
    if (json_types.includes(type)) return jsonCell
    if (!array_types.includes(type)) return JSON.stringify
    const parse = arrayParser(type)
    return (text) => JSON.stringify(parse(text))
  }
}

export const postgres: Driver = {
  connect,
  troubleOf(error) {
    const { code, severity, routine } = error as ServerError
    const is_canceled = code === '57014' && routine === 'ProcessInterrupts'
    const rows = is_canceled ? canceled : states
    return troubleBy(severity === undefined ? undefined : code, error as Error, rows)
  },
}
