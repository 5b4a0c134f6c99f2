/**
 * The checks of an engine's health: the sentence of each failure, its bound and its remedy, for the
 * probes, the operator's page, `doctor` and the events `risky`. deploy/alerts.yml repeats the bound
 * for certificates.
 */

const day_ms = 86_400_000
const ca_note = '`npx conveyor certs init DIR` makes new ones'

export const health_checks = {
  open: {
    engine: 'it shuts down',
    listener: 'this listener shuts down',
  },
  commit: {
    hangs: (ms: number, has_database: boolean): string =>
      `a commit takes over ${ms} ms: ${has_database ? 'the database or ' : ''}the disk hangs`,
    skipped: (reason: string): string => `not tried: ${reason}`,
    helps: 'look at the disk and at the log of the server',
    slow_ms_min: 250,
    slow_helps: 'the disk is slow to sync: see what else writes to it',
  },
  commit_log: { no_lease: 'the lease has run out' },
  disk: {
    full: (free_bytes: number, bytes_min: number, again_bytes: number): string =>
      `${free_bytes} bytes are free, disk_free_bytes_min is ${bytes_min}; ` +
      `writing resumes with ${again_bytes}`,
    hangs: (ms: number): string =>
      `a checkpoint has waited over ${ms} ms: the disk hangs; ` +
      'commits go on until the commit log is full',
    helps: 'free disk space; reads, cancel and the removal of ended tasks go on',
    low_bytes: 2e9,
    low_helps: 'free disk space before it is full',
  },
  key: {
    helps: 'put the key file back (the .key beside the data file), or set CONVEYOR_KEY',
    lost_helps: 'with no copy left `npx conveyor user rekey --forget-secrets`',
  },
  queue: {
    full: 'as many ops wait as may wait',
    helps: 'new ops are refused until it is shorter; callers retry by themselves',
  },
  background: { stopped: 'a bug has stopped timers and schedules: restart' },
  timers: {
    late_ms_min: 5_000,
    late_helps: 'more falls due than is done; it catches up once the load goes down',
  },
  reads: { too_old: 'what this standby has is too old' },
  certificate: {
    left_ms_min: 14 * day_ms,
    helps: `move server.crt and server.key away, then ${ca_note}; no restart is needed`,
    ended_helps: 'no caller can connect',
  },
} as const
