/**
 * A relay in front of PostgreSQL that holds back what the server says, for kernels that cannot delay
 * packets. It knows nothing of the protocol, keeps the order of a connection, and takes its share of
 * the cores.
 */
import { connect, createServer, type Socket } from 'node:net'
import { serveCalls } from '../child.ts'

export type RelayCalls = typeof calls

interface RelayOptions {
  readonly host: string
  readonly port: number
  readonly delay_ms: number
}

const calls = {
  listen({ host, port, delay_ms }: RelayOptions): Promise<{ port: number }> {
    const server = createServer({ noDelay: true }, (client) => {
      const database = connect({ host, port, noDelay: true })
      client.pipe(database)
      passLater(database, client, delay_ms)
      client.on('error', () => database.destroy())
      database.on('error', () => client.destroy())
      client.on('close', () => database.destroy())
    })
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve(server.address() as { port: number }))
    })
  },
}

serveCalls(calls)

/** Timers of one length fire in the order in which they were set. */
function passLater(from: Socket, to: Socket, delay_ms: number): void {
  from.on('data', (chunk) => setTimeout(() => to.write(chunk), delay_ms))
  from.on('end', () => setTimeout(() => to.end(), delay_ms))
}
