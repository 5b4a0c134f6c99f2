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

/** A client that was opened: its kind and its port. */
export type OpenedClient = readonly [string, number | undefined]

const at_once = 16
const drip_ms = 100
let clients: SlowClient[] = []

async function openAll({ target, n, seed }: SlowOrder): Promise<OpenedClient[]> {
  const opened: OpenedClient[] = []
  let next = 0
  const openSome = async (): Promise<void> => {
    for (let at = next++; at < n; at = next++) {
      const kind = slow_clients[(seed + at) % slow_clients.length] as (typeof slow_clients)[0]
      const client = await kind[1](target)
      clients.push(client)
      opened.push([kind[0], client.port])
    }
  }
  await Promise.all(Array.from({ length: at_once }, openSome))
  return opened
}

setInterval(() => {
  for (const client of clients) client.drip()
}, drip_ms)

process.on('message', async (order: SlowOrder | 'leave') => {
  if (order !== 'leave') {
    process.send?.(await openAll(order))
    return
  }
  for (const client of clients) client.leave()
  clients = []
})
process.once('disconnect', () => process.exit())
