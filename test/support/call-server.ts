/**
 * Servers for calls of tests: each on a port of 127.0.0.1, with its requests recorded in order, and
 * closed with all its connections.
 */
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecure } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export interface CallServer extends AsyncDisposable {
  readonly port: number
  /** The server's entry for `allow_hosts`. */
  readonly host: string
  readonly url: string
  readonly asked: Asked[]
  close(): Promise<void>
}

export interface SecureOptions {
  readonly key: string
  readonly cert: string
  /** With `requestCert` only callers with a certificate of this authority are served. */
  readonly ca?: string
  readonly requestCert?: boolean
}

/** `answer` gets the request once its body has arrived. */
export async function callServer(
  answer: (asked: Asked, ...rest: Parameters<RequestListener>) => void,
  { secure, port = 0 }: { readonly secure?: SecureOptions; readonly port?: number } = {},
): Promise<CallServer> {
  const asked: Asked[] = []
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const one = { method, path: url, headers, body: Buffer.concat(chunks).toString('utf8') }
      asked.push(one)
      answer(one, request, response)
    })
  }
  const server: Server = secure ? createSecure(secure, listener) : createServer(listener)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  // A test that failed before it closed its server must still end.
  server.unref()
  const bound = (server.address() as AddressInfo).port
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  const host = `127.0.0.1:${bound}`
  return {
    port: bound,
    host,
    url: `${secure ? 'https' : 'http'}://${host}`,
    asked,
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Answers JSON text with a status. */
export function answerJson(text = '{}', status = 200): Parameters<typeof callServer>[0] {
  return (_asked, _request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(text)
  }
}
