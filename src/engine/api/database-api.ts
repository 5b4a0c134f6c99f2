/** The databases of `EngineOptions.databases`, for the `db_call` logics of processes. */

export interface DatabaseOptions {
  readonly driver: 'postgres' | 'mysql'
  /** A name, an address, or for PostgreSQL the folder of its Unix socket. */
  readonly host: string
  /** Default 5432, and 3306 of `mysql`. */
  readonly port?: number
  readonly database: string
  readonly user: string
  readonly password?: string
  /** A file with the password, read for each connection. */
  readonly password_file?: string
  /** TLS with a server that is verified. Default: true, except on this machine. */
  readonly ssl?: boolean
  /** The authorities that verify the server, in PEM; default those of Node. */
  readonly ca_file?: string
  /** Connections, and so queries at once. Default 8. */
  readonly max?: number
  /** The longest time of a query, whatever its node says. Default 30,000. */
  readonly timeout_ms?: number
  /** Rows of an answer. Default 10,000; its bytes are those of a task's data. */
  readonly rows_max?: number
}

/** By the `instance_id` that nodes name, a number or a name. */
export type GivenDatabases = Readonly<Record<string, DatabaseOptions>>
