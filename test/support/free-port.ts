/**
 * A port of 127.0.0.1 that is free, for a server that is started again and again at one address.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that the system gives to callers, so that a server finds it free at each start. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    const server = createServer().listen(port, '127.0.0.1')
    const [event] = await Promise.race([
      once(server, 'listening').then(() => ['listening']),
      once(server, 'error').then(() => ['error']),
    ])
    if (event === 'error') continue
    server.close()
    await once(server, 'close')
    return port
  }
}
