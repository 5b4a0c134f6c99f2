/**
 * Passes TCP connections on to another address. It can hold back the bytes of each direction, as a
 * slow network does where the kernel has no netem, counts what it has passed to callers, and can be
 * cut: connections end, and new ones are refused until it is mended.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface Relay extends Address {
  /** By port of the connection at the server, the bytes that were passed to the caller so far. */
  counts(): ReadonlyMap<number, number>
  cut(): Promise<void>
  mend(): Promise<void>
  close(): void
}

export async function startRelay(
  to: Address,
  { host = '127.0.0.1', there_ms = 0, back_ms = 0 } = {},
): Promise<Relay> {
  const sockets = new Set<Socket>()
  const counts = new Map<number, number>()
  const pass = (
    from: Socket,
    other: Socket,
    ms: number,
    onBytes = (_count: number) => {},
  ): void => {
    // Timers of one length fire in the order in which they were set.
    const later = (work: () => void): unknown => (ms > 0 ? setTimeout(work, ms) : work())
    sockets.add(from)
    from.setNoDelay(true)
    from.on('data', (bytes) => {
      onBytes(bytes.length)
      later(() => other.write(bytes))
    })
    from.on('end', () => later(() => other.end()))
    // A connection that breaks is broken on its other side too.
    from.on('error', () => other.destroy())
    from.on('close', () => sockets.delete(from))
  }
  const server = createServer({ allowHalfOpen: true }, (caller) => {
    const answerer = connect({ ...to, allowHalfOpen: true })
    pass(caller, answerer, there_ms)
    pass(answerer, caller, back_ms, (count) => {
      const port = answerer.localPort as number
      counts.set(port, (counts.get(port) ?? 0) + count)
    })
  })
  const listen = async (port: number): Promise<void> => {
    await once(server.listen(port, host), 'listening')
  }
  await listen(0)
  const { port } = server.address() as { port: number }
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return {
    ...{ host, port, close },
    counts: () => new Map(counts),
    async cut() {
      const closed = once(server, 'close')
      close()
      await closed
    },
    mend: () => listen(port),
  }
}
