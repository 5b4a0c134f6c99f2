/**
 * A port in front of another that a test can cut: connections end, and new ones are refused until
 * it is mended.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface CutLine {
  readonly port: number
  cut(): Promise<void>
  mend(): Promise<void>
  close(): Promise<void>
}

export async function openLine(to_port: number): Promise<CutLine> {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(to_port, '127.0.0.1')
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  const listen = async (port: number): Promise<void> => {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  }
  const cut = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  return {
    port,
    cut,
    mend: () => listen(port),
    close: async () => {
      if (server.listening) await cut()
    },
  }
}
