/**
 * A connection to MySQL or MariaDB, through `mysql2`, which the operator installs. Statements are
 * prepared, so values are bound by the server; cells become JSON by the type of their column.
 */
import type { Socket } from 'node:net'
import type { Connection as Client, ConnectionOptions, FieldPacket, QueryError } from 'mysql2'
import { jsonCell, numberCell } from './answer.ts'
import { type Connection, type Driver, type TroubleKind, troubleBy } from './connection.ts'
import type { DatabaseInstance } from './instances.ts'

/** By SQLSTATE. */
const states: readonly (readonly [RegExp, TroubleKind])[] = [
  [/^70100/, 'late'],
  [/^(?:08|28)/, 'lost'],
]
/** By the number of an error, where its state says too little. */
const numbers: ReadonlyMap<number | undefined, TroubleKind> = new Map([
  [1053, 'lost'],
  [1203, 'lost'],
  [1927, 'lost'],
  [1969, 'late'],
  [3024, 'late'],
])

async function connect(instance: DatabaseInstance, socket: Socket): Promise<Connection> {
  const { createConnection } = await loadClient()
  const { host, port, database, user, ssl } = instance
  const { password, ca } = instance.login()
  socket.connect(host.startsWith('/') ? { path: host } : { host, port })
  socket.setNoDelay(true)
  socket.setKeepAlive(true)
  const client = createConnection({
    ...{ host, port, database, user, stream: socket, charset: 'utf8mb4' },
    ...(password !== undefined && { password }),
    ...(ssl && { ssl: { verifyIdentity: true, ...(ca !== undefined && { ca }) } }),
    // Cells keep what JSON or a double would change, and no code is made of a column's name.
    ...{ supportBigNumbers: true, dateStrings: true, jsonStrings: true, disableEval: true },
    ...{ rowsAsArray: true, multipleStatements: false, flags: ['-LOCAL_FILES'] },
  } satisfies ConnectionOptions & { jsonStrings: boolean })
  let is_over = false
  client.on('error', () => {
    is_over = true
  })
  await calling((done) => client.connect(done))
  const is_mariadb = /mariadb/i.test(await versionOf(client))
  let job_key = ''
  return {
    socket,
    begin(key, time_ms_max) {
      job_key = key
      const seconds = Math.max(time_ms_max / 1_000, 0.001)
      const set = is_mariadb
        ? `set session max_statement_time = ${seconds}`
        : `set session max_execution_time = ${Math.ceil(time_ms_max)}`
      return calling((done) => client.query(set, done))
    },
    run: (text, values, answer) =>
      new Promise((resolve, reject) => {
        let count: number | undefined
        let makers: readonly Cell[] | undefined
        // The list of processes shows the comment; a session has no name of its own.
        const sql = `/* conveyor ${job_key} */ ${text}`
        const query = client.execute({ sql, values: [...values], rowsAsArray: true })
        query.on('fields', (fields: readonly FieldPacket[] | undefined) => {
          if (fields === undefined) return
          answer.names(fields.map(({ name }) => name))
          makers = fields.map(cellOf)
        })
        query.on('result', (given: unknown) => {
          if (makers === undefined) {
            count = (given as { readonly affectedRows?: number }).affectedRows
            return
          }
          const cells = makers.map((make, at) => make((given as unknown[])[at]))
          if (!answer.add(cells)) socket.destroy()
        })
        query.on('error', reject)
        query.on('end', () => resolve(count))
      }),
    reset: () => calling((done) => client.reset(done)),
    isOver: () => is_over || socket.destroyed,
    destroy: () => void socket.destroy(),
  }
}

async function loadClient() {
  try {
    return await import('mysql2')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Error('the package mysql2 is not installed: `npm install mysql2`')
  }
}

function calling(call: (done: (error: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    call((error) => (error === null ? resolve() : reject(error)))
  })
}

function versionOf(client: Client): Promise<string> {
  return new Promise((resolve, reject) => {
    client.query('select version()', (error, rows) =>
      error === null ? resolve(String(rows)) : reject(error),
    )
  })
}

type Cell = (value: unknown) => string

const number_types = [0, 8, 246]
const float_type = 4
const json_type = 245

function cellOf(field: FieldPacket & { readonly extendedFormat?: string }): Cell {
  const { columnType = -1, extendedFormat } = field
  const make = ((): ((value: string) => string) => {
    if (columnType === json_type || extendedFormat === 'json') return jsonCell
    return number_types.includes(columnType) ? numberCell : JSON.stringify
  })()
  return (value) => {
    if (value === null || value === undefined) return 'null'
    if (typeof value === 'number') return String(columnType === float_type ? short(value) : value)
    return make(Buffer.isBuffer(value) ? `0x${value.toString('hex')}` : String(value))
  }
}

/** The shortest digits of a float of four bytes. */
function short(float: number): number {
  const digits = [6, 7, 8].map((count) => Number(float.toPrecision(count)))
  return digits.find((number) => Math.fround(number) === float) ?? float
}

export const mysql: Driver = {
  connect,
  troubleOf(error) {
    const { errno, sqlState } = error as QueryError & { readonly sqlState?: string }
    const trouble = numbers.get(errno)
    const rows = trouble === undefined ? states : [[/^/, trouble] as const]
    return troubleBy(sqlState, error as Error, rows)
  },
}
