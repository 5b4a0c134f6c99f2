/**
 * A way to the database that goes wrong when it is told to: as a named statement passes, the
 * connection is cut before the bytes, after them, or once the answer is there, or it holds all from
 * then on. What it holds may arrive later, when its sender has long asked by another connection.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export type Mishap =
  /** The server never sees it. */
  | 'cut before'
  /** The server works on it while its sender is told that the connection is gone. */
  | 'cut at once'
  /** It is done, and the answer is lost. */
  | 'cut after'
  /** Nothing passes any more, either way; `release` lets it through to the server. */
  | 'hold'

export interface DatabaseProxy {
  readonly port: number
  /** What happens to the next statements that have a name, one after the other. */
  plan(mishaps: readonly (readonly [statement: string, mishap: Mishap | 'none'])[]): void
  /** How many of the plan have not happened. */
  left(): number
  /** What was held arrives at the server, whose answers nobody reads. */
  release(): void
  /** Called with each mishap, before it happens. */
  onMishap: (statement: string, mishap: Mishap) => Promise<void> | void
  close(): void
}

/** To an address, or to a Unix socket. */
export async function startProxy(to: { port: number; host: string }): Promise<DatabaseProxy> {
  let planned: (readonly [string, Mishap | 'none'])[] = []
  let held: (() => void)[] = []
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (caller) => {
    const database = connect({ ...to, allowHalfOpen: true })
    let state: 'passes' | 'drops answers' | 'holds' = 'passes'
    for (const socket of [caller, database]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    caller.on('data', (bytes) => {
      if (state === 'holds') return
      const [statement, mishap] = planned[0] ?? []
      // A Bind message: no portal, then the name of the statement.
      const is_next = statement !== undefined && bytes.includes(`\0${statement}\0`)
      if (is_next) planned.shift()
      if (!is_next || mishap === undefined || mishap === 'none') return void database.write(bytes)
      void happen(statement, mishap, bytes)
    })
    async function happen(statement: string, mishap: Mishap, bytes: Buffer): Promise<void> {
      state = mishap === 'hold' ? 'holds' : 'drops answers'
      await proxy.onMishap(statement, mishap)
      if (mishap === 'hold') {
        held.push(() => {
          state = 'drops answers'
          database.end(bytes)
        })
      } else if (mishap === 'cut before') {
        caller.destroy()
        database.destroy()
      } else {
        database.end(bytes)
        if (mishap === 'cut at once') caller.destroy()
      }
    }
    database.on('data', (bytes) => {
      if (state === 'passes') caller.write(bytes)
      else if (state === 'drops answers') caller.destroy()
    })
    for (const gone of ['end', 'close']) {
      database.on(gone, () => state === 'holds' || caller.destroy())
    }
    caller.on('close', () => state === 'passes' && database.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: DatabaseProxy = {
    port: (server.address() as { port: number }).port,
    plan(mishaps) {
      planned = [...mishaps]
    },
    left: () => planned.length,
    release() {
      for (const let_go of held) let_go()
      held = []
    },
    onMishap() {},
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
  return proxy
}
