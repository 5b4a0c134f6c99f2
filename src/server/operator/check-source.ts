/**
 * Tells whether a request comes from this machine's operator and not from a web page that the
 * operator has open. A page of another site can make the browser send requests to loopback
 * addresses: by a name of its own that it resolves to 127.0.0.1 (the Host shows the name), or
 * across origins (the browser says so).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isLoopback } from '../../core/host.ts'
import { httpFault } from '../http/fault-response.ts'

const host_header = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::[0-9]{1,5})?$/

/** Throws the refusal of a request whose Host is no loopback address, or of another origin. */
export function checkSource(headers: IncomingHttpHeaders): void {
  const { host = '', origin } = headers
  const [, six, name = ''] = host_header.exec(host) ?? []
  if (!isLoopback(six ?? name)) {
    throw refusal('the Host is no loopback address; ask for 127.0.0.1, ::1 or localhost')
  }
  const site = headers['sec-fetch-site'] ?? 'none'
  if (origin !== undefined || (site !== 'none' && site !== 'same-origin')) {
    throw refusal('requests of web pages of another origin are refused')
  }
}

function refusal(text: string): Error {
  return httpFault('bad_request', text, { status: 403 })
}
