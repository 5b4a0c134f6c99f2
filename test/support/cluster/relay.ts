/**
 * Passes TCP connections on to another address, and holds each byte back in both directions: a slow
 * network where the kernel has no netem.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Address } from './network.ts'

export interface Relay extends Address {
  close(): void
}

export async function startRelay(host: string, to: Address, delay_ms: number): Promise<Relay> {
  const sockets = new Set<Socket>()
  const pass = (from: Socket, other: Socket): void => {
    sockets.add(from)
    from.setNoDelay(true)
    from.on('data', (bytes) => setTimeout(() => void other.write(bytes), delay_ms))
    from.on('end', () => setTimeout(() => other.end(), delay_ms))
    // A connection that breaks is broken on its other side too.
    from.on('error', () => other.destroy())
    from.on('close', () => void sockets.delete(from))
  }
  const server = createServer({ allowHalfOpen: true }, (caller) => {
    const answerer = connect({ ...to, allowHalfOpen: true })
    pass(caller, answerer)
    pass(answerer, caller)
  })
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    ...{ host, port },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
