/**
 * What the callers of the soak do, as lives: each is the few requests in which one task is made,
 * changed, read and ended, or one thing that goes wrong at the side of the caller. A life throws
 * where an answer is not as it must be.
 */
import { createHash } from 'node:crypto'
import { connect as connectSocket } from 'node:net'
import type { Client, ClientResult } from '../../src/client/api.ts'
import { connect } from '../../src/client.ts'
import { openBatches } from './soak-batches.ts'
import type { SoakTarget } from './soak-server.ts'
import { asked_id, failing_id, order_id, standing_id, standingRef, worked_id } from './soak-work.ts'

export interface Callers {
  readonly target: SoakTarget
  /** Signs in the path, and in headers. */
  readonly http: Client
  readonly hmac: Client
  readonly grpc: Client
  readonly batches: ReturnType<typeof openBatches>
  readonly standing_tasks: number
  close(): Promise<void>
}

/** How long an answer to a request takes counts from when its life should have begun. */
export type Timed = <T>(answer: Promise<T>) => Promise<T>

export interface Life {
  readonly name: string
  /** Of all lives, in parts. */
  readonly parts: number
  /** How many faults of a caller are in it. */
  readonly faults?: number
  run(callers: Callers, n: number, timed: Timed): Promise<void>
}

const options = { retries_max: 0, timeout_ms: 60_000 }

export async function openCallers(target: SoakTarget, standing_tasks: number): Promise<Callers> {
  const { http: url, grpc: address, user, secret, tls } = target
  const http = await connect({ url, user, secret, ...options })
  const hmac = await connect({ url, user, secret, sign: 'hmac', ...options })
  const grpc = await connect({ address, ...tls, ...options })
  const batches = openBatches(grpc)
  const close = async (): Promise<void> => {
    await batches.close()
    await Promise.all([http, hmac, grpc].map((client) => client.close()))
  }
  return { target, http, hmac, grpc, batches, standing_tasks, close }
}

function isOk({ proc, description }: ClientResult): void {
  if (proc !== 'ok') throw new Error(`${proc}: ${description}`)
}

async function order(client: Client, ref: string, timed: Timed): Promise<void> {
  const target = { conv_id: order_id, ref }
  isOk(await timed(client.create({ ...target, data: { amount: 120, note: 'x'.repeat(200) } })))
  const task = await timed(client.task(target))
  if (task?.node_id !== 'wait') throw new Error(`${ref} is in ${task?.node_id}`)
  isOk(await timed(client.modify({ ...target, is_sync: true, data: { paid: true } })))
}

async function changeStanding(client: Client, callers: Callers, n: number, timed: Timed) {
  const target = { conv_id: standing_id, ref: standingRef(n % callers.standing_tasks) }
  isOk(await timed(client.modify({ ...target, data: { n } })))
}

/** A signed request of its own connection, which is answered with `status`. */
async function post(url: string, body: string, status: number): Promise<void> {
  const answer = await fetch(url, { method: 'POST', body })
  const text = await answer.text()
  if (answer.status !== status) throw new Error(`${answer.status} instead of ${status}: ${text}`)
}

function signedPath({ user, secret }: SoakTarget, body: string): string {
  const seconds = Math.floor(Date.now() / 1_000)
  const sum = createHash('sha1').update(`${seconds}${secret}${body}${secret}`).digest('hex')
  return `/api/1/json/${user}/${seconds}/${sum}`
}

function createBody(conv_id: string, n: number): string {
  return JSON.stringify({ ops: [{ type: 'create', obj: 'task', conv_id, data: { n } }] })
}

/** Sends the beginning of something, and is gone. */
function cut(url: string, text: string): Promise<void> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connectSocket(Number(port), hostname, () => {
      socket.write(text, () => setImmediate(() => socket.destroy()))
    })
    socket.once('error', reject)
    socket.once('close', () => resolve())
  })
}

export const lives: readonly Life[] = [
  {
    name: 'order over HTTP, signed in the path',
    parts: 20,
    run: ({ http }, n, timed) => order(http, `path-${n}`, timed),
  },
  {
    name: 'order over HTTP, signed in headers',
    parts: 10,
    run: ({ hmac }, n, timed) => order(hmac, `header-${n}`, timed),
  },
  {
    name: 'order over gRPC, whose result is waited for',
    parts: 15,
    async run({ grpc }, n, timed) {
      const target = { conv_id: order_id, ref: `grpc-${n}` }
      isOk(await timed(grpc.create({ ...target, data: { amount: 120 } })))
      const [{ status }] = await Promise.all([
        grpc.result(target),
        timed(grpc.modify({ ...target, data: { paid: true } })).then(isOk),
      ])
      if (status !== 'processed') throw new Error(`${target.ref} is ${status}`)
    },
  },
  {
    name: 'work in a stream of batches',
    parts: 10,
    async run({ batches, grpc }, n, timed) {
      const data = { n }
      const ops = [0, 1].map(
        (at) => ({ type: 'create', conv_id: worked_id, ref: `work-${n}-${at}`, data }) as const,
      )
      const { proc, results } = await timed(batches.send(ops))
      if (proc !== 'ok') throw new Error(`the batch is answered ${proc}`)
      for (const result of results) isOk(result)
      const task = await grpc.result({ conv_id: worked_id, ref: `work-${n}-0` })
      if (task.node_id !== 'done') throw new Error(`${task.ref} is in ${task.node_id}`)
    },
  },
  {
    name: 'webhook, whose task waits for its timer',
    parts: 10,
    run: ({ target }, n) => post(target.http + target.webhook, `{"n":${n}}`, 200),
  },
  {
    name: 'synchronous request',
    parts: 5,
    run({ target }, n) {
      const body = createBody(asked_id, n)
      return post(target.http_sync + signedPath(target, body), body, 200)
    },
  },
  {
    name: 'changes of tasks that stand',
    parts: 20,
    async run(callers, n, timed) {
      await changeStanding(callers.http, callers, n, timed)
      await changeStanding(callers.grpc, callers, n, timed)
    },
  },
  {
    name: 'task that fails, is found, and is canceled',
    parts: 3,
    async run({ grpc }, n, timed) {
      const target = { conv_id: failing_id, ref: `fails-${n}` }
      isOk(await timed(grpc.create({ ...target, data: { text: 'none' } })))
      await grpc.list({ conv_id: failing_id, status: 'failed', limit: 10 })
      isOk(await grpc.retry(target))
      isOk(await grpc.cancel(target))
    },
  },
  {
    name: 'connections that are new',
    parts: 1,
    async run({ target }, n, timed) {
      const { http: url, grpc: address, user, secret, tls } = target
      for (const [name, given] of [
        ['new-http', { url, user, secret }],
        ['new-grpc', { address, ...tls }],
      ] as const) {
        await using client = await connect({ ...given, ...options })
        await order(client, `${name}-${n}`, timed)
      }
    },
  },
  {
    name: 'a wrong signature',
    parts: 2,
    faults: 1,
    run({ target }, n) {
      const path = signedPath(target, 'another body')
      return post(target.http + path, createBody(order_id, n), 401)
    },
  },
  {
    name: 'a body that is no JSON',
    parts: 1,
    faults: 1,
    run: ({ target }) => post(target.http + signedPath(target, '{"ops":'), '{"ops":', 400),
  },
  {
    name: 'connections cut in the head, in the body, in a wait and in a handshake',
    parts: 1,
    faults: 4,
    async run({ target }, n) {
      const body = createBody(asked_id, n)
      const head = `POST ${signedPath(target, body)} HTTP/1.1\r\nHost: x\r\n`
      const whole = `${head}Content-Length: ${body.length}\r\n\r\n${body}`
      await cut(target.http, head)
      await cut(target.http, whole.slice(0, -5))
      await cut(target.http_sync, whole)
      await cut(`http://${target.grpc}`, '\u0016\u0003\u0001')
    },
  },
  {
    name: 'a wait that is given up',
    parts: 2,
    faults: 1,
    async run({ grpc, standing_tasks }, n) {
      const target = { conv_id: standing_id, ref: standingRef(n % standing_tasks) }
      const waits = grpc.result(target, { signal: AbortSignal.timeout(50) })
      const ended = await waits.then(
        () => 'a result',
        (error: Error) => error.name,
      )
      if (ended !== 'TimeoutError') throw new Error(`a wait that was given up has ${ended}`)
    },
  },
]
