/**
 * The floor of HTTP cells: a bare signed JSON endpoint on node:http, without a store.
 */
import { serveCalls } from './child.ts'
import { listenSigned } from './signed-server.ts'

export type HttpFloorCalls = typeof calls

const calls = {
  listen: ({ secret }: { secret: string }): Promise<{ port: number }> =>
    listenSigned(secret, () => undefined),
}

serveCalls(calls)
