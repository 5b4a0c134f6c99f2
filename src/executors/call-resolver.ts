/**
 * The URL of a call and the one address to connect to. The name is looked up once, its addresses
 * are checked, and the connection goes to the checked address, so DNS rebinding has no effect.
 */
import { ADDRCONFIG } from 'node:dns'
import { lookup as dnsLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { nonPublicReason } from './call-address.ts'
import { type CallFailure, callFailure, failureOfError } from './call-failure.ts'

/** All addresses of a name. Rejects as `dns.lookup` does. */
export type Lookup = (hostname: string) => Promise<readonly string[]>

export interface AddressResolver {
  resolve(url: URL): Promise<string | CallFailure>
}

export interface ResolverOptions {
  readonly allowed: ReadonlySet<string>
  /** URL prefixes that may be called although their address is not public; may grow. */
  readonly own_urls: ReadonlySet<string>
  readonly lookup?: Lookup
}

/** Normalises `host:port` entries, IPv6 in brackets. The RangeError names a malformed entry. */
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

/**
 * Parses the URL of a call. A failure never shows the text, which may contain a secret; `no_scheme`
 * means empty or without a scheme to call.
 */
export function readUrl(text: string): URL | CallFailure {
  if (!/^https?:/i.test(text)) return callFailure('bad_url', 'no_scheme')
  // The URL parser drops control characters, so the URL checked would not be the URL written.
  if (/[\p{Cc}]/u.test(text)) return callFailure('bad_url', 'a control character in the URL')
  const url = parseUrl(text)
  return url ?? callFailure('bad_url', 'no URL that can be read')
}

export function parseUrl(text: string, base?: URL): URL | undefined {
  return URL.canParse(text, base?.href) ? new URL(text, base) : undefined
}

/** `host:port`, with the scheme's default port where the URL has none. */
export function hostOf(url: URL): string {
  return `${url.hostname}:${portOf(url)}`
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

/** The host name, or the address; IPv6 without brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/** A proxy that decodes it would leave the allowed prefix of the path. */
const climbs = /(?:\.|%2e){2}(?:%2f|%5c)/i

/** A lookup blocks one of libuv's few threads, which disk writes need too. */
const lookups_max = 2

export function newAddressResolver({
  allowed,
  own_urls,
  lookup = systemLookup,
}: ResolverOptions): AddressResolver {
  let lookups = 0
  const queue: (() => void)[] = []

  async function lookUp(hostname: string): Promise<readonly string[]> {
    if (lookups >= lookups_max) await new Promise<void>((resolve) => queue.push(resolve))
    else lookups++
    try {
      return await lookup(hostname)
    } finally {
      const next = queue.shift()
      if (next === undefined) lookups--
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
      const is_own =
        !climbs.test(url.href) && [...own_urls].some((start) => url.href.startsWith(start))
      const is_allowed = is_own || allowed.has(hostOf(url))
      const usable = addresses.filter((one) => is_allowed || nonPublicReason(one) === undefined)
      // Only one address is tried, and IPv4 works on more machines.
      const address = usable.find((one) => isIP(one) === 4) ?? usable[0]
      if (address !== undefined) return address
      if (addresses.length === 0) return callFailure('failed_connect', 'failed_connect')
      const what = nonPublicReason(addresses[0] as string)
      return callFailure('refused_address', `${hostOf(url)} is not a public address: ${what}`)
    },
  }
}

async function systemLookup(hostname: string): Promise<string[]> {
  const found = await dnsLookup(hostname, { all: true, hints: ADDRCONFIG })
  return found.map(({ address }) => address)
}
