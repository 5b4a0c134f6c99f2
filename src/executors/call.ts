/**
 * Does calls over HTTP: looks the address up and judges it, signs, sends, follows redirects, bounds
 * the answer in size and the whole in time. It never tries again by itself and never rejects.
 *
 * A redirect is a new call as far as the address is concerned. What goes to another origin than the
 * one the process named is a GET without the process's headers and body, and stays so whatever the
 * next redirect says. No header, body, secret or URL is ever put into a description.
 */
import { signatureOf } from '../codec/signature.ts'
import type { Clock } from '../core/clock.ts'
import type { Limits } from '../core/limits.ts'
import { version } from '../core/version.ts'
import type { Job } from '../engine/job-dispatcher.ts'
import type { CallRequest, JobOutcome } from '../process/logic.ts'
import { type CallFailure, callFailure, isCallFailure, outcomeOf } from './call-failure.ts'
import {
  type AddressedRequest,
  type HttpClient,
  type HttpResponse,
  newHttpClient,
} from './call-request.ts'
import {
  type AddressResolver,
  type Lookup,
  newAddressResolver,
  parseUrl,
  readAllowHosts,
  readUrl,
} from './call-resolver.ts'

export interface CallExecutor {
  run(request: CallRequest, job: Pick<Job, 'key' | 'signal'>): Promise<JobOutcome>
  /** Ends what is under way and lets go of kept connections. */
  close(): Promise<void>
}

export interface CallExecutorOptions {
  readonly limits: Limits
  readonly clock: Clock
  /** `host:port` that calls may reach although it is no public address. */
  readonly allow_hosts: readonly string[]
  /** Instead of the system's own. */
  readonly lookup?: Lookup
  /** Authorities in PEM, instead of the system's. */
  readonly ca?: string
}

const redirects_max = 3
const user_agent = `conveyor/${version}`

export function newCallExecutor(options: CallExecutorOptions): CallExecutor {
  const { limits, clock, lookup } = options
  const allowed = readAllowHosts(options.allow_hosts)
  const resolver = newAddressResolver({ allowed, ...(lookup && { lookup }) })
  const wire = newHttpClient(limits.call_bytes_max, options.ca)
  const closing = new AbortController()
  return {
    async run(request, job) {
      const deadline = new AbortController()
      const disarm = clock.wake_at(clock.now_ms() + limits.call_ms_max, () => deadline.abort())
      const signal = AbortSignal.any([deadline.signal, job.signal, closing.signal])
      try {
        const answer = await unlessAborted(signal, () =>
          follow(firstHop(request, job.key, clock.now_ms()), { resolver, wire, signal }),
        )
        return 'cause' in answer ? outcomeOf(answer) : { outcome: 'done', ...answer }
      } catch (error) {
        if (!signal.aborted) return outcomeOf(callFailure('bad_answer', textOf(error)))
        if (job.signal.aborted || closing.signal.aborted) {
          return outcomeOf(callFailure('stopped', 'the engine is closing'))
        }
        return outcomeOf(callFailure('timeout', `no answer within ${limits.call_ms_max} ms`))
      } finally {
        disarm()
      }
    },
    async close() {
      closing.abort()
      wire.close()
    },
  }
}

type UnresolvedRequest = Omit<AddressedRequest, 'address'>

/** The request as the process means it, signed now. */
function firstHop(
  request: CallRequest,
  key: string,
  now_ms: number,
): UnresolvedRequest | CallFailure {
  const url = readUrl(request.url)
  if (isCallFailure(url)) return url
  const { method, body, sign } = request
  if (sign !== undefined) {
    const time = String(Math.floor(now_ms / 1000))
    const signature = signatureOf(time, sign.secret, body ?? '')
    const conv_id = encodeURIComponent(sign.conv_id)
    const added = `conv_signature=${signature}&conv_time=${time}&conv_id=${conv_id}`
    url.search = url.search === '' ? added : `${url.search}&${added}`
  }
  const headers = new Map(own_headers)
  headers.set('idempotency-key', key)
  if (url.username !== '' || url.password !== '') {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    headers.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`)
  }
  for (const [name, value] of request.headers) headers.set(name.toLowerCase(), value)
  headers.set('accept-encoding', 'identity')
  if (body !== undefined) headers.set('content-length', String(Buffer.byteLength(body)))
  return { url, method, headers, body }
}

const own_headers: readonly (readonly [string, string])[] = [
  ['accept', 'application/json, */*;q=0.1'],
  ['user-agent', user_agent],
  ['accept-encoding', 'identity'],
]

interface Ways {
  readonly resolver: AddressResolver
  readonly wire: HttpClient
  readonly signal: AbortSignal
}

async function follow(
  first: UnresolvedRequest | CallFailure,
  ways: Ways,
): Promise<HttpResponse | CallFailure> {
  let next = first
  for (let redirects = 0; ; redirects++) {
    if ('cause' in next) return next
    const address = await ways.resolver.resolve(next.url)
    if (typeof address !== 'string') return address
    const answer = await ways.wire.send({ ...next, address }, ways.signal)
    if ('cause' in answer) return answer
    const location = locationOf(answer)
    if (location === undefined) return answer
    if (redirects === redirects_max) {
      return callFailure('redirects', `more than ${redirects_max} redirects`)
    }
    next = redirected(next, answer.status, location)
  }
}

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
    return { url, method: is_head ? 'HEAD' : 'GET', headers: new Map(own_headers), body: undefined }
  }
  if (status === 307 || status === 308 || from.method === 'GET' || is_head) {
    return { ...from, url }
  }
  const headers = new Map(from.headers)
  for (const name of [...headers.keys()]) if (name.startsWith('content-')) headers.delete(name)
  return { url, method: 'GET', headers, body: undefined }
}

/** A lookup cannot be called off, so its end is not waited for. */
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

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
