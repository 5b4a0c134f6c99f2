/**
 * The table of transports: the ways on which a caller reaches the engine. Every vector runs on each
 * and must be answered alike and end alike. A new transport is one row here.
 *
 * A transport takes a request as text and returns the answer as text; what belongs to it
 * alone (status, headers) it checks itself.
 */
import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { Agent, type IncomingMessage, request } from 'node:http'
import { isObject, parseJson, rawJson, stringifyJson } from '../../src/codec/json.ts'
import { parseRequest } from '../../src/codec/request-body.ts'
import { renderFault, renderResults } from '../../src/codec/response-body.ts'
import { isFault, isWholeFaultCode, wholeFaults } from '../../src/core/faults.ts'
import type { JsonObject, JsonValue } from '../../src/core/model.ts'
import { serveHttp } from '../../src/http.ts'
import { openGrpcVectors } from './grpc-vectors.ts'
import { refusalsOf, withEvents } from './told-events.ts'
import type { World } from './vector-state.ts'

export interface VectorRequest {
  /** Null: a caller who may see every process. */
  readonly user: string | null
  readonly version: 1 | 2
  /** A body as it is, or the JSON text of a list of ops. */
  readonly body: string | undefined
  readonly ops: string | undefined
}

export interface Link {
  /** The whole answer: `{"request_proc":…,"ops":[…]}`. */
  send(request: VectorRequest): Promise<string>
  close(): Promise<void>
}

export interface Transport {
  readonly name: string
  open(world: World): Promise<Link>
}

export const transports: readonly Transport[] = [
  { name: 'in process', open: openInProcess },
  { name: 'signed HTTP', open: openHttp },
  { name: 'gRPC', open: openGrpc },
]

/** Ops as an embedder hands them in; a raw body by way of codec/response-body alone. */
async function openInProcess(world: World): Promise<Link> {
  return { send: (asked) => sendInProcess(world, asked), close: async () => {} }
}

async function sendInProcess(world: World, asked: VectorRequest): Promise<string> {
  const engine = world.engine()
  try {
    const ops =
      asked.body === undefined
        ? (parseJson(asked.ops as string) as JsonValue[]).map(withRawData)
        : parseRequest(Buffer.from(asked.body), engine.limits)
    const results = await engine.apply(ops, asked.user === null ? {} : { user: asked.user })
    return renderResults(asked.version, results)
  } catch (error) {
    if (!isFault(error) || !isWholeFaultCode(error.code)) throw error
    return renderFault(error.code, error.message)
  }
}

function withRawData(op: JsonValue): unknown {
  if (!isObject(op) || !isObject(op.data)) return op
  return { ...op, data: rawJson(stringifyJson(op.data)) }
}

/**
 * A client of its own, over a real socket. Every other request is signed in headers. This server
 * serves no caller without a name, so the requests of such a caller are made in the process.
 */
async function openHttp(world: World): Promise<Link> {
  const bugs: unknown[] = []
  const server = await serveHttp(world.engine(), { port: 0, onBug: (bug) => bugs.push(bug) })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let requests = 0
  return {
    async send(asked) {
      if (asked.user === null) return sendInProcess(world, asked)
      return withRefusals(() => sendSigned(asked, asked.user as string))
    },
    async close() {
      agent.destroy()
      await server.drain()
      assert.deepEqual(bugs, [])
    },
  }

  function sendSigned(asked: VectorRequest, user: string): Promise<string> {
    const body = Buffer.from(asked.body ?? `{"ops":${asked.ops}}`)
    // With a fraction of its own, for the same request again would be answered as before.
    const seconds = Math.floor(world.engine().clock.now_ms() / 1000)
    const timestamp = `${seconds}.${String(requests).padStart(9, '0')}`
    const secret = world.secretOf(user)
    const base = `${server.url}/api/${asked.version}/json`
    if (requests++ % 2 === 1) {
      const hmac = createHmac('sha256', secret).update(timestamp).update(body).digest('hex')
      const headers = { 'X-API-Login': user, 'X-API-Timestamp': timestamp }
      return post(base, body, agent, { ...headers, 'X-API-Signature': hmac })
    }
    const hash = createHash('sha1').update(timestamp).update(secret).update(body).update(secret)
    return post(`${base}/${user}/${timestamp}/${hash.digest('hex')}`, body, agent)
  }
}

/** The answer, each of whose refusals must have been told to the log once. */
async function withRefusals(send: () => Promise<string>): Promise<string> {
  const [answer, events] = await withEvents(send)
  const { request_proc, ops } = JSON.parse(answer) as {
    request_proc: string
    ops: { proc: string }[]
  }
  const procs = [request_proc, ...ops.map(({ proc }) => proc)].filter((proc) => proc !== 'ok')
  assert.deepEqual(refusalsOf(events), procs)
  return answer
}

/** What messages cannot say, such as a raw body, is made in the process. */
async function openGrpc(world: World): Promise<Link> {
  const bugs: unknown[] = []
  const server = openGrpcVectors(world, bugs)
  return {
    async send(asked) {
      const { user, version, ops } = asked
      if (ops === undefined || !server.canSend(ops)) return sendInProcess(world, asked)
      return withRefusals(() => server.send(user, version, ops))
    },
    async close() {
      assert.deepEqual(bugs, [])
    },
  }
}

async function post(
  url: string,
  body: Buffer,
  agent: Agent,
  headers: Record<string, string> = {},
): Promise<string> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent, headers }, resolve)
    sent.on('error', reject)
    sent.end(body)
  })
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString('utf8')
  const { request_proc } = JSON.parse(text) as JsonObject
  const code = String(request_proc)
  assert.equal(response.statusCode, isWholeFaultCode(code) ? wholeFaults[code].http : 200)
  assert.equal(response.headers['content-type'], 'application/json; charset=utf-8')
  assert.equal(response.headers['content-length'], String(bytes.length))
  return text
}
