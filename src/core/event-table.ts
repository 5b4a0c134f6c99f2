/**
 * The table of events for the operators of an engine. Each is one line of the log and is counted.
 * The fields are ids, codes and times; never data of tasks, secrets, signatures or what a caller
 * sent. What happens as often as ops do is counted (counters.ts) and is not an event.
 */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Flat, so that any logger shows it whole. */
export type EventFields = Readonly<Record<string, string | number | boolean | undefined>>

export interface EventRow {
  readonly level: LogLevel
  /** The message of the line. */
  readonly text: string
  /** The log leaves none of them out: who did what is to be known. */
  readonly is_whole?: true
}

export const eventTable = {
  opened: { level: 'info', text: 'the file is open' },
  closed: { level: 'info', text: 'the file is closed' },
  listening: { level: 'info', text: 'a server listens' },
  risky: { level: 'warn', text: 'something is risky as it is configured' },
  draining: { level: 'info', text: 'the close begins: what is under way is done first' },
  recovered: { level: 'info', text: 'what the last process left in the commit log is recovered' },
  slow_writes: {
    level: 'warn',
    text: 'the disk does not take writes with this flag, so commits are slower',
  },
  slow_commit: { level: 'warn', text: 'a commit takes longer than slow_commit_ms' },
  checkpoint: { level: 'debug', text: 'the data file has what was in the commit log' },
  slow_checkpoint: {
    level: 'warn',
    text: 'a commit of a checkpoint takes longer than slow_commit_ms',
  },
  checkpoint_waits: { level: 'warn', text: 'the disk is full, so a checkpoint waits for room' },
  checkpoint_failed: { level: 'error', text: 'a checkpoint has failed' },
  no_space: { level: 'error', text: 'the disk is full, so writes are refused' },
  space_back: { level: 'info', text: 'the disk has room again, and writes are accepted' },
  role: { level: 'info', text: 'the role of this node has changed' },
  database_away: { level: 'error', text: 'the database of the commit log does not answer' },
  lease_tight: { level: 'warn', text: 'a renewal of the lease takes most of it' },
  node_unfit: { level: 'error', text: 'this node could not be the owner' },
  node_fit: { level: 'info', text: 'this node can be the owner again' },
  ownership_lost: { level: 'warn', text: 'another node has taken over, so this one ends its work' },
  commit_log_failed: { level: 'error', text: 'this node cannot go on with the commit log' },
  log_set_back: { level: 'error', text: 'the database has lost what was committed' },
  database_back: { level: 'info', text: 'the database of the commit log answers again' },
  snapshot: { level: 'info', text: 'a snapshot is in the database, and the log before it may go' },
  snapshot_failed: { level: 'warn', text: 'a snapshot has failed, and is tried again later' },
  snapshot_loading: { level: 'info', text: 'this node loads a snapshot in place of its data' },
  snapshot_loaded: { level: 'info', text: 'this node has loaded a snapshot, and follows the log' },
  backup_begun: { level: 'info', text: 'a backup is made' },
  backup_done: { level: 'info', text: 'the backup is complete' },
  backup_damaged: { level: 'error', text: 'the data is damaged, and so is the copy of it' },
  request_refused: { level: 'warn', text: 'a request is refused' },
  replays_full: {
    level: 'warn',
    text: 'a caller has no room for more answers to repeats, so its new requests are refused',
  },
  certificate_refused: { level: 'warn', text: 'a connection is refused in its TLS handshake' },
  console_session: { level: 'info', text: 'a session of the operator’s page begins or ends' },
  console_acted: {
    level: 'info',
    text: 'somebody has acted on the operator’s page',
    is_whole: true,
  },
  op_refused: { level: 'info', text: 'an op is refused' },
  task_failed: { level: 'error', text: 'a task has failed, and rests until it is retried' },
  handler_failed: {
    level: 'error',
    text: 'a handler has failed, and its task goes on in the error node',
  },
  handler_repeats: { level: 'warn', text: 'a handler has failed and is called again' },
  call_gave_up: {
    level: 'warn',
    text: 'a call has failed, and its task goes on in the error node',
  },
  call_repeats: { level: 'debug', text: 'a call has failed and is made again' },
  code_failed: { level: 'info', text: 'code has failed, and its task goes on in the error node' },
  handler_unused: { level: 'warn', text: 'no node of the process waits for the handler' },
  job_aborted: { level: 'warn', text: 'a job is aborted at the close, and will be done again' },
  job_postponed: {
    level: 'warn',
    text: 'the process is paused at the close, so a job will be done again',
  },
  process_paused: { level: 'warn', text: 'a process was paused: it refuses ops' },
  process_full: {
    level: 'error',
    text: 'a process has process_tasks_max live tasks, so it takes no more',
  },
  process_resumed: { level: 'info', text: 'a paused process goes on' },
  schedule_refused: { level: 'warn', text: 'a due time has no task' },
  schedule_left_out: { level: 'warn', text: 'missed due times are left out' },
  store_failed: {
    level: 'error',
    text: 'a commit has failed, so nothing is written any more: look at the disk',
  },
  write_hangs: {
    level: 'error',
    text: 'a write hangs, so the process is killed; what was answered is in the commit log',
  },
  certificates_reloaded: {
    level: 'info',
    text: 'the certificate files have changed and are in use',
  },
  certificates_unusable: {
    level: 'error',
    text: 'the certificate files have changed and cannot be used; those before stay in use',
  },
  variables_unusable: {
    level: 'error',
    text: 'the file of variables has changed and cannot be used; the values stay as they were',
  },
  lines_left_out: { level: 'warn', text: 'lines of this event and code are left out' },
  lines_dropped: { level: 'warn', text: 'lines were dropped, because nobody took them' },
  key_missing: { level: 'error', text: 'the key file is missing, wrong or cannot be read' },
  key_open: { level: 'warn', text: 'other users may read the key file' },
  secrets_forgotten: {
    level: 'warn',
    text: 'the key was given up, so nobody can sign before he has a new secret',
  },
  key_back: { level: 'info', text: 'the key file is as it should be again' },
  traces_without_sdk: {
    level: 'warn',
    text: 'no OpenTelemetry SDK is registered, so nobody takes the spans',
  },
  bug: { level: 'error', text: 'this is a bug of conveyor, please report it' },
} as const satisfies Record<string, EventRow>

export type EventName = keyof typeof eventTable
