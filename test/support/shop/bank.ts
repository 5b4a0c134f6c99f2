/**
 * The bank of the shop, a process of its own: `PORT=8081 LEDGER=ledger.jsonl node bank.js`. It
 * charges once for an idempotency key, and tells the shop by webhook that an order is paid, until
 * the shop has taken it. Now and then it is out of order, or its answer is lost.
 *
 * Each request is a line of its ledger, before it is answered.
 */
import { appendFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

export interface LedgerLine {
  readonly path: '/charges' | '/receipts'
  readonly key: string
  readonly order: string
  /** `repeat`: it was made or declined before, under this key. `nothing`: out of order. */
  readonly did: 'made' | 'declined' | 'repeat' | 'nothing'
}

interface Asked {
  readonly order: string
  readonly card?: string
  readonly paid_url?: string
}

const { PORT = '', LEDGER = '' } = process.env
const latency_ms_max = 200
const slow_ms = 600
const write = (line: LedgerLine): void => appendFileSync(LEDGER, `${JSON.stringify(line)}\n`)

/** By key: the status of the answer. */
const answers = new Map<string, number>()

/** Acts once for a key; returns the status of the answer. */
function actOnce(path: LedgerLine['path'], key: string, { order, card, paid_url }: Asked): number {
  const known = answers.get(key)
  const status = known ?? (card === 'declined' ? 402 : 201)
  const did = known !== undefined ? 'repeat' : status === 402 ? 'declined' : 'made'
  write({ path, key, order, did })
  answers.set(key, status)
  if (did === 'made' && paid_url !== undefined) void emitPaid(order, paid_url)
  return status
}

async function emitPaid(ref: string, url: string): Promise<void> {
  const body = JSON.stringify({ ref, paid: true })
  for (;;) {
    await sleep(Math.random() * latency_ms_max)
    const answer = await fetch(url, { method: 'POST', body }).catch(() => undefined)
    if (answer?.ok === true) return
  }
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const key = String(request.headers['idempotency-key'])
  const asked = (await json(request)) as Asked
  const chance = Math.random()
  await sleep(chance > 0.98 ? slow_ms : chance * latency_ms_max)
  const path = request.url as LedgerLine['path']
  if (chance < 0.1 || (chance < 0.3 && path === '/receipts')) {
    write({ path, key, order: asked.order, did: 'nothing' })
    return void response.writeHead(503).end()
  }
  const status = actOnce(path, key, asked)
  if (chance < 0.2) return void response.destroy()
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ id: key }))
}

createServer((request, response) => {
  serve(request, response).catch(() => response.destroy())
}).listen(Number(PORT), '127.0.0.1', () => console.log('the bank is open'))
