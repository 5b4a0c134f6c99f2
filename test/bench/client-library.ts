/**
 * The load through our own client library over HTTP, as a Node application would send it: each call has
 * one op, and requests are serialised and signed while the clock runs.
 */
import { type Client, connect } from '../../src/client.ts'
import { serveCalls } from './child.ts'
import { type LivesLoad, lifeOrder, livesLoop } from './life-order.ts'
import type { Endpoint } from './load-clients.ts'
import type { Slot } from './statistics.ts'
import { conv_id, dataOf, refOf, user } from './workload.ts'

export type ClientLibraryCalls = typeof calls

type LibraryLives = LivesLoad & Endpoint & { readonly tasks: number }

let current: { readonly port: number; readonly client: Client } | undefined

/** Keeps one client for each server, as an application does. */
async function clientOf({ port, secret }: Endpoint): Promise<Client> {
  if (current?.port === port) return current.client
  await current?.client.close()
  const client = await connect({ url: `http://127.0.0.1:${port}`, user, secret })
  current = { port, client }
  return client
}

const calls = {
  /** Whole lives, at a server with so many waiting tasks, one slot for each. */
  async lives({ port, secret, tasks, ...load }: LibraryLives): Promise<Slot> {
    const client = await clientOf({ port, secret })
    return livesLoop(lifeOrder(tasks), load, async (verb, n) => {
      const input = { conv_id, ref: refOf(n, 'random'), data: dataOf(verb, n) }
      const { proc } = await client[verb](input)
      if (proc !== 'ok') throw new Error(`${verb}: ${proc}`)
    })
  },
}

serveCalls(calls)
