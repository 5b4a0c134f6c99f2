/** The flags of `serve`, and the limits that they give. */
import { lease_default_ms } from '../../cluster/node/settings.ts'
import { defined } from '../../core/defined.ts'
import { type LimitName, limitNames, limitTable } from '../../core/limits.ts'
import type { Tracing } from '../../core/tracing.ts'
import type { EngineOptions, ReplayMode } from '../../engine/api/engine-api.ts'
import { replay_modes } from '../../engine/replays/replays.ts'
import { usageError } from '../exit-codes.ts'
import { db_flag, type Flag, flag, type Given, isOn, json_flag, text } from '../verb.ts'
import { databases_flag } from './databases-file.ts'
import { log_level_flag } from './log.ts'

const limit_flags: readonly Flag[] = limitNames.map((name) => ({
  name: name.replaceAll('_', '-'),
  value: 'N',
  says: `${limitTable[name].says} (${limitTable[name].value})`,
}))

export const commit_log_flag: Flag = flag(
  'commit-log URL',
  'the database of the cluster, as postgres://USER@HOST:PORT/NAME',
)

export const partition_flag: Flag = flag('partition N', 'the partition of the cluster (0)')

export const serve_flags: readonly Flag[] = [
  flag(
    'http HOST:PORT',
    'where to answer (127.0.0.1:8080); port 0 picks one, `fd:3` takes one, `off`: none',
  ),
  flag(
    'http-sync HOST:PORT',
    'where to answer signed requests with what their processes answer (default off)',
  ),
  flag('grpc HOST:PORT', 'where to answer gRPC over mutual TLS (default off)'),
  flag(
    'operator HOST:PORT',
    'where to serve the operator’s page, health, metrics and changes (default off)',
  ),
  flag(
    'operator-tls DIR',
    'the operator’s listener over TLS, with ca.crt for its clients unless a token is given',
  ),
  flag(
    'operator-token-file FILE',
    'the token that the operator’s listener asks for (else CONVEYOR_OPERATOR_TOKEN)',
  ),
  flag('operator-read-only', 'sessions of the operator’s page may only read'),
  flag(
    'console-plain-http',
    'the operator’s page beyond loopback without TLS, where a proxy before it has that',
  ),
  flag('tls DIR', 'ca.crt, server.crt and server.key, as `certs init` makes'),
  flag('grpc-strict', 'refuse certificates without a binding'),
  flag('reflection', 'let gRPC callers list the methods of the service'),
  flag('demo', 'on a new file: a user, a process, and lines to paste'),
  flag('base PATH', 'the path in front of /api'),
  flag('public-url URL', 'where callers reach /api from outside, for addresses made for them'),
  flag(
    'replay HOW',
    'what a repeated request gets: `answer` as the first (default), `reject`, or `off`',
  ),
  flag('window SECONDS', 'how far a timestamp may be off; 0 allows any'),
  flag('allow-host HOST:PORT', 'calls of processes may reach it although it is no public address', {
    many: true,
  }),
  flag(
    'variables FILE',
    'what {{env_var[@name]}} gives: a JSON object; read again when it changes',
  ),
  databases_flag,
  {
    ...commit_log_flag,
    says: 'be a node of a cluster: the commit log in PostgreSQL (postgres://USER@HOST:PORT/NAME)',
  },
  flag('backup-to FOLDER', 'ship each change to this folder, for a restore to any moment'),
  {
    name: 'backup-lag-ms',
    value: 'N',
    says: 'so old may a change be that is not shipped yet (1000)',
  },
  flag('node NAME', 'the name of this node (default the name of the host)'),
  flag(
    'address HOST:PORT',
    'where callers reach this node; other nodes send them there (default that of --http)',
  ),
  partition_flag,
  {
    name: 'lease-ms',
    value: 'N',
    says: `so long without a sign of the owner, and another node takes over (${lease_default_ms})`,
  },
  flag(
    'stale-reads',
    'answer reads while this node is a standby: what it has, which may be old (default off)',
  ),
  flag('stale-reads-max-age MS', 'refuse reads of what may be older (default none)'),
  flag('unsafe-commit-log', 'take a database whose settings may lose what was answered'),
  log_level_flag,
  flag(
    'traces',
    'make spans for the OpenTelemetry SDK that `node --import` has registered (default off)',
  ),
  db_flag,
  json_flag,
  ...limit_flags,
]

export function limitsOf(given: Given): Partial<Record<LimitName, number>> {
  const limits: Partial<Record<LimitName, number>> = {}
  for (const name of limitNames) {
    const flag = name.replaceAll('_', '-')
    const value = text(given, flag)
    if (value !== undefined) limits[name] = wholeNumber(flag, value)
  }
  const window = text(given, 'window')
  if (window !== undefined) limits.window_ms = 1_000 * wholeNumber('window', window)
  return limits
}

export function wholeNumber(flag: string, given: string): number {
  if (!/^[0-9]{1,15}$/.test(given)) throw usageError(`--${flag} takes a whole number`)
  return Number(given)
}

/** Undefined where it is not said. Throws a usage fault. */
export function replayOf(given: Given): ReplayMode | undefined {
  const mode = text(given, 'replay')
  if (mode === undefined) return undefined
  const known = replay_modes.find((one) => one === mode)
  if (known === undefined) throw usageError(`--replay takes ${replay_modes.join(', ')}`)
  return known
}

/** Undefined without a bound. Throws a usage fault. */
export function staleAgeOf(given: Given): number | undefined {
  const age = text(given, 'stale-reads-max-age')
  if (age === undefined) return undefined
  if (!isOn(given, 'stale-reads')) throw usageError('--stale-reads-max-age is for --stale-reads')
  return wholeNumber('stale-reads-max-age', age)
}

/** What is given of the continuous backup. Throws a usage fault. */
export function backupOf(given: Given): Pick<EngineOptions, 'backup_to' | 'backup_lag_ms'> {
  const [backup_to, lag] = [text(given, 'backup-to'), text(given, 'backup-lag-ms')]
  if (backup_to === undefined) {
    if (lag !== undefined) throw usageError('--backup-lag-ms is for --backup-to FOLDER')
    return {}
  }
  if (text(given, 'commit-log') !== undefined) {
    throw usageError('--backup-to is for a data file of its own; back the database up instead')
  }
  const backup_lag_ms = lag === undefined ? undefined : wholeNumber('backup-lag-ms', lag)
  if (backup_lag_ms === 0) throw usageError('--backup-lag-ms is at least 1')
  return { backup_to, ...defined({ backup_lag_ms }) }
}

/** Undefined without the flag. Refuses it where the package is not installed. */
export async function tracingOf(given: Given): Promise<Tracing | undefined> {
  if (!isOn(given, 'traces')) return undefined
  try {
    const { openTelemetryTracing } = await import('../../tracing/opentelemetry.ts')
    return openTelemetryTracing()
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error
    throw usageError('--traces needs @opentelemetry/api: `npm install @opentelemetry/api`')
  }
}
