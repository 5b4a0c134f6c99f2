/**
 * `conveyor-engine/postgres`: the commit log in PostgreSQL, for an engine that survives the loss of
 * its machine. Importing it loads no client of the database; the first `openEngine` does.
 */
export { type PostgresLog, postgresLog } from './cluster/node/node.ts'
export type { PostgresLogOptions } from './cluster/node/settings.ts'
export type { NodeStatus, Role } from './cluster/node/status.ts'
export { isOwnershipLost } from './cluster/ownership/owner-row.ts'
