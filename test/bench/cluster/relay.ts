/**
 * A relay in front of PostgreSQL that holds back what the server says, for kernels that cannot delay
 * packets; in a process of its own, which takes its share of the cores.
 */
import { type Address, startRelay } from '../../support/relay.ts'
import { serveCalls } from '../child.ts'

export type RelayCalls = typeof calls

const calls = {
  async listen({ delay_ms, ...to }: Address & { readonly delay_ms: number }) {
    const { port } = await startRelay(to, { back_ms: delay_ms })
    return { port }
  },
}

serveCalls(calls)
