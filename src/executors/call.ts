/**
 * The executor of HTTP calls: resolves and checks the address, signs, sends, follows redirects, and
 * bounds size and time. It never retries and never rejects. Each redirect's address is checked; one
 * to another origin becomes a GET without the process's headers and body, and so do later ones. A
 * description never contains a header, body, secret or URL.
 */
import { isKeyPair } from '../certs/key-pair.ts'
import { signatureOf } from '../codec/signature.ts'
import type { Clock } from '../core/clock.ts'
import type { Limits } from '../core/limits.ts'
import { traceparentOf } from '../core/tracing.ts'
import { version } from '../core/version.ts'
import type { Job } from '../engine/jobs/job-dispatcher.ts'
import type { CallRequest, JobOutcome } from '../process/logic.ts'
import {
  type CallFailure,
  callFailure,
  isBusyStatus,
  isCallFailure,
  outcomeOf,
} from './call-failure.ts'
import { type AddressedRequest, type HttpResponse, newHttpClient } from './call-request.ts'
import {
  type Lookup,
  newAddressResolver,
  parseUrl,
  readAllowHosts,
  readUrl,
} from './call-resolver.ts'

export interface CallExecutor {
  run(request: CallRequest, job: Pick<Job, 'key' | 'signal' | 'trace'>): Promise<JobOutcome>
  /** Aborts running calls and closes idle connections. */
  close(): Promise<void>
}

export interface CallExecutorOptions {
  readonly limits: Limits
  readonly clock: Clock
  /** `host:port` entries that may be called although their address is not public. */
  readonly allow_hosts: readonly string[]
  /** URL prefixes that may be called although their address is not public; may grow. */
  readonly own_urls?: ReadonlySet<string>
  /** Replaces the system's name lookup. */
  readonly lookup?: Lookup
  /** Replaces the system's certificate authorities, in PEM. */
  readonly ca?: string
}

const redirects_max = 3
const user_agent = `conveyor/${version}`

export function newCallExecutor(options: CallExecutorOptions): CallExecutor {
  const { limits, clock, lookup, own_urls = new Set() } = options
  const allowed = readAllowHosts(options.allow_hosts)
  const resolver = newAddressResolver({ allowed, own_urls, ...(lookup && { lookup }) })
  const client = newHttpClient(limits.call_bytes_max, options.ca)
  const closing = new AbortController()

  async function send(
    first: UnresolvedRequest | CallFailure,
    signal: AbortSignal,
  ): Promise<HttpResponse | CallFailure> {
    let next = first
    for (let redirects = 0; ; redirects++) {
      if ('cause' in next) return next
      const address = await resolver.resolve(next.url)
      if (typeof address !== 'string') return address
      const response = await client.send({ ...next, address }, signal)
      if ('cause' in response) return response
      const location = locationOf(response)
      if (location === undefined) return response
      if (redirects === redirects_max) {
        return callFailure('redirects', `more than ${redirects_max} redirects`)
      }
      next = redirected(next, response.status, location)
    }
  }

  return {
    async run(request, job) {
      const deadline = new AbortController()
      const disarm = clock.wake_at(clock.now_ms() + limits.call_ms_max, () => deadline.abort())
      const signal = AbortSignal.any([deadline.signal, job.signal, closing.signal])
      const began_ms = performance.now()
      try {
        const response = await unlessAborted(signal, () =>
          send(firstRequest(request, job, clock.now_ms()), signal),
        )
        return calledOutcome(request, response, performance.now() - began_ms)
      } catch {
        const is_late = signal.aborted && !job.signal.aborted && !closing.signal.aborted
        return outcomeOf(
          is_late ? callFailure('timeout', 'timeout') : callFailure('inside', 'Error running api'),
        )
      } finally {
        disarm()
      }
    },
    async close() {
      closing.abort()
      client.close()
    },
  }
}

function calledOutcome(
  { body = '' }: CallRequest,
  response: HttpResponse | CallFailure,
  exec_ms: number,
): JobOutcome {
  const answered = 'cause' in response ? response.answered : response
  const figures = answered && {
    exec_ms: Math.round(exec_ms * 1000) / 1000,
    request_bytes: Buffer.byteLength(body),
    status: answered.status,
    response_bytes: answered.response_bytes,
  }
  if ('cause' in response) return { ...outcomeOf(response), ...(figures && { figures }) }
  const { status, headers, text } = response
  return {
    ...{ outcome: 'done', status, headers, text, may_pass: isBusyStatus(status) },
    ...(figures && { figures }),
  }
}

type UnresolvedRequest = Omit<AddressedRequest, 'address'>

function firstRequest(
  request: CallRequest,
  { key, trace }: Pick<Job, 'key' | 'trace'>,
  now_ms: number,
): UnresolvedRequest | CallFailure {
  const url = readUrl(request.url)
  if (isCallFailure(url)) return url
  const { method, body, sign, cert_pem } = request
  if (cert_pem !== undefined && !isKeyPair(cert_pem)) return notBound('cert_pem')
  if (sign !== undefined) {
    const time = String(Math.floor(now_ms / 1000))
    const signature = signatureOf(time, sign.secret, body ?? '')
    const conv_id = encodeURIComponent(sign.conv_id)
    const added = `conv_signature=${signature}&conv_time=${time}&conv_id=${conv_id}`
    url.search = url.search === '' ? added : `${url.search}&${added}`
  }
  const headers = new Map(default_headers)
  headers.set('idempotency-key', key)
  if (trace !== undefined) headers.set('traceparent', traceparentOf(trace))
  if (url.username !== '' || url.password !== '') {
    const pair = decoded(`${url.username}:${url.password}`)
    if (pair === undefined) return notBound('the credentials of the URL')
    headers.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`)
  }
  for (const [name, value] of request.headers) headers.set(name.toLowerCase(), value)
  headers.set('accept-encoding', 'identity')
  if (body !== undefined) headers.set('content-length', String(Buffer.byteLength(body)))
  return { url, method, headers, body, cert_pem }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function notBound(what: string): CallFailure {
  return callFailure('not_bound', `Error bind params to http query: ${what}`)
}

const default_headers: readonly (readonly [string, string])[] = [
  ['accept', 'application/json, */*;q=0.1'],
  ['user-agent', user_agent],
  ['accept-encoding', 'identity'],
]

const redirect_statuses = [301, 302, 303, 307, 308]

function locationOf({ status, headers }: HttpResponse): string | undefined {
  if (!redirect_statuses.includes(status)) return undefined
  return headers.find(([name]) => name === 'location')?.[1]
}

function redirected(
  from: UnresolvedRequest,
  status: number,
  location: string,
): UnresolvedRequest | CallFailure {
  const url = readUrl(parseUrl(location, from.url)?.href ?? location)
  if (isCallFailure(url)) return callFailure('bad_url', `a redirect: ${url.description}`)
  const is_head = from.method === 'HEAD'
  if (url.origin !== from.url.origin) {
    return {
      url,
      method: is_head ? 'HEAD' : 'GET',
      headers: new Map(default_headers),
      body: undefined,
      cert_pem: undefined,
    }
  }
  if (status === 307 || status === 308 || from.method === 'GET' || is_head) {
    return { ...from, url }
  }
  const headers = new Map(from.headers)
  for (const name of [...headers.keys()]) if (name.startsWith('content-')) headers.delete(name)
  return { ...from, url, method: 'GET', headers, body: undefined }
}

/** Rejects as soon as the signal aborts: a name lookup cannot be aborted itself. */
async function unlessAborted<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  if (signal.aborted) throw signal.reason
  let stop = (): void => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([run(), aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
