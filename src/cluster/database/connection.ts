/**
 * A connection to the database's primary, reconnected when it breaks: all hosts are tried at once,
 * and the first that accepts writes wins. Queries run one at a time. One without an answer in time
 * ends the connection; the caller decides what to send again. Each connection is checked for
 * settings under which a commit can be lost (settings.ts). A query with a warning counts as failed:
 * a wait for a synchronous standby was cut off, so only this server may have the commit.
 */
import { Socket } from 'node:net'
import type { Client } from 'pg'
import { type Clock, newAlarm, pause, within } from '../../core/clock.ts'
import { fault, isFault } from '../../core/faults.ts'
import { databaseFault, endsConnection, isAway } from './errors.ts'
import { type Settings, settingsFault, settingsQuery } from './settings.ts'
import type { Database, Host } from './url.ts'

export { isAway, sqlState } from './errors.ts'

export interface Query {
  readonly text: string
  readonly values?: readonly unknown[]
  /** The prepared statement's name, once per connection. */
  readonly name?: string
}

/** Restated, so that pg's types stay out of our declarations. */
export interface QueryAnswer<Row> {
  readonly rows: Row[]
  readonly rowCount: number | null
}

export type Ask = <Row extends object>(query: Query) => Promise<QueryAnswer<Row>>

export interface Connection {
  /**
   * Connects if needed. Rejects with a fault; `isAway` is true for it where the outcome is unknown
   * or a repeat may succeed (errors.ts).
   */
  readonly query: Ask
  inTransaction<T>(work: (ask: Ask) => Promise<T>): Promise<T>
  connect(): Promise<void>
  close(): Promise<void>
}

export interface ConnectionOptions {
  readonly database: Database
  /** Part of the application name that the server shows. */
  readonly purpose: string
  readonly clock: Clock
  /** Bounds a connect, and a query. */
  readonly answer_ms_max: number
  /** Checks each new connection; one for which it throws is not used. */
  readonly check?: ((found: Pick<Connection, 'query'>) => Promise<void>) | undefined
}

interface Link {
  readonly client: Client
  readonly host: Host
  is_over: boolean
  /** The server's warning since the last query. */
  warning: string | undefined
  /** Without an answer in time it rejects and ends the connection. */
  readonly ask: Ask
  end(): Promise<unknown>
  destroy(): void
}

interface Watch {
  begin(query: Query): void
  end(): void
}

/** The first attempts are shorter, so that a lost host does not delay the others. */
const first_attempt_ms = 1_000
/** Extra time for the bytes of a large frame. */
const sent_bytes_per_ms = 250

export function newConnection(options: ConnectionOptions): Connection {
  const { database, purpose, clock, answer_ms_max } = options
  let link: Link | undefined
  let attempts = 0
  /** This host left a query unanswered: others get a head start. */
  let silent_host: Host | undefined
  let is_closed = false
  let is_busy = false
  const waiting: (() => void)[] = []

  async function openLink(host: Host, ms_max: number): Promise<Link> {
    if (host === silent_host) await pause(clock, ms_max / 4)
    const { Client } = (await import('pg')).default
    const socket = new Socket()
    const state = { is_over: false }
    try {
      const client = new Client({
        ...database.configOf(host),
        application_name: `conveyor ${database.node} ${purpose}`.slice(0, 63),
        connectionTimeoutMillis: ms_max,
        keepAlive: true,
        stream: () => socket,
      })
      const one = linkOf(client, host, socket)
      await client.connect().catch((error: unknown) => {
        state.is_over = true
        throw error
      })
      // Warnings at the connect concern no commit.
      one.warning = undefined
      const { rows } = await one.ask<Settings>(settingsQuery(answer_ms_max))
      const refusal = settingsFault(rows[0] as Settings, host.name, database.unsafe)
      if (refusal !== undefined) throw refusal
      await options.check?.({ query: one.ask })
      return one
    } catch (error) {
      socket.destroy()
      throw databaseFault(error, host, { ...state, ...database.found })
    }
  }

  function linkOf(client: Client, host: Host, socket: Socket): Link {
    const over = (): void => {
      one.is_over = true
      if (link === one) link = undefined
    }
    client.on('error', over)
    client.on('end', over)
    client.on('notice', ({ code, message }) => {
      if (/^(?:01|57)/.test(code ?? '')) one.warning = message
    })
    const watch = newWatch(socket, () => {
      silent_host = host
      one.destroy()
    })
    const one: Link = {
      ...{ client, host, is_over: false, warning: undefined },
      async ask(query: Query) {
        watch.begin(query)
        socket.ref()
        try {
          const result = await client.query(query as Query & { values: unknown[] })
          if (one.warning === undefined) return result
          const warned = `the database at ${host.name} warns: ${one.warning}`
          one.warning = undefined
          throw fault('overloaded', `${warned}; is a synchronous standby away?`)
        } catch (error) {
          if (endsConnection(error)) one.destroy()
          throw databaseFault(error, host, { is_over: one.is_over, ...database.found })
        } finally {
          watch.end()
          socket.unref()
        }
      },
      end() {
        socket.ref()
        return within(clock, answer_ms_max, client.end()).finally(one.destroy)
      },
      destroy() {
        over()
        socket.destroy()
      },
    }
    return one
  }

  /** Ends the connection if a query got no bytes for too long. One timer serves all queries. */
  function newWatch(socket: Socket, onSilent: () => void): Watch {
    let waits_until_ms = Number.POSITIVE_INFINITY
    let bytes_read = 0
    const alarm = newAlarm(clock, () => {
      if (waits_until_ms === Number.POSITIVE_INFINITY) return
      if (socket.bytesRead > bytes_read) waits_until_ms += answer_ms_max
      bytes_read = socket.bytesRead
      if (clock.now_ms() >= waits_until_ms) onSilent()
      else alarm.ringBy(waits_until_ms)
    })
    return {
      begin({ values = [] }) {
        let ms = answer_ms_max
        for (const value of values) {
          if (Buffer.isBuffer(value)) ms += value.length / sent_bytes_per_ms
        }
        bytes_read = socket.bytesRead
        waits_until_ms = clock.now_ms() + ms
        alarm.ringBy(waits_until_ms)
      },
      end() {
        waits_until_ms = Number.POSITIVE_INFINITY
      },
    }
  }

  async function connect(): Promise<Link> {
    const ms_max = Math.min(answer_ms_max, first_attempt_ms * 2 ** (attempts++ % 4))
    const opening = database.hosts.map((host) => openLink(host, ms_max))
    try {
      const one = await Promise.any(opening)
      for (const other of opening) {
        other.then(
          (late) => late === one || late.destroy(),
          () => {},
        )
      }
      if (is_closed) {
        one.destroy()
        throw closed()
      }
      database.found.was_right = true
      attempts = 0
      silent_host = undefined
      if (!one.is_over) link = one
      return one
    } catch (error) {
      throw allOf((error as Partial<AggregateError>).errors ?? [error])
    }
  }

  async function inTurn<T>(work: (one: Link) => Promise<T>): Promise<T> {
    if (is_busy) await new Promise<void>((resolve) => waiting.push(resolve))
    is_busy = true
    try {
      if (is_closed) throw closed()
      return await work(link ?? (await connect()))
    } finally {
      const next = waiting.shift()
      is_busy = next !== undefined
      next?.()
    }
  }

  return {
    query: (query) => inTurn((one) => one.ask(query)),
    inTransaction: (work) =>
      inTurn(async (one) => {
        await one.ask({ text: 'BEGIN' })
        try {
          const result = await work(one.ask)
          await one.ask({ text: 'COMMIT' })
          return result
        } catch (error) {
          await one.ask({ text: 'ROLLBACK' }).catch(one.destroy)
          throw error
        }
      }),
    connect: () => inTurn(async () => {}),
    async close() {
      is_closed = true
      await link?.end().catch(() => {})
    },
  }
}

/** One fault for all hosts; one that needs an operator comes first. */
function allOf(errors: readonly unknown[]): unknown {
  const refused = errors.find((error) => !isAway(error))
  if (refused !== undefined) return refused
  const [first] = errors
  if (!isFault(first) || errors.length === 1) return first
  const sentences = errors.map((error) => (error as Error).message)
  return fault('overloaded', [...new Set(sentences)].join('; '), { cause: first.cause })
}

function closed(): Error {
  return fault('shutting_down', 'the connection to the database is closed')
}
