/**
 * Where a call goes: the URL, and the one address that stands for its host during an attempt. The
 * address is looked up once, judged, and connected to as it is, so nothing a name server says later
 * leads elsewhere.
 */
import { ADDRCONFIG, lookup as dnsLookup } from 'node:dns'
import { isIP } from 'node:net'
import { nonPublicReason } from './call-address.ts'
import { type CallFailure, callFailure, failureOfError } from './call-failure.ts'

/** Every address of a name. Rejects as `dns.lookup` does. */
export type Lookup = (hostname: string) => Promise<readonly string[]>

export interface AddressResolver {
  /** The address to connect to. */
  resolve(url: URL): Promise<string | CallFailure>
}

export interface ResolverOptions {
  /** As `readAllowHosts` makes it. */
  readonly allowed: ReadonlySet<string>
  readonly lookup?: Lookup
}

/**
 * `host:port` entries as a call compares them. Throws a RangeError that names an entry which is
 * none; IPv6 stands in brackets.
 */
export function readAllowHosts(entries: readonly string[]): ReadonlySet<string> {
  return new Set(
    entries.map((entry) => {
      const port = /^[^/?#@\\\s]+:([0-9]{1,5})$/.exec(entry)?.[1]
      const url = port === undefined ? undefined : parseUrl(`http://${entry}`)
      if (url === undefined) throw new RangeError(`allow_hosts: "${entry}" is no HOST:PORT`)
      return `${url.hostname}:${Number(port)}`
    }),
  )
}

/** The URL of a call, or why there can be none. The text itself is never repeated: it may hold a
 * secret. */
export function readUrl(text: string): URL | CallFailure {
  if (text === '') return callFailure('bad_url', 'no URL')
  // The parser would drop these, and what was checked would not be what was meant.
  if (/[\p{Cc}]/u.test(text)) return callFailure('bad_url', 'a control character in the URL')
  const url = parseUrl(text)
  if (url === undefined) return callFailure('bad_url', 'no URL that can be read')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return callFailure('bad_url', `the URL's scheme is ${url.protocol} and not http: or https:`)
  }
  return url
}

/** Undefined where there is none to be read. */
export function parseUrl(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

/** `host:port` with the port that the scheme means. */
export function hostOf(url: URL): string {
  return `${url.hostname}:${portOf(url)}`
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

/** A host of IPv6 without its brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/** Lookups block a thread each of the few that disk writes share. */
const lookups_max = 2

export function newAddressResolver({
  allowed,
  lookup = systemLookup,
}: ResolverOptions): AddressResolver {
  let under_way = 0
  const queue: (() => void)[] = []

  async function lookUp(hostname: string): Promise<readonly string[]> {
    if (under_way >= lookups_max) await new Promise<void>((resolve) => queue.push(resolve))
    else under_way++
    try {
      return await lookup(hostname)
    } finally {
      const next = queue.shift()
      if (next === undefined) under_way--
      else next()
    }
  }

  return {
    async resolve(url) {
      const host = bareHost(url)
      let addresses: readonly string[] = [host]
      if (isIP(host) === 0) {
        try {
          addresses = await lookUp(host)
        } catch (error) {
          return failureOfError(error)
        }
      }
      const is_allowed = allowed.has(hostOf(url))
      const usable = addresses.filter((one) => is_allowed || nonPublicReason(one) === undefined)
      // Only one is tried, and IPv4 is the one that works on more machines.
      const address = usable.find((one) => isIP(one) === 4) ?? usable[0]
      if (address !== undefined) return address
      if (addresses.length === 0) return callFailure('connection', 'the name has no address')
      const what = nonPublicReason(addresses[0] as string)
      return callFailure('refused_address', `${hostOf(url)} is not a public address: ${what}`)
    },
  }
}

function systemLookup(hostname: string): Promise<string[]> {
  return new Promise((resolve, reject) => {
    dnsLookup(hostname, { all: true, hints: ADDRCONFIG }, (error, found) => {
      if (error) reject(error)
      else resolve(found.map(({ address }) => address))
    })
  })
}
