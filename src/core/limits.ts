/**
 * The table of all limits. Each row is a default, a limit of `openEngine`, and a flag of `conveyor
 * serve`: the name with dashes, as in `--ops-max 500`. The unit comes last in a name, before `max`
 * or `min`. `serveHttp` and `serveGrpc` have limits of their own, for connections, heads and
 * bodies; there `ops_max` can only be lowered.
 */

interface LimitRow {
  readonly value: number
  /** The highest value, where the file format bounds it. */
  readonly max?: number
  readonly says: string
}

export const limitTable = {
  body_bytes_max: { value: 16 * 1024 * 1024, says: 'bytes of one request body' },
  body_values_max: { value: 100_000, says: 'JSON values in one body' },
  nesting_max: {
    value: 64,
    max: 1_000,
    says: 'levels of nesting, the body’s own object counted as 1',
  },
  ops_max: { value: 1_000, says: 'ops in one request' },
  task_bytes_max: { value: 131_072, says: 'bytes of a task’s data as stored' },
  ref_chars_max: { value: 255, max: 255, says: 'code points of a ref' },
  conv_id_chars_max: { value: 64, max: 64, says: 'code points of a conv_id' },
  node_id_chars_max: { value: 64, max: 64, says: 'code points of a node id' },
  certificate_name_bytes_max: { value: 255, max: 255, says: 'bytes of a certificate name' },
  header_bytes_max: { value: 8_192, says: 'bytes of a request’s headers' },
  header_count_max: { value: 64, says: 'headers of a request' },
  header_ms_max: { value: 10_000, says: 'milliseconds until the headers are in' },
  request_ms_max: { value: 30_000, says: 'milliseconds until the body is in' },
  idle_ms_max: { value: 65_000, says: 'milliseconds an idle connection is kept' },
  connections_max: { value: 10_000, says: 'open connections of one listener' },
  address_connections_max: {
    value: 5_000,
    says: 'of those, from one address or one IPv6 network of 64 bits',
  },
  pipelined_max: {
    value: 256,
    says: 'requests of one HTTP connection whose answers it has not read yet',
  },
  queue_ops_max: { value: 10_000, says: 'ops accepted and not yet on disk' },
  queue_bytes_max: { value: 64 * 1024 * 1024, says: 'bytes of ops accepted and not yet on disk' },
  waiting_bytes_max: {
    value: 256 * 1024 * 1024,
    says: 'bytes of calls in this process that wait for room in the queue',
  },
  answer_bytes_max: { value: 16 * 1024 * 1024, says: 'bytes of tasks that one request shows' },
  connection_answer_bytes_max: {
    value: 64 * 1024 * 1024,
    says: 'bytes of answers that a connection has not read yet',
  },
  caller_answer_bytes_max: {
    value: 128 * 1024 * 1024,
    says: 'bytes of answers that a caller has not read yet, on all connections',
  },
  answers_bytes_max: {
    value: 256 * 1024 * 1024,
    says: 'bytes of answers not read yet, in all',
  },
  sync_waits_max: { value: 10_000, says: 'tasks that synchronous requests wait for' },
  results_waiting_max: { value: 10_000, says: 'calls that wait for the result of a task' },
  unverified_bytes_max: {
    value: 64 * 1024 * 1024,
    says: 'bytes of bodies not yet verified, in all',
  },
  large_body_bytes: { value: 65_536, says: 'bytes from which an unverified body counts as large' },
  large_bodies_max: { value: 16, says: 'large unverified bodies at once from one address' },
  window_ms: {
    value: 300_000,
    says: 'how far a timestamp may be off either way; 0 switches it off',
  },
  rate_ops_per_s: {
    value: 500_000,
    says: 'ops, searches and waits a second of one user or certificate; 0 sets no rate',
  },
  replay_bytes_max: {
    value: 16 * 1024 ** 3,
    says: 'bytes kept to answer repeats of requests; 0 sets no bound',
  },
  process_tasks_max: { value: 10_000_000, says: 'live tasks of one process; 0 sets no limit' },
  ended_kept_ms: { value: 7 * 86_400_000, says: 'milliseconds an ended or canceled task is kept' },
  history_max: { value: 64, max: 1_000, says: 'entries of a task’s history; 0 keeps none' },
  moves_per_transaction_max: { value: 1_000, says: 'moves that one op causes in one transaction' },
  moves_without_rest_max: {
    value: 10_000,
    max: 4_294_967_295,
    says: 'moves of one task without a wait',
  },
  code_ms_max: { value: 1_000, says: 'milliseconds one run of code may take' },
  code_bytes_max: { value: 32 * 1024 * 1024, says: 'bytes of memory one run of code may take' },
  code_threads_max: { value: 1, says: 'runs of code at once' },
  call_ms_max: { value: 60_000, says: 'milliseconds one call may take' },
  call_wait_ms_max: { value: 300_000, says: 'milliseconds a call may wait until others are over' },
  call_bytes_max: { value: 1024 * 1024, says: 'bytes of the answer to a call' },
  call_host_max: { value: 16, says: 'calls under way at once to one host' },
  jobs_max: { value: 64, says: 'calls, code and handlers under way at once' },
  slice_tasks_max: {
    value: 256,
    says: 'tasks that one step of timers, removals, migrations or handlers takes',
  },
  schedules_max: { value: 1_000, says: 'schedules that are stored' },
  catch_up_max: { value: 1_000, says: 'missed due times that a schedule makes up for at once' },
  search_tasks_max: { value: 10_000, says: 'tasks that one call of a search reads' },
  disk_free_bytes_min: { value: 64 * 1024 * 1024, says: 'bytes free below which writing stops' },
  checkpoint_bytes: {
    value: 0,
    max: 512 * 1024 * 1024,
    says: 'bytes of changes, plus 128 a key, between two checkpoints; 0: by the memory',
  },
  slow_commit_ms: { value: 1_000, says: 'milliseconds from which on a commit is logged as slow' },
  ready_ms_max: { value: 2_000, says: 'milliseconds a commit may take before it is not ready' },
  drain_ms_max: { value: 20_000, says: 'milliseconds requests and jobs under way get at shutdown' },
  changes_kept_ms: { value: 3_600_000, says: 'how long changes are kept for consumers' },
  changes_bytes_max: {
    value: 64 * 1024 * 1024,
    says: 'bytes of changes kept for consumers; 0 keeps none',
  },
  processes_measured_max: {
    value: 200,
    says: 'processes with rows of their own in metrics; the others share one',
  },
  readers_max: { value: 64, says: 'readers of changes, and of live views, over HTTP at once' },
  reader_beat_ms: {
    value: 15_000,
    says: 'milliseconds between two comments to a reader of changes over HTTP',
  },
  reader_stalled_ms_max: {
    value: 30_000,
    says: 'milliseconds a reader of changes over HTTP may leave them unread',
  },
  grpc_streams_max: { value: 100, says: 'calls at once on one gRPC connection' },
  grpc_batches_max: { value: 256, says: 'batches under way of one StreamOps call' },
  grpc_session_bytes_max: {
    value: 16 * 1024 * 1024,
    says: 'bytes of headers and frames kept for one gRPC connection',
  },
  grpc_idle_ms_max: {
    value: 300_000,
    says: 'milliseconds a gRPC connection without calls is kept',
  },
  grpc_age_ms_max: {
    value: 1_800_000,
    says: 'milliseconds a gRPC connection takes new calls, and a call goes on',
  },
  grpc_ping_ms: {
    value: 60_000,
    says: 'milliseconds until a silent gRPC peer is sent a ping',
  },
  tls_reload_ms: { value: 1_000, says: 'milliseconds between two looks at the certificate files' },
  variables_reload_ms: {
    value: 1_000,
    says: 'milliseconds between two looks at the file of variables',
  },
} as const satisfies Record<string, LimitRow>

export type LimitName = keyof typeof limitTable
export type Limits = Readonly<Record<LimitName, number>>

export const limitNames = Object.keys(limitTable) as LimitName[]

/**
 * The defaults, overridden by the given values. Throws a RangeError that names the limit if there
 * is none of this name, or the value is no whole number from 0 to its highest.
 */
export function limitsWith(given: Partial<Record<LimitName, number>> = {}): Limits {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(limitTable, name)) throw new RangeError(`there is no limit ${name}`)
  }
  const limits = {} as Record<LimitName, number>
  for (const name of limitNames) {
    const value = given[name] ?? limitTable[name].value
    const row: LimitRow = limitTable[name]
    const { max = Number.MAX_SAFE_INTEGER } = row
    if (!Number.isSafeInteger(value) || value < 0 || value > max) {
      throw new RangeError(`${name}: ${String(value)} is no whole number from 0 to ${max}`)
    }
    limits[name] = value
  }
  return limits
}
