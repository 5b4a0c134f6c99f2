/**
 * `serve`: opens the file and answers requests until it gets a stop signal or can no longer write.
 * It drains before it ends, so every accepted request is answered.
 */
import { missingOf, serverFiles } from '../../certs/folder.ts'
import { within } from '../../core/clock.ts'
import { type Fault, isFault } from '../../core/faults.ts'
import { type LimitName, limitNames, limitTable } from '../../core/limits.ts'
import type { Engine, EngineOptions } from '../../engine/api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import { openEngine } from '../../open.ts'
import { engineOptionsFrom, heldFault } from '../admin-connection.ts'
import { type Exit, exits, isRangeError, unreachableError, usageError } from '../exit-codes.ts'
import { type Io, print } from '../io.ts'
import {
  db_flag,
  dbOf,
  type Flag,
  type Given,
  isOn,
  json_flag,
  list,
  text,
  type Verb,
} from '../verb.ts'
import {
  bindDemo,
  demoGrpcText,
  demoJson,
  demoText,
  hasDemoClient,
  makeDemo,
  makeDemoCertificates,
} from './demo.ts'
import { type RunningServers, startServers, type WantedServers, wantedServers } from './servers.ts'
import { variablesOf } from './variables-file.ts'

const limit_flags: readonly Flag[] = limitNames.map((name) => ({
  name: name.replaceAll('_', '-'),
  value: 'N',
  says: `${limitTable[name].says} (${limitTable[name].value})`,
}))

export const serveVerb: Verb = {
  name: 'serve',
  words: [],
  flags: [
    {
      name: 'http',
      value: 'HOST:PORT',
      says: 'where to answer (default 127.0.0.1:8080); port 0 picks one, `off` opens none',
    },
    {
      name: 'http-sync',
      value: 'HOST:PORT',
      says: 'where to answer signed requests with what their processes answer (default off)',
    },
    {
      name: 'grpc',
      value: 'HOST:PORT',
      says: 'where to answer gRPC over mutual TLS (default off)',
    },
    {
      name: 'operator',
      value: 'HOST:PORT',
      says: 'where to tell the operator health and changes, on this machine only (default off)',
    },
    { name: 'tls', value: 'DIR', says: 'ca.crt, server.crt and server.key, as `certs init` makes' },
    { name: 'grpc-strict', says: 'refuse certificates without a binding' },
    { name: 'reflection', says: 'tell gRPC callers what the service offers' },
    { name: 'demo', says: 'on a new file: a user, a process, and lines to paste' },
    { name: 'base', value: 'PATH', says: 'the path in front of /api' },
    {
      name: 'public-url',
      value: 'URL',
      says: 'where callers reach /api from outside, for addresses made for them',
    },
    { name: 'window', value: 'SECONDS', says: 'how far a timestamp may be off; 0 allows any' },
    {
      name: 'allow-host',
      value: 'HOST:PORT',
      many: true,
      says: 'calls of processes may reach it although it is no public address',
    },
    {
      name: 'variables',
      value: 'FILE',
      says: 'what {{env_var[@name]}} gives: a JSON object; read again when it changes',
    },
    db_flag,
    json_flag,
    ...limit_flags,
  ],
  says: 'answer signed requests, and gRPC calls',
  notes: [
    'The data file is made where it is missing. SIGTERM and SIGINT end it once what is under way',
    'is done; a second one ends it at once. A number in brackets is the default.',
  ],
  run: serve,
}

async function serve(given: Given, io: Io): Promise<Exit> {
  const wanted = wantedServers(given)
  const limits = limitsOf(given)
  if (isOn(given, 'demo') && wanted.http === undefined) throw usageError('--demo needs --http')
  const json = isOn(given, 'json')
  const onBug = (error: unknown): void => {
    void print(io.stderr, bugLine(error, json))
  }
  const stop = newStop(io)
  try {
    const printNotice = (sentence: string): Promise<void> =>
      print(io.stderr, noticeLine(sentence, json))
    const onNotice = (sentence: string): void => void printNotice(sentence)
    const variables = await variablesOf(given, io)
    const engine = await openToServe(given, {
      ...{ limits, onFailure: stop.fail, onBug },
      ...(variables === undefined ? {} : { variables: variables.first }),
    })
    const stopWatching = variables?.watch(engine, onNotice)
    const watchdog = killIfHung(engine, io, printNotice)
    void stop.reason.then(watchdog.flush)
    try {
      const tls = await certificatesOf(given, io, engine, wanted)
      const servers = await startServers(engine, wanted, { tls, onBug })
      const failure = await untilEnd(engine, servers, async () => {
        await printReady(given, io, engine, servers, tls)
        return stop.reason
      })
      if (failure !== undefined) {
        throw unreachableError(
          `${failure.message}, so serving ends: look at the disk`,
          failure.code,
        )
      }
    } finally {
      stopWatching?.()
      await watchdog.close()
    }
    return exits.done
  } finally {
    stop.dispose()
  }
}

/** A close may take this many times `drain_ms_max`, because it checkpoints the commit log. */
const close_times_drain = 6

/**
 * Kills the process where a flush takes longer than `drain_ms_max` or the close does not finish,
 * because no signal ends a hanging write. Answered requests are not lost: they are in the commit
 * log.
 */
function killIfHung(engine: Engine, io: Io, printNotice: (sentence: string) => Promise<void>) {
  const { drain_ms_max } = engine.limits
  const inTime = async (work: Promise<void>, ms_max: number): Promise<void> => {
    if ((await within(io.clock, ms_max, work)) !== 'late') return
    await printNotice(
      'a write hangs, so the process is killed; what was answered is in the commit log',
    )
    io.kill()
  }
  return {
    flush: () => inTime(engine.flush(), drain_ms_max),
    close: () => inTime(engine.close(), close_times_drain * drain_ms_max),
  }
}

/** The result of `run`; in any case requests and jobs get the same `drain_ms_max` then. */
async function untilEnd<T>(
  engine: Engine,
  servers: RunningServers,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run()
  } finally {
    await Promise.all([servers.drain(), servedEngine(engine).drain()])
  }
}

/** The folder of certificates for a gRPC server, if wanted; `--demo` makes missing ones. */
async function certificatesOf(
  given: Given,
  io: Io,
  engine: Engine,
  wanted: WantedServers,
): Promise<string | undefined> {
  if (wanted.grpc === undefined) return undefined
  const folder = text(given, 'tls') ?? `${engine.path}.tls`
  if (isOn(given, 'demo')) await makeDemoCertificates(folder, io.clock)
  const missing = await missingOf(folder, serverFiles)
  if (missing.length === 0) return folder
  throw unreachableError(
    `${folder} holds no ${missing.join(', ')}: \`npx conveyor certs init ${folder}\` makes them`,
  )
}

async function printReady(
  given: Given,
  io: Io,
  engine: Engine,
  servers: RunningServers,
  tls: string | undefined,
): Promise<void> {
  const { http, http_sync, operator, grpc } = servers
  const demo = isOn(given, 'demo') ? await makeDemo(engine) : undefined
  const grpc_lines =
    demo !== undefined && demo.state !== 'not_new' && grpc !== undefined && tls !== undefined
      ? await demoCalls(engine, grpc, tls)
      : ''
  if (isOn(given, 'json')) {
    const line = {
      event: 'listening',
      http: http ?? null,
      http_sync: http_sync ?? null,
      grpc: grpc ?? null,
      operator: operator ?? null,
      db: engine.path,
      pid: io.pid,
      ...(demo === undefined ? {} : { demo: demoJson(demo) }),
    }
    await print(io.stdout, `${JSON.stringify(line)}\n`)
    return
  }
  const sync_line = http_sync === undefined ? '' : `sync  ${http_sync}\n`
  const operator_line = operator === undefined ? '' : `operator  ${operator}\n`
  const served = `http  ${http ?? 'off'}\n${sync_line}grpc  ${grpc ?? 'off'}\n${operator_line}`
  await print(io.stdout, `${served}db    ${engine.path}\n`)
  if (demo === undefined) return
  await print(io.stdout, demoText(demo, http ?? '', io.program) + grpc_lines)
}

interface Stop {
  /** Resolves with undefined on a stop signal, with the Fault when the engine fails. */
  readonly reason: Promise<Fault | undefined>
  readonly fail: (failure: Fault) => void
  dispose(): void
}

function newStop(io: Io): Stop {
  let resolve: (failure: Fault | undefined) => void = () => {}
  const reason = new Promise<Fault | undefined>((done) => {
    resolve = done
  })
  return { reason, fail: resolve, dispose: io.onStop(() => resolve(undefined)) }
}

async function openToServe(
  given: Given,
  how: Pick<EngineOptions, 'limits' | 'onFailure' | 'onBug' | 'variables'>,
): Promise<Engine> {
  const path = dbOf(given)
  try {
    return await openEngine(path, {
      ...how,
      admin: true,
      blocking_commits: false,
      probe: true,
      allow_hosts: list(given, 'allow-host'),
      public_url: text(given, 'public-url'),
      ...engineOptionsFrom(given.env),
    })
  } catch (error) {
    if (isRangeError(error)) throw usageError(error.message)
    if (!isFault(error)) throw error
    if (error.code === 'file_held') throw await heldFault(path)
    throw unreachableError(error.message, error.code)
  }
}

function noticeLine(message: string, json: boolean): string {
  return json ? `${JSON.stringify({ event: 'notice', message })}\n` : `conveyor: ${message}\n`
}

/** The line for unusable new certificates, or for a bug. */
function bugLine(error: unknown, json: boolean): string {
  if (isOfCertificates(error)) {
    const { code, message } = error
    return json ? `${JSON.stringify({ event: code, message })}\n` : `conveyor: ${message}\n`
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  if (json) return `${JSON.stringify({ event: 'bug', stack })}\n`
  return `conveyor: this is a bug of conveyor, please report it\n${stack}\n`
}

function isOfCertificates(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && (error as { code?: unknown }).code === 'bad_certificates'
}

/** Binds the demo's certificate and answers the line to paste; empty without that certificate. */
async function demoCalls(engine: Engine, address: string, tls: string): Promise<string> {
  if (!(await hasDemoClient(tls))) return ''
  await bindDemo(engine)
  return demoGrpcText(address, tls)
}

function limitsOf(given: Given): Partial<Record<LimitName, number>> {
  const limits: Partial<Record<LimitName, number>> = {}
  for (const name of limitNames) {
    const flag = name.replaceAll('_', '-')
    const value = text(given, flag)
    if (value !== undefined) limits[name] = wholeNumber(flag, value)
  }
  const window = text(given, 'window')
  if (window !== undefined) limits.window_s = wholeNumber('window', window)
  return limits
}

function wholeNumber(flag: string, given: string): number {
  if (!/^[0-9]{1,15}$/.test(given)) throw usageError(`--${flag} takes a whole number`)
  return Number(given)
}
