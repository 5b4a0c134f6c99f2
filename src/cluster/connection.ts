/**
 * One connection to the primary of the database, made anew when it breaks: each attempt asks the
 * hosts in turn and takes the first that accepts writes. A query that gets no answer in time, or an
 * answer that leaves the connection in doubt, ends it; whoever asked decides what to ask again.
 *
 * Each new connection is checked for settings under which a commit could be lost (settings.ts)
 * before anything else is asked.
 */
import type { Client, QueryResult, QueryResultRow } from 'pg'
import { type Clock, within } from '../core/clock.ts'
import { type Fault, fault, isFault } from '../core/faults.ts'
import { type Settings, settings_query, settingsFault } from './settings.ts'
import type { Target } from './target.ts'

export interface Query {
  readonly text: string
  readonly values?: readonly unknown[]
  /** Prepared once a connection under this name. */
  readonly name?: string
}

export interface Connection {
  /** Connects if needed. Rejects with the database's error, or with one that `isAway` knows. */
  query<Row extends QueryResultRow>(query: Query): Promise<QueryResult<Row>>
  /** Connects now, if it does not stand; rejects as `query`. */
  connect(): Promise<void>
  /** Changes with each connection that is made. */
  generation(): number
  /** Whether the last query came with a warning of the server, which may concern its durability. */
  hasWarned(): boolean
  close(): Promise<void>
}

export interface ConnectionOptions {
  readonly target: Target
  /** What it is for, which the server shows as part of the name of the application. */
  readonly purpose: string
  readonly clock: Clock
  /** For an attempt to connect, and for a query. */
  readonly answer_ms_max: number
}

export function newConnection(options: ConnectionOptions): Connection {
  const { target, purpose, clock, answer_ms_max } = options
  let client: Promise<Client> | undefined
  let generation = 0
  let has_warned = false
  let is_closed = false

  async function connectTo(host: string): Promise<Client> {
    const { Client } = (await import('pg')).default
    const one = new Client({
      ...target.configOf(host),
      application_name: `conveyor ${target.node} ${purpose}`.slice(0, 63),
      connectionTimeoutMillis: answer_ms_max,
      query_timeout: answer_ms_max,
      keepAlive: true,
    })
    const drop = (): void => {
      if (current === one) {
        client = undefined
        current = undefined
      }
    }
    one.on('error', drop)
    one.on('end', drop)
    one.on('notice', () => {
      has_warned = true
    })
    try {
      await one.connect()
      const { rows } = await one.query<Settings>(settings_query)
      const refusal = settingsFault(rows[0] as Settings, target.unsafe)
      if (refusal !== undefined) throw refusal
      has_warned = false
      return one
    } catch (error) {
      void one.end().catch(() => {})
      throw error
    }
  }

  let current: Client | undefined

  async function connect(): Promise<Client> {
    let refusal: unknown
    for (const host of target.hosts) {
      try {
        const one = await connectTo(host)
        current = one
        generation++
        if (is_closed) throw closed()
        return one
      } catch (error) {
        // What a reachable host says counts for more than that another cannot be reached.
        if (refusal === undefined || !isAway(error)) refusal = error
      }
    }
    throw refusal
  }

  function connected(): Promise<Client> {
    if (is_closed) return Promise.reject(closed())
    if (client === undefined) {
      const connecting = connect()
      client = connecting
      connecting.catch(() => {
        if (client === connecting) client = undefined
      })
    }
    return client
  }

  function drop(one: Client): void {
    if (current === one) {
      current = undefined
      client = undefined
    }
    // A server that does not answer would keep a polite end waiting.
    void within(clock, answer_ms_max, one.end()).catch(() => {})
  }

  return {
    async query<Row extends QueryResultRow>({ values = [], ...query }: Query) {
      const one = await connected()
      has_warned = false
      try {
        return await one.query<Row>({ ...query, values: [...values] })
      } catch (error) {
        if (isAway(error)) drop(one)
        throw error
      }
    },
    async connect() {
      await connected()
    },
    generation: () => generation,
    hasWarned: () => has_warned,
    async close() {
      is_closed = true
      const one = await client?.catch(() => undefined)
      if (one !== undefined)
        await within(
          clock,
          answer_ms_max,
          one.end().catch(() => {}),
        )
    },
  }
}

/** Classes of the database's errors after which another connection, or another host, may help. */
const away_classes = /^(?:08|57|25006|53300|XX000)/

/** Whether no answer came, or one that says that this server cannot answer now. */
export function isAway(error: unknown): boolean {
  if (isFault(error)) return error.code === 'overloaded'
  const code = sqlState(error)
  return code === undefined || away_classes.test(code)
}

/** The five characters by which the database says what is wrong; undefined if it said nothing. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  const severity = (error as { severity?: unknown } | null)?.severity
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined
}

function closed(): Fault {
  return fault('shutting_down', 'the connection to the database is closed')
}
