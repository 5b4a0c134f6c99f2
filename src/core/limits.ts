/**
 * The table of all limits. Each row is a default, an option of `openEngine` and a flag of `conveyor
 * serve` (`--ops-max 500`). The unit comes last in a name, before `max` or `min`. `serveHttp` and
 * `serveGrpc` have limits of their own for connections, heads and bodies.
 */

interface LimitRow {
  readonly value: number
  /** The highest value; the file format bounds some. */
  readonly max: number
  readonly says: string
}

const limit = (value: number, says: string, max = Number.MAX_SAFE_INTEGER): LimitRow => ({
  value,
  says,
  max,
})
const mib = 1024 * 1024

export const limitTable = {
  body_bytes_max: limit(16 * mib, 'bytes of one request body'),
  body_values_max: limit(100_000, 'JSON values in one body'),
  nesting_max: limit(64, 'levels of nesting, the body’s own object counted as 1', 1_000),
  ops_max: limit(1_000, 'ops in one request'),
  task_bytes_max: limit(131_072, 'bytes of a task’s data as stored'),
  ref_chars_max: limit(255, 'code points of a ref', 255),
  conv_id_chars_max: limit(64, 'code points of a conv_id', 64),
  node_id_chars_max: limit(64, 'code points of a node id', 64),
  certificate_name_bytes_max: limit(255, 'bytes of a certificate name', 255),
  header_bytes_max: limit(8_192, 'bytes of a request’s headers'),
  header_count_max: limit(64, 'headers of a request'),
  header_ms_max: limit(10_000, 'milliseconds until the headers are in'),
  request_ms_max: limit(30_000, 'milliseconds until the body is in'),
  idle_ms_max: limit(65_000, 'milliseconds an idle connection is kept'),
  connections_max: limit(10_000, 'open connections of one listener'),
  address_connections_max: limit(
    5_000,
    'of those, from one address or one IPv6 network of 64 bits',
  ),
  pipelined_max: limit(256, 'requests of one HTTP connection whose answers it has not read yet'),
  queue_ops_max: limit(10_000, 'ops accepted and not yet on disk'),
  queue_bytes_max: limit(64 * mib, 'bytes of ops accepted and not yet on disk'),
  waiting_bytes_max: limit(
    256 * mib,
    'bytes of calls in this process that wait for room in the queue',
  ),
  answer_bytes_max: limit(16 * mib, 'bytes of tasks that one request shows'),
  connection_answer_bytes_max: limit(
    64 * mib,
    'bytes of answers that a connection has not read yet',
  ),
  caller_answer_bytes_max: limit(
    128 * mib,
    'bytes of answers that a caller has not read yet, on all connections',
  ),
  answers_bytes_max: limit(256 * mib, 'bytes of answers not read yet, in all'),
  sync_waits_max: limit(10_000, 'tasks that synchronous requests wait for'),
  results_waiting_max: limit(10_000, 'calls that wait for the result of a task'),
  unverified_bytes_max: limit(64 * mib, 'bytes of bodies not yet verified, in all'),
  large_body_bytes: limit(65_536, 'bytes from which an unverified body counts as large'),
  large_bodies_max: limit(16, 'large unverified bodies at once from one address'),
  window_ms: limit(300_000, 'how far a timestamp may be off either way; 0 switches it off'),
  rate_ops_per_s: limit(
    500_000,
    'ops, searches and waits a second of one user or certificate; 0 sets no rate',
  ),
  replay_bytes_max: limit(
    16 * 1024 ** 3,
    'bytes kept to answer repeats of requests; 0 sets no bound',
  ),
  process_tasks_max: limit(10_000_000, 'live tasks of one process; 0 sets no limit'),
  ended_kept_ms: limit(7 * 86_400_000, 'milliseconds an ended or canceled task is kept'),
  history_max: limit(64, 'entries of a task’s history; 0 keeps none', 1_000),
  moves_per_transaction_max: limit(1_000, 'moves that one op causes in one transaction'),
  moves_without_rest_max: limit(10_000, 'moves of one task without a wait', 4_294_967_295),
  code_ms_max: limit(1_000, 'milliseconds one run of code may take'),
  code_bytes_max: limit(32 * mib, 'bytes of memory one run of code may take'),
  code_threads_max: limit(1, 'runs of code at once'),
  call_ms_max: limit(60_000, 'milliseconds one call may take'),
  call_wait_ms_max: limit(300_000, 'milliseconds a call may wait until others are over'),
  call_bytes_max: limit(mib, 'bytes of the answer to a call'),
  call_host_max: limit(16, 'calls under way at once to one host'),
  jobs_max: limit(64, 'calls, code and handlers under way at once'),
  slice_tasks_max: limit(
    256,
    'tasks that one step of timers, removals, migrations or handlers takes',
  ),
  schedules_max: limit(1_000, 'schedules that are stored'),
  catch_up_max: limit(1_000, 'missed due times that a schedule makes up for at once'),
  search_tasks_max: limit(10_000, 'tasks that one call of a search reads'),
  disk_free_bytes_min: limit(64 * mib, 'bytes free below which writing stops'),
  checkpoint_bytes: limit(
    0,
    'bytes of changes, plus 128 a key, between two checkpoints; 0: by the memory',
    512 * mib,
  ),
  slow_commit_ms: limit(1_000, 'milliseconds from which on a commit is logged as slow'),
  ready_ms_max: limit(2_000, 'milliseconds a commit may take before it is not ready'),
  drain_ms_max: limit(20_000, 'milliseconds requests and jobs under way get at shutdown'),
  changes_kept_ms: limit(3_600_000, 'how long changes are kept for consumers'),
  changes_bytes_max: limit(64 * mib, 'bytes of changes kept for consumers; 0 keeps none'),
  processes_measured_max: limit(
    200,
    'processes with rows of their own in metrics; the others share one',
  ),
  readers_max: limit(64, 'readers of changes, and of live views, over HTTP at once'),
  reader_beat_ms: limit(
    15_000,
    'milliseconds between two comments to a reader of changes over HTTP',
  ),
  reader_stalled_ms_max: limit(
    30_000,
    'milliseconds a reader of changes over HTTP may leave them unread',
  ),
  grpc_streams_max: limit(100, 'calls at once on one gRPC connection'),
  grpc_batches_max: limit(256, 'batches under way of one StreamOps call'),
  grpc_session_bytes_max: limit(
    16 * mib,
    'bytes of headers and frames kept for one gRPC connection',
  ),
  grpc_idle_ms_max: limit(300_000, 'milliseconds a gRPC connection without calls is kept'),
  grpc_age_ms_max: limit(
    1_800_000,
    'milliseconds a gRPC connection takes new calls, and a call goes on',
  ),
  grpc_ping_ms: limit(60_000, 'milliseconds until a silent gRPC peer is sent a ping'),
  tls_reload_ms: limit(1_000, 'milliseconds between two looks at the certificate files'),
  variables_reload_ms: limit(1_000, 'milliseconds between two looks at the file of variables'),
}

export type LimitName = keyof typeof limitTable
export type Limits = Readonly<Record<LimitName, number>>

export const limitNames = Object.keys(limitTable) as LimitName[]

/**
 * The defaults, overridden by the given values. Throws a RangeError that names an unknown limit, or
 * one whose value is not an integer from 0 to its maximum.
 */
export function limitsWith(given: Partial<Record<LimitName, number>> = {}): Limits {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(limitTable, name)) throw new RangeError(`there is no limit ${name}`)
  }
  const limits = {} as Record<LimitName, number>
  for (const name of limitNames) {
    const { max, value: usual } = limitTable[name]
    const value = given[name] ?? usual
    if (!Number.isSafeInteger(value) || value < 0 || value > max) {
      throw new RangeError(`${name}: ${String(value)} is no whole number from 0 to ${max}`)
    }
    limits[name] = value
  }
  return limits
}
