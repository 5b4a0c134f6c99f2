/**
 * Tells whether a request comes from the operator and not from a web page that the operator has
 * open. A page of another site can make the browser send requests: across origins (the browser says
 * so), or to a loopback address by a name of its own that it resolves to 127.0.0.1 (the Host shows
 * the name). The second does not matter where requests need a token or a certificate, which such a
 * page does not have. The operator's page has a check of its own for the first.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isLoopback } from '../../core/host.ts'
import { hostsOf } from '../http/check-head.ts'
import { httpFault } from '../http/fault-response.ts'

const host_header = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::[0-9]{1,5})?$/

/** Throws the refusal of a Host that is no loopback address, of none and of more than one. */
export function checkHost(request: IncomingMessage): void {
  const [, six, name = ''] = host_header.exec(request.headers.host ?? '') ?? []
  if (isLoopback(six ?? name) && hostsOf(request) === 1) return
  throw refusal('the Host is no loopback address; ask for 127.0.0.1, ::1 or localhost')
}

/** Throws the refusal of a request of a web page. */
export function checkSource({ origin, ...headers }: IncomingHttpHeaders): void {
  const site = headers['sec-fetch-site'] ?? 'none'
  if (origin !== undefined || (site !== 'none' && site !== 'same-origin')) {
    throw refusal('requests of web pages of another origin are refused')
  }
}

function refusal(text: string): Error {
  return httpFault('bad_request', text, { status: 403 })
}
