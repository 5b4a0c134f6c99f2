/**
 * A shop, as a whole service: it takes orders over HTTP, charges them at a bank, hears of payments
 * by webhook, reports by schedule and hands each change on to a file. It is stopped by SIGTERM, as
 * a deploy does it, or killed, at any time; whoever starts it next goes on.
 *
 *     PORT=8080 DATA=shop BANK=http://127.0.0.1:8081 node service.js
 *
 * What it relies on: `ok` is on disk, so a request is answered after it. A handler is called until
 * it has answered, always with the same key, so the bank charges once. What a handler returned
 * before the close is kept. The position of the feed is written with what was seen.
 */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import Fastify, { LogController } from 'fastify'
import { createHandler } from '../../../src/http.ts'
import type { TaskChange } from '../../../src/index.ts'
import { type FaultCode, isFault, openEngine } from '../../../src/index.ts'
import { order, report } from './order.ts'

const { PORT = '8080', DATA = '.', BANK = '' } = process.env
const { REPORT = '0 6 * * *', DRAIN_MS = '20000' } = process.env

const app = Fastify({
  logger: true,
  logController: new LogController({ disableRequestLogging: true }),
})
const engine = await openEngine(join(DATA, 'tasks.lmdb'), {
  logger: app.log,
  public_url: `http://127.0.0.1:${PORT}/conveyor`,
  limits: { drain_ms_max: Number(DRAIN_MS) },
})
await engine.processes.put(order)
await engine.processes.put(report)
const orders = engine.process(order)
const reports = engine.process(report)

/** Where the bank tells that an order is paid: the callback address of the node `payment`. */
const { callbacks } = await engine.processes.webhook(orders.conv_id)
const paid_url = callbacks.find(({ node_id }) => node_id === 'payment')?.address

function askBank(path: string, key: string, body: object, signal: AbortSignal): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': key }
  return fetch(BANK + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
}

orders.handle(
  'charge',
  async ({ ref, data: { amount, card } }, { key, signal }) => {
    const answer = await askBank('/charges', key, { order: ref, amount, card, paid_url }, signal)
    if (!answer.ok && answer.status !== 402) throw new Error(`the bank answers ${answer.status}`)
    const { id } = (await answer.json()) as { id: string }
    app.log.info({ order: ref }, 'charge is known')
    return answer.ok ? { charge_id: id } : { declined: true }
  },
  // A charge whose answer was lost may be made: the bank is asked under this key until it answers.
  { attempts_max: Number.POSITIVE_INFINITY, backoff_ms: 20, time_ms_max: 10_000 },
)

orders.handle(
  'receipt',
  async ({ ref }, { key, signal }) => {
    const { ok, status } = await askBank('/receipts', key, { order: ref }, signal)
    if (!ok) throw new Error(`the bank answers ${status}`)
  },
  { attempts_max: 2, backoff_ms: 20 },
)

reports.handle('write', async () => {
  const { conv_id } = orders
  const { by_status } = await engine.tasks.count({ conv_id })
  if (by_status.failed) await engine.tasks.bulk({ action: 'retry', filter: { conv_id } })
  return { orders: by_status.processed ?? 0 }
})

await engine.schedules.put({
  id: 'daily',
  cron: REPORT,
  conv_id: reports.conv_id,
  due_key: 'due_ms',
  catch_up: 'all',
})

app.post<{ Body: { ref: string; amount: number; card: string } }>(
  '/orders',
  async ({ body: { ref, ...data } }, reply) => {
    // A create is safe to repeat while its task lives; an order that has ended is found here.
    const known = await orders.task({ ref })
    if (known !== undefined) return { ref, obj_id: known.obj_id }
    const { proc, description, obj_id } = await orders.create({ ref, data })
    if (proc !== 'ok') return reply.code(400).send({ proc, description })
    return reply.code(201).send({ ref, obj_id })
  },
)

/** Answers once the order has ended. One that failed is told as it is: it will be tried again. */
app.get<{ Params: { ref: string } }>('/orders/:ref', async ({ params: { ref } }) => {
  const { obj_id, status, node_id } = await orders.result({ ref }, { timeout_ms: 20_000 })
  return { ref, obj_id, status, node_id }
})

const statuses: Partial<Record<FaultCode, number>> = {
  ...{ not_found_task: 404, result_timeout: 504, no_space: 507 },
  ...{ shutting_down: 503, overloaded: 503, store_failed: 503 },
}
app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
  const status = isFault(error) ? statuses[error.code] : error.statusCode
  reply.code(status ?? 500).send({ error: error.message })
})

/** The signed API, webhooks and callback addresses, in front of what reads bodies. */
const conveyor = createHandler(engine, { base: '/conveyor' })
app.all('/conveyor/*', {
  onRequest(request, reply) {
    reply.hijack()
    conveyor(request.raw, reply.raw)
  },
  handler() {},
})

async function followChanges(): Promise<void> {
  const file = await openFeedFile(join(DATA, 'feed.jsonl'))
  for await (const change of engine.changes({ from: file.position ?? 'start' })) {
    await file.append(change)
  }
  await file.close()
}
const followed = followChanges()

// Here rather than in `onClose`, before which Fastify waits for all requests: those that wait for
// a result are answered while the engine finishes what is under way, and then refused.
app.addHook('preClose', async () => {
  await conveyor.drain()
  await engine.close()
  await followed
})
process.once('SIGTERM', () => void app.close())
await app.listen({ port: Number(PORT) })

/**
 * What a consumer of the feed has seen, a line for each change. A line has the position of its
 * change, so what was seen and where to go on are one write. Lines that a crash has cut off count as
 * not seen, and come again.
 */
interface FeedFile {
  /** Of the last change in the file; undefined in an empty one. */
  readonly position: string | undefined
  append(change: TaskChange): Promise<void>
  close(): Promise<void>
}

async function openFeedFile(path: string): Promise<FeedFile> {
  const file = await open(path, 'a+')
  const { size } = await file.stat()
  // More than a line has.
  const tail_bytes = 4096
  const tail = Buffer.alloc(Math.min(size, tail_bytes))
  await file.read(tail, 0, tail.length, size - tail.length)
  const end = tail.lastIndexOf('\n') + 1
  await file.truncate(size - tail.length + end)
  const last = tail.toString('utf8', 0, end).split('\n').at(-2)
  return {
    position: last === undefined ? undefined : (JSON.parse(last) as TaskChange).position,
    append: (change) => file.appendFile(`${JSON.stringify(change)}\n`),
    close: () => file.close(),
  }
}
