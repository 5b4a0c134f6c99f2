/**
 * What a connection must find before it is used: a server that accepts writes, with settings under
 * which what it has committed survives. Each row is refused with a sentence that says what to do.
 */
import { type Fault, fault } from '../core/faults.ts'

export interface Settings {
  readonly is_standby: boolean
  readonly read_only: string
  readonly fsync: string
  readonly full_page_writes: string
  readonly synchronous_commit: string
  readonly synchronous_standby_names: string
  /** Servers that follow this one. */
  readonly followers: string
}

export const settings_query = `SELECT pg_is_in_recovery() AS is_standby,
  current_setting('transaction_read_only') AS read_only,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('synchronous_standby_names') AS synchronous_standby_names,
  (SELECT count(*) FROM pg_stat_replication) AS followers`

interface Row {
  readonly is_wrong: (found: Settings) => boolean
  readonly says: string
  /** The database may become right by itself, at this host or another. */
  readonly is_away?: true
}

const rows: readonly Row[] = [
  {
    is_wrong: ({ is_standby, read_only }) => is_standby || read_only === 'on',
    says: 'the database is read-only: name its primary, or all of its hosts',
    is_away: true,
  },
  {
    is_wrong: ({ fsync }) => fsync !== 'on',
    says: 'the database has fsync off, and would lose what was answered; set fsync = on',
  },
  {
    is_wrong: ({ full_page_writes }) => full_page_writes !== 'on',
    says: 'the database has full_page_writes off: a power cut may damage it; set it on',
  },
  {
    is_wrong: ({ synchronous_commit }) => synchronous_commit === 'off',
    says: 'the database has synchronous_commit off, and would lose what was answered; set it on',
  },
  {
    is_wrong: ({ synchronous_commit, followers }) =>
      synchronous_commit === 'local' && Number(followers) > 0,
    says:
      'the database has synchronous_commit = local although standbys follow it: a failover ' +
      'would lose what was answered; set it on',
  },
  {
    is_wrong: ({ synchronous_standby_names, followers }) =>
      synchronous_standby_names === '' && Number(followers) > 0,
    says:
      'standbys follow the database and none is synchronous: a failover would lose what was ' +
      'answered; set synchronous_standby_names',
  },
]

/** Undefined where all is right. With `unsafe` only what makes writes impossible is refused. */
export function settingsFault(found: Settings, unsafe: boolean): Fault | undefined {
  const wrong = rows.find(({ is_wrong, is_away }) => (is_away || !unsafe) && is_wrong(found))
  return wrong && fault(wrong.is_away ? 'overloaded' : 'not_possible', wrong.says)
}
