/** The options of a node, checked once, and its connections to the database. */
import { type Clock, steadyClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import { type Connection, type ConnectionOptions, newConnection } from '../database/connection.ts'
import { type Database, databaseOf } from '../database/url.ts'
import type { SnapshotOptions } from '../snapshots/snapshots.ts'

export interface PostgresLogOptions {
  /** `postgres://USER@HOST:PORT[,HOST:PORT]/DATABASE?sslmode=verify-full`, without a password. */
  readonly url: string
  /** Names this node, one per data file. */
  readonly node: string
  /** Where callers reach this node as the owner; other nodes refer them there. Default none. */
  readonly address?: string
  /** Default 0. */
  readonly partition?: number
  /** Takeover after this long without a renewal by the owner; default 5,000. */
  readonly lease_ms?: number
  /** Accepts database settings that can lose what was answered; default false. */
  readonly unsafe?: boolean
  readonly snapshot?: SnapshotOptions
  /** Replaces the system's in tests; it must be monotonic. */
  readonly clock?: Clock
}

/** The same, with defaults filled in. */
export interface NodeSettings extends Required<Omit<PostgresLogOptions, 'url' | 'unsafe'>> {
  readonly database: Database
}

export const lease_default_ms = 5_000
const lease_ms_min = 100
/** Minimum wait for the database's answer, however short the lease. */
const answer_ms_min = 1_000

export function nodeSettings(options: PostgresLogOptions): NodeSettings {
  const { node, address = '', partition = 0, lease_ms = lease_default_ms } = options
  const { clock = steadyClock } = options
  const database = databaseOf(options.url, node, options.unsafe)
  if (!/^[\w.-]{1,60}$/.test(node)) {
    const helps = 'use 1 to 60 letters, digits, dots, dashes and underscores'
    throw fault('not_possible', `the name of the node cannot be: ${helps}`)
  }
  if (!Number.isSafeInteger(lease_ms) || lease_ms < lease_ms_min) {
    throw fault('not_possible', `a lease is a whole number of ms, at least ${lease_ms_min}`)
  }
  const { snapshot = {} } = options
  return { database, node, address, partition, lease_ms, snapshot, clock }
}

export function answerMsMax({ lease_ms }: Pick<NodeSettings, 'lease_ms'>): number {
  return Math.max(lease_ms, answer_ms_min)
}

/** An unanswered renewal is repeated on another connection before the lease ends. */
export function renewalMsMax({ lease_ms }: Pick<NodeSettings, 'lease_ms'>): number {
  return Math.max(lease_ms / 3, answer_ms_min)
}

export function connectionFor(
  settings: NodeSettings,
  purpose: string,
  check?: ConnectionOptions['check'],
  answer_ms_max = answerMsMax(settings),
): Connection {
  const { database, clock } = settings
  return newConnection({ database, purpose, clock, answer_ms_max, check })
}
