/**
 * An HTTP server over a real engine in memory, with one user and one process: start, wait for a
 * callback, end. Tests send it given bytes.
 */
import './end-soon.ts'
import { hmacOf, signatureOf } from '../../src/codec/signature.ts'
import type { SignatureKind } from '../../src/core/model.ts'
import { type ServedEngine, servedEngine } from '../../src/engine/served-engine.ts'
import { type HttpOptions, type HttpServer, serveHttp } from '../../src/http.ts'
import { openEngine } from '../../src/open.ts'
import { type Answer, exchange } from './http-raw.ts'
import { planted } from './kept-lines.ts'

export const user = '13000'
export const conv_id = '1234'

export const process_definition = definition(1234, [
  node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
  node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }]),
  node('end', 2, []),
])

export interface TestHttp {
  readonly engine: ServedEngine
  readonly http: HttpServer
  readonly port: number
  readonly secret: string
  /** The path of a request signed now, or at `timestamp`. */
  path(body: string | Uint8Array, how?: Signing): string
  /** The lines of the three headers that sign a body. */
  signLines(body: string | Uint8Array, how?: Signing): string[]
  /** The bytes of a signed POST on HTTP/1.1, its connection kept. */
  post(body: string | Uint8Array, how?: Signing): Buffer
  /** Posts on a connection of its own. */
  send(body: string | Uint8Array, how?: Signing): Promise<Answer>
  close(): Promise<void>
}

export interface Signing {
  /** Default `path`. */
  readonly sign?: SignatureKind | 'query'
  readonly version?: 1 | 2
  readonly user?: string
  readonly timestamp?: string
  readonly secret?: string
  /** Whole header lines without their ends, instead of `Host`. */
  readonly headers?: readonly string[]
}

/** `over` replaces members of the engine that the server sees. */
export async function openHttp(
  options: HttpOptions = {},
  over: Partial<ServedEngine> = {},
): Promise<TestHttp> {
  const engine = servedEngine(await openEngine(':memory:', { limits: options.limits ?? {} }))
  await engine.processes.put(process_definition)
  const { secret } = await engine.users.add({ id: user })
  await engine.processes.share(conv_id, user)
  const served = Object.keys(over).length === 0 ? engine : { ...engine, ...over }
  const http = await serveHttp(served, { port: 0, ...options })
  const { port } = http.address
  const base = options.base ?? ''

  const timestampOf = (how: Signing): string =>
    how.timestamp ?? String(Math.floor(engine.clock.now_ms() / 1000))
  const path: TestHttp['path'] = (body, how = {}) => {
    const opening = `${base}/api/${how.version ?? 1}/json`
    if (how.sign === 'hmac') return opening
    const timestamp = timestampOf(how)
    const digest = how.sign?.split(':')[1] ?? 'sha1'
    const signature = signatureOf(timestamp, how.secret ?? secret, body, digest)
    const login = `${opening}/${how.user ?? user}`
    if (how.sign !== 'query') return `${login}/${timestamp}/${signature}`
    return `${login}?conv_signature=${signature}&conv_time=${timestamp}&conv_id=1234`
  }
  const signLines: TestHttp['signLines'] = (body, how = {}) => {
    const timestamp = timestampOf(how)
    const signature = hmacOf(timestamp, how.secret ?? secret, body)
    const login = `X-API-Login: ${how.user ?? user}`
    return [login, `X-API-Timestamp: ${timestamp}`, `X-API-Signature: ${signature}`]
  }
  const post: TestHttp['post'] = (body, how = {}) => {
    const bytes = Buffer.from(body)
    const lines = [...(how.headers ?? ['Host: x']), `Content-Length: ${bytes.length}`]
    if (how.sign === 'hmac') lines.push(...signLines(bytes, how))
    const head = `POST ${path(bytes, how)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
    return Buffer.concat([Buffer.from(head), bytes])
  }
  return {
    engine,
    http,
    port,
    secret,
    path,
    signLines,
    post,
    send: (body, how) => exchange(port, post(body, how)),
    async close() {
      await http.drain()
      await engine.close()
    },
  }
}

/** The text of a body with one create. */
export function createBody(ref: string, data: unknown = { note: planted }): string {
  return JSON.stringify({ ops: [{ type: 'create', obj: 'task', conv_id, ref, data }] })
}

/** The code of an answer: its request_proc, or the proc of its first op where that is not ok. */
export function codeOf(answer: Answer): string {
  const { request_proc, ops } = JSON.parse(answer.body) as {
    request_proc: string
    ops?: { proc: string }[]
  }
  return request_proc === 'ok' ? (ops?.[0]?.proc ?? 'ok') : request_proc
}

export function definition(obj_id: number, nodes: readonly object[]): object {
  const head = { obj_type: 1, obj_id, title: `process ${obj_id}`, conv_type: 'process' }
  return { ...head, status: 'active', params: [], scheme: { nodes } }
}

export function node(id: string, obj_type: number, logics: unknown[]): object {
  const condition = { logics, semaphors: [] }
  const options = { save_task: true }
  return { id, obj_type, title: id, description: '', x: 0, y: 0, condition, extra: {}, options }
}
