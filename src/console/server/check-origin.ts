/**
 * Tells whether a request comes from the page itself and not from a web page of somebody else. A
 * browser says of which origin the page is that sends a request, and how the two are related; what
 * sends requests without a browser says nothing, and needs a session as well.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { httpFault } from '../../server/http/fault-response.ts'

/** Throws the refusal. `is_page`: it asks for the page, to which anybody may lead. */
export function checkOrigin(headers: IncomingHttpHeaders, is_page: boolean): void {
  const { host = '', origin } = headers
  const site = headers['sec-fetch-site'] ?? 'none'
  const is_visit =
    headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  const is_own = origin === undefined || hostOf(origin) === host.toLowerCase()
  const is_same = site === 'none' || site === 'same-origin' || (is_page && is_visit)
  if (is_own && is_same) return
  const text = 'requests of web pages of another origin are refused'
  throw httpFault('bad_request', text, { status: 403 })
}

function hostOf(origin: string): string | undefined {
  return /^https?:/.test(origin) && URL.canParse(origin) ? new URL(origin).host : undefined
}
