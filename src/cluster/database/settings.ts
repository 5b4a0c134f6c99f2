/**
 * What a connection checks before use: the server accepts writes, and its settings keep commits.
 * Each row is refused with a sentence that says what to do.
 */
import { type Fault, fault } from '../../core/faults.ts'

export interface Settings {
  readonly is_standby: boolean
  readonly read_only: string
  readonly fsync: string
  readonly full_page_writes: string
  readonly synchronous_commit: string
  readonly synchronous_standby_names: string
  /** Standbys of this server, without running backups and logical subscribers. */
  readonly followers: number
}

/**
 * Sets the session's settings and reads the others. The lock timeout is shorter than the answer's,
 * or the server would go on waiting for a client that has left. Warnings report commits that no
 * standby has.
 */
export function settingsQuery(answer_ms_max: number): { readonly text: string } {
  const session = {
    client_min_messages: 'warning',
    lock_timeout: String(Math.ceil(answer_ms_max / 2)),
    statement_timeout: '0',
    default_transaction_isolation: 'read committed',
    bytea_output: 'hex',
  }
  const sets = Object.entries(session).map(([name, to]) => `set_config('${name}', '${to}', false)`)
  return {
    text: `SELECT pg_is_in_recovery() AS is_standby,
      current_setting('transaction_read_only') AS read_only,
      current_setting('fsync') AS fsync,
      current_setting('full_page_writes') AS full_page_writes,
      current_setting('synchronous_commit') AS synchronous_commit,
      current_setting('synchronous_standby_names') AS synchronous_standby_names,
      (SELECT count(*)::int FROM pg_stat_replication WHERE pid NOT IN (
        SELECT pid FROM pg_stat_progress_basebackup UNION ALL
        SELECT active_pid FROM pg_replication_slots WHERE active_pid IS NOT NULL
          AND (temporary OR slot_type = 'logical')
      )) AS followers,
      ${sets.join(', ')}`,
  }
}

interface Row {
  readonly is_wrong: (found: Settings) => boolean
  /** Follows "the database at HOST:PORT". */
  readonly says: string
  /** May change by itself, at this host or another. */
  readonly is_away?: true
}

const loses = 'and would lose what was answered'

const rows: readonly Row[] = [
  {
    is_wrong: ({ is_standby, read_only }) => is_standby || read_only === 'on',
    says: 'is read-only: name its primary, or all of its hosts',
    is_away: true,
  },
  {
    is_wrong: ({ fsync }) => fsync !== 'on',
    says: `has fsync off, ${loses}: set fsync = on`,
  },
  {
    is_wrong: ({ full_page_writes }) => full_page_writes !== 'on',
    says: 'has full_page_writes off, and a power cut may damage it: set full_page_writes = on',
  },
  {
    is_wrong: ({ synchronous_commit }) => synchronous_commit === 'off',
    says: `has synchronous_commit = off, ${loses}: set synchronous_commit = on`,
  },
  {
    is_wrong: ({ synchronous_commit, followers, synchronous_standby_names: names }) =>
      synchronous_commit === 'local' && (followers > 0 || names !== ''),
    says:
      `has synchronous_commit = local although standbys follow it, ${loses} in a failover: ` +
      'set synchronous_commit = on',
  },
  {
    is_wrong: ({ synchronous_standby_names, followers }) =>
      synchronous_standby_names === '' && followers > 0,
    says:
      `has standbys none of which is synchronous, ${loses} in a failover: ` +
      'set synchronous_standby_names',
  },
]

/** The first wrong setting; with `unsafe` only one that prevents writes. */
export function settingsFault(found: Settings, at: string, unsafe: boolean): Fault | undefined {
  const wrong = rows.find(({ is_wrong, is_away }) => (is_away || !unsafe) && is_wrong(found))
  if (wrong === undefined) return undefined
  return fault(wrong.is_away ? 'overloaded' : 'not_possible', `the database at ${at} ${wrong.says}`)
}
