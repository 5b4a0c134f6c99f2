/**
 * `serve`: opens the file and answers requests until it gets a stop signal or can no longer write.
 * It drains before it ends, so every accepted request is answered.
 */
import { defined } from '../../core/defined.ts'
import { type Fault, isFault } from '../../core/faults.ts'
import { limitsWith } from '../../core/limits.ts'
import type { Engine, EngineOptions } from '../../engine/api/engine-api.ts'
import { openEngine } from '../../open.ts'
import { engineOptionsFrom, heldFault } from '../admin-connection.ts'
import { type Exit, exits, isRangeError, unreachableError, usageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { databasesOf } from '../serve/databases-file.ts'
import { makeDemoCertificates } from '../serve/demo.ts'
import { backupOf, limitsOf, replayOf, serve_flags, staleAgeOf, tracingOf } from '../serve/flags.ts'
import { printClosed, printListening } from '../serve/listening.ts'
import { openServeLog, type ServeLog } from '../serve/log.ts'
import { nodeOf, serveNode, type Tenure } from '../serve/node.ts'
import { emitRisks } from '../serve/risks.ts'
import {
  checkCertificates,
  type RunningServers,
  startServers,
  type WantedServers,
  wantedServers,
} from '../serve/servers.ts'
import { killIfHung, newStop, type Stop, untilEnd } from '../serve/stop.ts'
import { variablesOf } from '../serve/variables-file.ts'
import { dbOf, type Given, isOn, list, text, verbOf } from '../verb.ts'

export const serveVerb = verbOf('serve', {
  flags: serve_flags,
  says: 'answer signed requests, and gRPC calls',
  notes: [
    'The data file is made where it is missing. SIGTERM and SIGINT end it once what is under way',
    'is done; a second one ends it at once. A number in brackets is the default.',
  ],
  run: serve,
})

async function serve(given: Given, io: Io): Promise<Exit> {
  const wanted = wantedServers(given, io.program)
  const limits = limitsOf(given)
  if (isOn(given, 'demo') && wanted.http === undefined) throw usageError('--demo needs --http')
  staleAgeOf(given)
  const replay = replayOf(given)
  const backup = backupOf(given)
  const node = await nodeOf(given, wanted)
  const log = await openServeLog(given, io)
  const stop = newStop(io)
  let risks: Promise<void> | undefined
  try {
    const databases = await databasesOf(given)
    const setup = {
      ...{ given, io, log, limits, replay, databases, backup, wanted: node?.wanted ?? wanted },
      // What is risky as it is configured stays so from tenure to tenure.
      emitRisksOnce(engine: Engine) {
        risks ??= emitRisks(given, io, engine, wanted, databases).catch((error: unknown) => {
          risks = undefined
          // An owner without its lease cannot read; the next tenure emits them.
          if (!isFault(error) || error.code !== 'overloaded') throw error
        })
        return risks
      },
      ...{ variables: await variablesOf(given, io), tracing: await tracingOf(given) },
    }
    // Each tenure but the first opens a data file that this process has closed.
    let probe = true
    const serveTenure = (tenure: Tenure) => {
      const served = serveEngine({ ...setup, probe }, tenure.stop, tenure)
      probe = false
      return served
    }
    if (node !== undefined) {
      return await serveNode(node, { given, io, stop, log }, limitsWith(limits), serveTenure)
    }
    // The log has said why.
    await serveEngine({ ...setup, probe }, stop)
    if (stop.failure() === undefined) await printClosed(given, io)
    return stop.failure() === undefined ? exits.done : exits.unreachable
  } finally {
    await log.close()
    stop.dispose()
  }
}

interface Setup {
  readonly given: Given
  readonly io: Io
  readonly log: ServeLog
  readonly wanted: WantedServers
  readonly limits: NonNullable<EngineOptions['limits']>
  readonly replay: EngineOptions['replay']
  readonly backup: ReturnType<typeof backupOf>
  readonly variables: Awaited<ReturnType<typeof variablesOf>>
  readonly tracing: Awaited<ReturnType<typeof tracingOf>>
  readonly databases: Awaited<ReturnType<typeof databasesOf>>
  emitRisksOnce(engine: Engine): Promise<void>
  readonly probe: boolean
}

/** From the opening to the close; resolves with the failure that has ended it, if one has. */
async function serveEngine(setup: Setup, stop: Stop, tenure?: Tenure): Promise<Fault | undefined> {
  const { given, io, log, wanted, limits, replay, variables, tracing, emitRisksOnce } = setup
  const { databases, backup } = setup
  const engine = await openToServe(given, {
    ...{ limits, onFailure: stop.fail, logger: log.logger, tracing, probe: setup.probe },
    ...(tenure && { commit_log: tenure.commit_log, stale_reads: staleReads(setup, tenure) }),
    ...(replay && { replay }),
    ...backup,
    ...(variables && { variables: variables.first }),
    ...(databases && { databases }),
  })
  const stopWatching = variables?.watch(engine, log.emit)
  const watchdog = killIfHung(engine, io, log)
  void stop.reason.then(() => {
    tenure?.use(undefined)
    return watchdog.flush()
  })
  try {
    const tls = await certificatesOf(given, io, engine, wanted)
    const { operator: _, ...of_owner } = wanted
    const servers = await startServers(engine, tenure === undefined ? wanted : of_owner, tls)
    return await untilEnd(engine, servers, async () => {
      await emitRisksOnce(engine)
      if (tenure === undefined) await printListening(given, io, engine, servers, tls)
      tenure?.use(engine)
      return stop.reason
    })
  } finally {
    tenure?.use(undefined)
    stopWatching?.()
    await watchdog.close()
  }
}

/** Requests of a standby that are under way when it takes over: all are reads. */
const reads_drain_ms_max = 200

/** Reads are answered where this node answers all when it is the owner. */
function staleReads({ given, io, wanted }: Setup, { read }: Tenure): EngineOptions['stale_reads'] {
  const age_ms_max = staleAgeOf(given)
  if (!isOn(given, 'stale-reads')) return undefined
  const { http, grpc } = wanted
  let servers: RunningServers | undefined
  return {
    ...defined({ age_ms_max }),
    async use(reader) {
      read(reader)
      await servers?.drain()
      servers = undefined
      if (reader === undefined) return
      const limits = { drain_ms_max: reads_drain_ms_max }
      const tls = await certificatesOf(given, io, reader, wanted)
      const of_reads = { ...(http && { http }), ...(grpc && { grpc }) }
      servers = await startServers(reader, of_reads, tls, limits)
    },
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
  await checkCertificates(folder)
  return folder
}

async function openToServe(given: Given, how: Omit<EngineOptions, 'admin'>): Promise<Engine> {
  const path = dbOf(given)
  try {
    return await openEngine(path, {
      ...how,
      admin: true,
      blocking_commits: false,
      allow_hosts: list(given, 'allow-host'),
      public_url: text(given, 'public-url'),
      ...engineOptionsFrom(given.env),
    })
  } catch (error) {
    if (isRangeError(error)) throw usageError(error.message)
    if (!isFault(error)) throw error
    if (error.code === 'file_held') throw await heldFault(path)
    throw Object.assign(unreachableError(error.message, error.code), { cause: error })
  }
}
