/**
 * A way to a server that counts what its callers have received, by connection: so many bytes the
 * server had sent when a caller had its answer, whatever they are encrypted with.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'

export interface ByteTap {
  /** Where callers connect to. */
  readonly address: string
  /** By port of the connection at the server, the bytes that were passed on to the caller so far. */
  counts(): ReadonlyMap<number, number>
  close(): void
}

export async function openByteTap(address: string): Promise<ByteTap> {
  const [host = '', port = ''] = address.split(':')
  const counts = new Map<number, number>()
  const ends: (() => void)[] = []
  const server = createServer((caller) => {
    const callee = connect(Number(port), host)
    const end = (): void => {
      caller.destroy()
      callee.destroy()
    }
    ends.push(end)
    caller.setNoDelay(true)
    callee.setNoDelay(true)
    caller.on('data', (bytes) => callee.write(bytes))
    callee.on('data', (bytes) => {
      const own_port = callee.localPort as number
      counts.set(own_port, (counts.get(own_port) ?? 0) + bytes.length)
      caller.write(bytes)
    })
    for (const socket of [caller, callee]) socket.on('error', end).on('close', end)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts: () => new Map(counts),
    close() {
      for (const end of ends) end()
      server.close()
    },
  }
}
