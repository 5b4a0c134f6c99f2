/**
 * What hostile requests are sent to: all servers over one engine in memory. A request over HTTP is
 * served in the process, by node's own HTTP server over a stream that is no socket, so that a
 * million of them take minutes; or over a socket of the server as it is started elsewhere.
 */

import { Duplex } from 'node:stream'
import { type ServedEngine, servedEngine } from '../../src/engine/served-engine.ts'
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { openEngine } from '../../src/open.ts'
import { serveOperator } from '../../src/operator.ts'
import { newContext, serveAddresses } from '../../src/server/http/context.ts'
import { serverWith } from '../../src/server/http/server.ts'
import { attachEvents } from '../../src/server/http/server-events.ts'
import { type FuzzRequest, fuzz_limits, waitsFor } from './fuzz-requests.ts'
import { definition, node } from './http-server.ts'
import { go } from './processes.ts'

export interface FuzzHarness {
  readonly engine: ServedEngine
  readonly user: string
  readonly secret: string
  readonly webhook: string
  readonly callback: string
  /** By where they are. */
  readonly ports: Readonly<Record<'http' | 'http_sync' | 'grpc' | 'operator', number>>
  /** For calls of the operator's page. */
  readonly session: { readonly cookie: string; readonly token: string }
  /** What came out of it as a bug. */
  readonly bugs: unknown[]
  /** All that is answered to bytes, after which the other side has ended. */
  inProcess(request: FuzzRequest): Promise<Buffer>
  close(): Promise<void>
}

const user = '13000'
const waiting = (conv_id: number): object =>
  definition(conv_id, [
    node('start', 1, [go('wait')]),
    node('wait', 0, [{ type: 'api_callback' }, go('end')]),
    node('end', 2, []),
  ])
const ending = definition(1239, [node('start', 1, [go('end')]), node('end', 2, [])])

export async function openFuzzHarness(): Promise<FuzzHarness> {
  const bugs: unknown[] = []
  const onBug = (bug: unknown): void => void bugs.push(bug)
  const engine = servedEngine(await openEngine(':memory:', { limits: fuzz_limits, onBug }))
  for (const conv_id of [1234, 1235, 1236, 1237]) await engine.processes.put(waiting(conv_id))
  await engine.processes.put(ending)
  const { secret } = await engine.users.add({ id: user })
  for (const conv_id of ['1234', '1235', '1239']) await engine.processes.share(conv_id, user)
  await engine.processes.share('1237', user, ['show'])
  await engine.processes.pause('1235')
  const { address, callbacks } = await engine.processes.webhook('1234', { address: 'new' })

  const http = await serveHttp(engine, { port: 0, onBug })
  const http_sync = await serveHttp(engine, { port: 0, sync: true, onBug })
  const grpc = await serveGrpc(engine, { port: 0, plain: true, onBug })
  const operator = await serveOperator(engine, { port: 0, onBug })
  const inner = [false, true].map((sync) => {
    const context = newContext(engine, { sync, public_url: http.url, onBug })
    serveAddresses(context)
    const server = serverWith(context.limits, sync)
    return { server, drain: attachEvents(server, context, false) }
  })
  return {
    ...{ engine, user, secret, bugs },
    webhook: String(address).slice(-40),
    callback: String(callbacks[0]?.address).slice(-40),
    ports: {
      http: http.address.port,
      http_sync: http_sync.address.port,
      grpc: Number(grpc.address.split(':').at(-1)),
      operator: Number(new URL(operator.url).port),
    },
    session: await signedIn(operator.url, operator.link('administer')),
    inProcess(request) {
      const { stream, received } = memorySocket(request.bytes, waitsFor(request))
      inner[request.is_sync ? 1 : 0]?.server.emit('connection', stream)
      return received
    },
    async close() {
      for (const server of [http, http_sync, grpc, operator]) await server.drain()
      await engine.close()
    },
  }
}

/** A connection whose other side sends these bytes and ends, or first waits for an answer. */
function memorySocket(
  bytes: Buffer,
  waits: boolean,
): { stream: Duplex; received: Promise<Buffer> } {
  const chunks: Buffer[] = []
  let over: (received: Buffer) => void
  const received = new Promise<Buffer>((resolve) => {
    over = resolve
  })
  const stream = new Duplex({
    allowHalfOpen: true,
    read() {},
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      if (waits && stream.readable && chunks.length === 1) stream.push(null)
      done()
    },
    final(done) {
      done()
      over(Buffer.concat(chunks))
      setImmediate(() => stream.destroy())
    },
    destroy(error, done) {
      over(Buffer.concat(chunks))
      done(error)
    },
  })
  Object.assign(stream, { remoteAddress: '127.0.0.1', remotePort: 1, bytesRead: bytes.length })
  setImmediate(() => {
    stream.push(bytes)
    if (!waits) stream.push(null)
  })
  return { stream, received }
}

async function signedIn(url: string, link: string): Promise<FuzzHarness['session']> {
  const answer = await fetch(`${url}/console/api/sign_in`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ link: new URL(link).hash.replace('#link=', '') }),
  })
  const { token } = (await answer.json()) as { token: string }
  return { cookie: String(answer.headers.get('set-cookie')).split(';')[0] as string, token }
}
