/**
 * Who may read at the operator's listener: on loopback without a token, every caller; with a token,
 * callers that send it; over TLS without a token, client certificates of its authority that act as
 * no user, because a user may not see all tasks.
 *
 * Requests of web pages are refused: a page of another site can make the operator's browser send
 * requests across origins (the browser says so), or to a loopback address under a name that
 * resolves to 127.0.0.1 (the Host shows the name). A token or a certificate rules out the second.
 */

import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { systemClock } from '../../core/clock.ts'
import { isLoopback } from '../../core/host.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { hostsOf } from '../http/check-head.ts'
import { httpFault } from '../http/fault-response.ts'
import type { CertificateReader } from '../tls/client-certificates.ts'

const token_chars_min = 16
/** A longer one would not fit into the head of a request. */
const token_chars_max = 1_024

export interface Access {
  /** Throws the refusal of a caller that may not read. */
  check(request: IncomingMessage): void
  /** Every caller may read. */
  readonly is_open: boolean
}

export const open_access: Access = { check() {}, is_open: true }

/** Throws a RangeError for a token that is too short, or cannot be sent. */
export function tokenAccess(token: string): Access {
  const { length } = token
  if (!/^[!-~]+$/.test(token) || length < token_chars_min || length > token_chars_max) {
    const bounds = `${token_chars_min} to ${token_chars_max}`
    throw new RangeError(`token: it takes ${bounds} characters of ASCII, none a space`)
  }
  // Digests have one length, which a comparison in constant time needs.
  const wanted = Buffer.from(hash('sha256', token))
  return {
    is_open: false,
    check({ headers: { authorization } }) {
      const [, given] = /^Bearer +([!-~]+)$/i.exec(authorization ?? '') ?? []
      if (timingSafeEqual(Buffer.from(hash('sha256', given ?? '')), wanted)) return
      const text =
        given === undefined ? 'no token: send Authorization: Bearer TOKEN' : 'this is another token'
      throw httpFault('bad_signature', text, { challenge: 'Bearer' })
    },
  }
}

/** A node that is not the owner shows no tasks, so any certificate may read there. */
export function certificateAccess(
  engineNow: () => Pick<ServedEngine, 'callerOf'> | undefined,
  read: CertificateReader,
): Access {
  return {
    is_open: false,
    check({ socket }) {
      const names = read(socket as TLSSocket)
      if (typeof names === 'string') {
        const text = `the client certificate is refused: ${names.replaceAll('_', ' ')}`
        const none = 'no client certificate: send one of the authority of this listener'
        throw httpFault('bad_signature', names === 'no_certificate' ? none : text)
      }
      if (systemClock.now_ms() >= names.ends_ms) {
        throw httpFault('bad_signature', 'the certificate has expired')
      }
      const engine = engineNow()
      if (engine === undefined) return
      const caller = engine.callerOf(names.names, false)
      if (caller !== undefined && caller.user === undefined) return
      const text = 'this certificate is refused, or acts as a user, who may not see all tasks'
      throw httpFault('bad_signature', text, { status: 403 })
    },
  }
}

const host_header = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::[0-9]{1,5})?$/

/** Throws the refusal of a request without exactly one Host, a loopback address. */
export function checkHost(request: IncomingMessage): void {
  const [, six, name = ''] = host_header.exec(request.headers.host ?? '') ?? []
  if (isLoopback(six ?? name) && hostsOf(request) === 1) return
  throw refusal('the Host is no loopback address; ask for 127.0.0.1, ::1 or localhost')
}

/** Throws the refusal of a request from a web page. */
export function checkSource({ origin, ...headers }: IncomingHttpHeaders): void {
  const site = headers['sec-fetch-site'] ?? 'none'
  if (origin !== undefined || (site !== 'none' && site !== 'same-origin')) {
    throw refusal('requests of web pages of another origin are refused')
  }
}

function refusal(text: string): Error {
  return httpFault('bad_request', text, { status: 403 })
}
