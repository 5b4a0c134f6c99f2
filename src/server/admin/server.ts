/**
 * The admin door: the verbs of the table over HTTP on a Unix socket that only this user can reach.
 * Whoever opens it holds the lock of the data file, so a socket left over from a killed process is
 * nobody's and is taken away first.
 *
 * A call under way is answered before `close` resolves; one that has not fully arrived is cut off.
 */
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { dirname } from 'node:path'
import { parsePlain } from '../../codec/json.ts'
import { fault } from '../../core/faults.ts'
import type { Engine } from '../../engine/api.ts'
import {
  type Answer,
  demandSame,
  faultView,
  type Identity,
  type Question,
  question_bytes_max,
} from './protocol.ts'
import { sweepSockets } from './socket-path.ts'
import { isAdminVerb, runVerb } from './verbs.ts'

export interface AdminDoor {
  close(): Promise<void>
}

/**
 * Listens on `socket` (mode 0600) and answers for the file `file_id` as conveyor `version`. Rejects
 * with the system's error where the socket cannot be made.
 */
export async function serveAdmin(
  engine: Engine,
  options: Identity & { readonly socket: string },
): Promise<AdminDoor> {
  const { socket, file_id, version } = options
  const running = new Set<Promise<void>>()
  const server = createServer({ requestTimeout: 30_000 }, (request, response) => {
    void readBody(request).then(
      (body) => {
        const work = reply(response, answer(engine, { file_id, version }, body))
        running.add(work)
        void work.finally(() => running.delete(work))
      },
      () => request.destroy(),
    )
  })
  rmSync(socket, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(socket, resolve)
  })
  chmodSync(socket, 0o600)
  void sweepSockets(dirname(socket))
  server.unref()

  return {
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
    if (bytes > question_bytes_max) throw fault('body_too_large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function answer(engine: Engine, mine: Identity, body: string): Promise<Answer> {
  try {
    const question = parsePlain(body) as Question
    demandSame(question, mine)
    if (!isAdminVerb(question.verb)) throw fault('not_found', `no such verb: ${question.verb}`)
    return { ...mine, value: (await runVerb(engine, question.verb, question.args)) ?? null }
  } catch (error) {
    return { ...mine, fault: faultView(error) }
  }
}

/** Resolves when the answer has left, or the caller has. */
async function reply(response: ServerResponse, answered: Promise<Answer>): Promise<void> {
  const text = JSON.stringify(await answered)
  await new Promise<void>((resolve) => {
    response.once('close', resolve)
    response.setHeader('content-type', 'application/json; charset=utf-8')
    response.end(text, () => resolve())
  })
}
