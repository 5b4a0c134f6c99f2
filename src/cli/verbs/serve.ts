/**
 * `serve`: opens the file and answers requests until it gets a stop signal or can no longer write.
 * It drains before it ends, so every accepted request is answered.
 */
import { missingOf, serverFiles } from '../../certs/folder.ts'
import { isFault } from '../../core/faults.ts'
import type { Engine, EngineOptions } from '../../engine/api.ts'
import { openEngine } from '../../open.ts'
import { engineOptionsFrom, heldFault } from '../admin-connection.ts'
import { type Exit, exits, isRangeError, unreachableError, usageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { makeDemoCertificates } from '../serve/demo.ts'
import { limitsOf, serve_flags } from '../serve/flags.ts'
import { printListening } from '../serve/listening.ts'
import { openServeLog, type ServeLog } from '../serve/log.ts'
import { tellRisks } from '../serve/risks.ts'
import { startServers, type WantedServers, wantedServers } from '../serve/servers.ts'
import { killIfHung, newStop, type Stop, untilEnd } from '../serve/stop.ts'
import { tracingOf } from '../serve/traces.ts'
import { variablesOf } from '../serve/variables-file.ts'
import { dbOf, type Given, isOn, list, text, type Verb } from '../verb.ts'

export const serveVerb: Verb = {
  name: 'serve',
  words: [],
  flags: serve_flags,
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
  const log = await openServeLog(given, io)
  const stop = newStop(io)
  try {
    return await serveUntil(stop, given, io, log, { wanted, limits })
  } finally {
    await log.close()
    stop.dispose()
  }
}

async function serveUntil(
  stop: Stop,
  given: Given,
  io: Io,
  log: ServeLog,
  { wanted, limits }: { wanted: WantedServers; limits: EngineOptions['limits'] },
): Promise<Exit> {
  const variables = await variablesOf(given, io)
  const tracing = await tracingOf(given)
  const engine = await openToServe(given, {
    ...{ ...(limits && { limits }), onFailure: stop.fail, logger: log.logger },
    ...{ tracing, ...(variables === undefined ? {} : { variables: variables.first }) },
  })
  const stopWatching = variables?.watch(engine, log.tell)
  const watchdog = killIfHung(engine, io, log)
  void stop.reason.then(watchdog.flush)
  try {
    const tls = await certificatesOf(given, io, engine, wanted)
    const servers = await startServers(engine, wanted, tls)
    const failure = await untilEnd(engine, servers, async () => {
      await tellRisks(given, io, engine, wanted)
      await printListening(given, io, engine, servers, tls)
      return stop.reason
    })
    // The log has said why.
    return failure === undefined ? exits.done : exits.unreachable
  } finally {
    stopWatching?.()
    await watchdog.close()
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

async function openToServe(
  given: Given,
  how: Pick<EngineOptions, 'limits' | 'onFailure' | 'logger' | 'variables' | 'tracing'>,
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
