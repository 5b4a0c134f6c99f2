/**
 * An engine whose process counts: each modify of a task releases its next wait, so the node that a
 * task waits in says how often it was modified. With an HTTP server of both forms.
 */
import { hmacOf, signatureOf } from '../../src/codec/signature.ts'
import type { EngineOptions } from '../../src/engine/api/engine-api.ts'
import { type ServedEngine, servedEngine } from '../../src/engine/served-engine.ts'
import { serveHttp } from '../../src/http.ts'
import { openEngine } from '../../src/open.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'
import { type Answer, exchange } from './http-raw.ts'
import { definition, node } from './http-server.ts'

export const user = '13000'
const waits = 20

export const counting_process = definition(1234, [
  node('start', 1, [{ type: 'go', to_node_id: '0' }]),
  ...Array.from({ length: waits }, (_, n) =>
    node(`${n}`, 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: `${n + 1}` }]),
  ),
  node(`${waits}`, 2, []),
])

/** A process whose tasks end at once. */
export const ending_process = definition(1235, [
  node('start', 1, [{ type: 'go', to_node_id: 'end' }]),
  node('end', 2, []),
])

export interface Signing {
  readonly version?: 1 | 2
  readonly sign?: 'path' | 'query' | 'hmac'
  readonly timestamp?: string
  readonly secret?: string
  readonly is_sync?: boolean
}

export interface ReplayHarness {
  readonly engine: ServedEngine
  readonly clock: FakeClock
  readonly secret: string
  /** Of the server that answers signed requests at once. */
  readonly port: number
  /** The bytes of a signed request. */
  request(ops: readonly object[], how?: Signing): Buffer
  post(request: Buffer, is_sync?: boolean): Promise<Answer>
  /** How often the task was modified; undefined where there is none. */
  count(ref: string): Promise<number | undefined>
  /** Records that are kept. */
  kept(): Promise<number>
  /** Closes and opens the file. */
  reopen(options?: EngineOptions): Promise<void>
  close(): Promise<void>
}

export async function openReplayHarness(
  options: EngineOptions = {},
  path = ':memory:',
): Promise<ReplayHarness> {
  const clock = fakeClock()
  const open = async (more: EngineOptions) => {
    const engine = servedEngine(await openEngine(path, { clock, ...options, ...more }))
    const http = await serveHttp(engine, { port: 0 })
    const sync = await serveHttp(engine, { port: 0, sync: true })
    return { engine, http, sync }
  }
  let opened = await open({})
  const { engine } = opened
  for (const process of [counting_process, ending_process]) await engine.processes.put(process)
  const { secret } = await engine.users.add({ id: user })
  for (const conv_id of ['1234', '1235']) await engine.processes.share(conv_id, user)
  const close = async (): Promise<void> => {
    await Promise.all([opened.http.drain(), opened.sync.drain()])
    await opened.engine.close()
  }
  return {
    get engine() {
      return opened.engine
    },
    clock,
    secret,
    get port() {
      return opened.http.address.port
    },
    request(ops, how = {}) {
      const body = JSON.stringify(how.is_sync ? { timeout: 1, ops } : { ops })
      const timestamp = how.timestamp ?? String(Math.floor(clock.now_ms() / 1000))
      const own_secret = how.secret ?? secret
      const base = `/api/${how.version ?? 1}/json`
      const is_hmac = how.sign === 'hmac'
      const signature = signatureOf(timestamp, own_secret, body)
      const in_query = `?conv_signature=${signature}&conv_time=${timestamp}`
      const signed = how.sign === 'query' ? in_query : `/${timestamp}/${signature}`
      const path = is_hmac ? base : `${base}/${user}${signed}`
      const headers = is_hmac
        ? [
            ...[`X-API-Login: ${user}`, `X-API-Timestamp: ${timestamp}`],
            `X-API-Signature: ${hmacOf(timestamp, own_secret, body)}`,
          ]
        : []
      const lines = ['Host: x', ...headers, `Content-Length: ${Buffer.byteLength(body)}`]
      return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
    },
    post: (request, is_sync = false) =>
      exchange((is_sync ? opened.sync : opened.http).address.port, request),
    async count(ref) {
      const task = await opened.engine.task({ conv_id: 1234, ref })
      return task && Number(task.node_id)
    },
    kept: async () => (await opened.engine.check()).counts.replay as number,
    async reopen(more = {}) {
      await close()
      opened = await open(more)
    },
    close,
  }
}

export const createOf = (ref: string | undefined, more: object = {}) => ({
  ...{ type: 'create', obj: 'task', conv_id: 1234, data: { amount: 1 } },
  ...(ref === undefined ? {} : { ref }),
  ...more,
})

export const modifyOf = (ref: string, more: object = {}) => ({
  ...{ type: 'modify', obj: 'task', conv_id: 1234, ref, data: { paid: true } },
  ...more,
})

export const showOf = (ref: string) => ({ type: 'show', obj: 'task', conv_id: 1234, ref })
