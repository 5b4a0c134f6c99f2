/**
 * The grammar of the two paths, the signed endpoint and /healthz (wire 1.1). Percent escapes are
 * not decoded, so only the literal path matches. A query is ignored. A configured base path
 * precedes both; /healthz also answers without it, for probes that bypass the proxy.
 */

export interface Target {
  /** Decides only the shape of the results. */
  readonly version: 1 | 2
  readonly user: string
  /** As written in the path, which is what was signed. */
  readonly timestamp: string
  /** In lower case. */
  readonly signature: string
}

export type Route = (url: string) => Target | 'health' | undefined

/** `base` is empty or starts with a slash, else a RangeError. A trailing slash is dropped. */
export function routeUnder(base: string): Route {
  const prefix = base.replace(/\/+$/, '')
  if (prefix !== '' && !/^\/[!-~]*$/.test(prefix)) {
    throw new RangeError(`base: ${JSON.stringify(base)} is no path that opens with a slash`)
  }
  const literal = prefix.replace(/[^/A-Za-z0-9_-]/g, '\\$&')
  const api = new RegExp(`^${literal}${api_path}(?:\\?|$)`)
  const health = new RegExp(`^(?:${literal})?/healthz(?:\\?|$)`)
  return (url) => {
    const parts = api.exec(url)
    if (parts === null) return health.test(url) ? 'health' : undefined
    const [, version, user, timestamp, signature] = parts as unknown as ApiParts
    return { version: version === '1' ? 1 : 2, user, timestamp, signature: signature.toLowerCase() }
  }
}

type ApiParts = [path: string, version: string, user: string, timestamp: string, signature: string]

const api_path =
  '/api/([12])/json/([1-9][0-9]{0,15})/([1-9][0-9]{0,9}(?:\\.[0-9]{1,9})?)/([0-9a-fA-F]{40})'
