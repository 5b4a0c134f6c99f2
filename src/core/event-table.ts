/**
 * The table of events for operators. Each is one line of the log and is counted. Fields are ids,
 * codes and times; never data of tasks, secrets, signatures or what a caller sent. What happens as
 * often as ops do is counted (counters.ts) instead.
 */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Flat, so that any logger shows it whole. */
export type EventFields = Readonly<Record<string, string | number | boolean | undefined>>

export interface EventRow {
  readonly level: LogLevel
  readonly text: string
  /** Never rate-limited: the log has to show each of these. */
  readonly is_whole?: true
}

const row =
  (level: LogLevel) =>
  (text: string, more: Pick<EventRow, 'is_whole'> = {}): EventRow => ({ level, text, ...more })
const [debug, info, warn, error] = [row('debug'), row('info'), row('warn'), row('error')]

export const eventTable = {
  opened: info('the file is open'),
  closed: info('the file is closed'),
  listening: info('a server listens'),
  risky: warn('something is risky as it is configured'),
  draining: info('the close begins: what is under way is done first'),
  recovered: info('what the last process left in the commit log is recovered'),
  slow_writes: warn('the disk does not take writes with this flag, so commits are slower'),
  slow_commit: warn('a commit takes longer than slow_commit_ms'),
  checkpoint: debug('the data file has what was in the commit log'),
  slow_checkpoint: warn('a commit of a checkpoint takes longer than slow_commit_ms'),
  checkpoint_waits: warn('the disk is full, so a checkpoint waits for room'),
  checkpoint_failed: error('a checkpoint has failed'),
  no_space: error('the disk is full, so writes are refused'),
  space_back: info('the disk has room again, and writes are accepted'),
  role: info('the role of this node has changed'),
  database_away: error('the database of the commit log does not answer'),
  lease_tight: warn('a renewal of the lease takes most of it'),
  node_unfit: error('this node could not be the owner'),
  node_fit: info('this node can be the owner again'),
  ownership_lost: warn('another node has taken over, so this one ends its work'),
  commit_log_failed: error('this node cannot go on with the commit log'),
  log_set_back: error('the database has lost what was committed'),
  database_back: info('the database of the commit log answers again'),
  snapshot: info('a snapshot is in the database, and the log before it may go'),
  snapshot_failed: warn('a snapshot has failed, and is tried again later'),
  snapshot_loading: info('this node loads a snapshot in place of its data'),
  snapshot_loaded: info('this node has loaded a snapshot, and follows the log'),
  backup_begun: info('a backup is made'),
  backup_done: info('the backup is complete'),
  backup_damaged: error('the data is damaged, and so is the copy of it'),
  backup_target: info('the continuous backup goes on in its target'),
  backup_target_away: error('the backup target takes nothing, so what is new has no backup'),
  backup_target_back: info('the backup target takes data again'),
  backup_gap: warn('the backup target was away for too long: a snapshot follows the gap'),
  backup_snapshot: info('the backup target has a new snapshot'),
  backup_snapshot_failed: warn('a snapshot for the backup target has failed, and is tried again'),
  backup_refused: error('the continuous backup has ended: look at its target'),
  request_refused: warn('a request is refused'),
  replays_full: warn(
    'a caller has no room for more answers to repeats, so its new requests are refused',
  ),
  certificate_refused: warn('a connection is refused in its TLS handshake'),
  console_session: info('a session of the operator’s page begins or ends'),
  console_acted: info('an operator has acted on the page', { is_whole: true }),
  process_managed: info('a user has changed a process through the API', { is_whole: true }),
  op_refused: info('an op is refused'),
  task_failed: error('a task has failed, and rests until it is retried'),
  handler_failed: error('a handler has failed, and its task goes on in the error node'),
  handler_repeats: warn('a handler has failed and is called again'),
  call_gave_up: warn('a call has failed, and its task goes on in the error node'),
  call_repeats: debug('a call has failed and is made again'),
  query_failed: warn('a query has failed, and its task goes on in the error node'),
  code_failed: info('code has failed, and its task goes on in the error node'),
  handler_unused: warn('no node of the process waits for the handler'),
  job_aborted: warn('a job is aborted at the close, and will be done again'),
  job_postponed: warn('the process is paused at the close, so a job will be done again'),
  process_paused: warn('a process was paused: it refuses ops'),
  process_full: error('a process has process_tasks_max live tasks, so it takes no more'),
  process_resumed: info('a paused process goes on'),
  schedule_refused: warn('a due time has no task'),
  schedule_left_out: warn('missed due times are left out'),
  store_failed: error('a commit has failed, so nothing is written any more: look at the disk'),
  write_hangs: error(
    'a write hangs, so the process is killed; what was answered is in the commit log',
  ),
  certificates_reloaded: info('the certificate files have changed and are in use'),
  certificates_unusable: error(
    'the certificate files have changed and cannot be used; those before stay in use',
  ),
  variables_unusable: error(
    'the file of variables has changed and cannot be used; the values stay as they were',
  ),
  lines_left_out: warn('lines of this event and code are left out'),
  lines_dropped: warn('lines were dropped, because they were not read'),
  key_missing: error('the key file is missing, wrong or cannot be read'),
  key_open: warn('other users may read the key file'),
  secrets_forgotten: warn('the key was given up, so each user needs a new secret to sign'),
  key_back: info('the key file is as it should be again'),
  traces_without_sdk: warn('no OpenTelemetry SDK is registered, so spans are lost'),
  bug: error('this is a bug of conveyor, please report it'),
}

export type EventName = keyof typeof eventTable
