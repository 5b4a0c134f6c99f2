/**
 * The admin server: runs the admin verbs for requests over a Unix socket that only this user can
 * reach. Its process holds the lock of the data file, so an existing socket file belongs to a
 * killed process and is removed.
 */
import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { dirname } from 'node:path'
import { parsePlain } from '../../codec/json.ts'
import { newCounters } from '../../core/counters.ts'
import { bugFields, type Emit } from '../../core/events.ts'
import { codeOf, fault, isFault } from '../../core/faults.ts'
import { emitRefused } from '../../core/refusals.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import type { Standby } from '../../store/commit-log/source.ts'
import {
  type AdminRequest,
  type AdminResponse,
  checkEndpoint,
  type Endpoint,
  faultView,
  request_bytes_max,
} from './protocol.ts'
import { isPipe, removeDeadSockets } from './socket-path.ts'
import { type AdminArgs, type AdminVerb, isAdminVerb, runVerb } from './verbs.ts'

export interface AdminServer {
  /** Answers for this engine from now on. */
  use(engine: Engine): void
  /** Resolves after calls under way are answered; cuts off requests that have not arrived. */
  close(): Promise<void>
}

/** A node that does not own the data: it has no engine. */
export interface StandbyTarget extends Standby {
  readonly path: string
  readonly emit: Emit
}

/**
 * Listens on `socket` (mode 0600) and answers for the file `file_id` as conveyor `version`. Rejects
 * with the system's error where the socket cannot be made.
 */
export async function serveAdmin(
  target: Engine | StandbyTarget,
  options: Endpoint & { readonly socket: string },
): Promise<AdminServer> {
  let asked = target
  const { socket, file_id, version } = options
  const running = new Set<Promise<void>>()
  const server = createServer({ requestTimeout: 30_000 }, (request, response) => {
    void readBody(request).then(
      (body) => {
        const work = reply(response, answer(asked, { file_id, version }, body))
        running.add(work)
        void work.finally(() => running.delete(work))
      },
      () => request.destroy(),
    )
  })
  if (!isPipe(socket)) rmSync(socket, { force: true })
  server.listen(socket)
  await once(server, 'listening')
  if (!isPipe(socket)) {
    chmodSync(socket, 0o600)
    void removeDeadSockets(dirname(socket))
  }
  server.unref()

  return {
    use(engine) {
      asked = engine
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      await Promise.all(running)
      server.closeAllConnections()
      await closed
    },
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > request_bytes_max) throw fault('body_too_large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function answer(
  target: Engine | StandbyTarget,
  mine: Endpoint,
  body: string,
): Promise<AdminResponse> {
  const served =
    'refusal' in target ? { emit: target.emit, counters: newCounters() } : servedEngine(target)
  try {
    const request = parsePlain(body) as AdminRequest
    checkEndpoint(request, mine)
    if (!isAdminVerb(request.verb)) throw fault('not_found', `no such verb: ${request.verb}`)
    const value = await ('refusal' in target
      ? runAtStandby(target, request.verb, request.args)
      : runVerb(target, request.verb, request.args))
    served.counters.countRequest('admin', 'ok')
    return { ...mine, value: value ?? null }
  } catch (error) {
    if (!isFault(error)) served.emit('bug', bugFields(error))
    emitRefused(served, { server: 'admin', code: codeOf(error) })
    return { ...mine, fault: faultView(error) }
  }
}

async function runAtStandby(standby: StandbyTarget, verb: AdminVerb, args: unknown) {
  if (verb === 'about') return { path: standby.path, ops_max: 0 }
  if (verb !== 'backup') throw standby.refusal()
  const { path } = args as AdminArgs<'backup'>
  return standby.backup(path)
}

/** Resolves when the answer has left, or the caller has. */
async function reply(response: ServerResponse, answered: Promise<AdminResponse>): Promise<void> {
  const text = JSON.stringify(await answered)
  await new Promise<void>((resolve) => {
    response.once('close', resolve)
    response.setHeader('content-type', 'application/json; charset=utf-8')
    response.end(text, () => resolve())
  })
}
