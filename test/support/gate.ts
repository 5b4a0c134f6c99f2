/**
 * An address that a test opens and shuts: a proxy before a real server, which can refuse, break off
 * and fall silent as a machine does that dies or is cut off.
 */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

export interface Gate {
  readonly port: number
  /** Connections made since the start. */
  readonly taken: () => number
  /** New connections go to the server; those that were silent stay so. */
  open(): Promise<void>
  /** Breaks all connections off; new ones are refused. */
  shut(): Promise<void>
  /** From now on no byte gets through, and no connection breaks. */
  silence(): void
}

/** Shut at first. */
export async function newGate(server_port: number): Promise<Gate> {
  const port = await freePort()
  const sockets = new Set<Socket>()
  let listener: Server | undefined
  let is_silent = false
  let taken = 0
  const keep = (socket: Socket): Socket => {
    sockets.add(socket.setNoDelay())
    socket.on('error', () => {})
    return socket.on('close', () => sockets.delete(socket))
  }
  const take = (caller: Socket): void => {
    taken++
    keep(caller)
    if (is_silent) return void caller.pause()
    const server = keep(connect(server_port, '127.0.0.1'))
    caller.on('close', () => server.destroy())
    server.on('close', () => caller.destroy())
    caller.pipe(server).pipe(caller)
  }
  return {
    port,
    taken: () => taken,
    async open() {
      is_silent = false
      if (listener !== undefined) return
      listener = createServer({ allowHalfOpen: true }, take).listen(port, '127.0.0.1')
      await once(listener, 'listening')
    },
    async shut() {
      const closed = listener
      listener = undefined
      if (closed === undefined) return
      closed.close()
      for (const socket of sockets) socket.destroy()
      await once(closed, 'close')
    },
    silence() {
      is_silent = true
      for (const socket of sockets) socket.unpipe().pause()
    },
  }
}
