/**
 * Holds the slow clients of proof:slow in a process of its own, so that an honest caller in another
 * one does not wait for them: opens so many of each kind in turn, from one that the seed says, and lets
 * them drip until it is told to leave.
 */
import { type SlowClient, slow_clients } from './slow-clients.ts'
import type { SlowTarget } from './slow-server.ts'

export interface SlowOrder {
  readonly target: SlowTarget
  readonly n: number
  readonly seed: number
}

/** A client that was opened: its kind and its connection. */
export type OpenedClient = readonly [string, string | undefined]

const at_once = 16
/** Each drips once in so many milliseconds, a part of them at each tick: they do not know of each other. */
const drip_ms = 100
const tick_ms = 5
let clients: SlowClient[] = []

async function openAll({ target, n, seed }: SlowOrder): Promise<OpenedClient[]> {
  const opened: OpenedClient[] = []
  let next = 0
  const openSome = async (): Promise<void> => {
    for (let at = next++; at < n; at = next++) {
      const kind = slow_clients[(seed + at) % slow_clients.length] as (typeof slow_clients)[0]
      const client = await kind[1](target)
      clients.push(client)
      opened.push([kind[0], client.connection])
    }
  }
  await Promise.all(Array.from({ length: at_once }, openSome))
  return opened
}

let ticks = 0
setInterval(() => {
  const ticks_between = drip_ms / tick_ms
  for (let at = ticks++ % ticks_between; at < clients.length; at += ticks_between) {
    clients[at]?.drip()
  }
}, tick_ms)

process.on('message', async (order: SlowOrder | 'leave') => {
  if (order !== 'leave') {
    process.send?.(await openAll(order))
    return
  }
  for (const client of clients) client.leave()
  clients = []
})
process.once('disconnect', () => process.exit())
