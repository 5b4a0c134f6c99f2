/** The hosts of listeners: an address, with six groups or four, or a name. */

const loopback = /^(?:localhost|127(?:\.[0-9]{1,3}){3}|::1|0:0:0:0:0:0:0:1)$/i

/** Whether this is a name or an address of the machine itself. */
export function isLoopback(host: string): boolean {
  return loopback.test(host)
}

/** As URLs have it: `127.0.0.1:8080`, `[::1]:8080`. */
export function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
