/**
 * The grammar of the paths: one row for each (wire 1.1). Percent escapes are not decoded, so only
 * the literal path matches. A query is ignored. A configured base path precedes all; /healthz also
 * answers without it, for probes that bypass the proxy.
 */

/** What a request asks for. A new path is a kind here, a row of `paths` and a case in request. */
export type Target = OpsTarget | HealthTarget
/** A target whose request has a body: a POST. */
export type BodyTarget = Exclude<Target, HealthTarget>

/** Ops, signed in the path or in headers. */
export type OpsTarget = SignedTarget | HeaderSignedTarget

/** Ops with a signature in the path. */
export interface SignedTarget {
  readonly kind: 'signed'
  /** Decides only the shape of the results. */
  readonly version: 1 | 2
  readonly user: string
  /** As written in the path, which is what was signed. */
  readonly timestamp: string
  /** In lower case. */
  readonly signature: string
}

/** Ops with a signature in headers. */
export interface HeaderSignedTarget {
  readonly kind: 'header_signed'
  readonly version: 1 | 2
}

export interface HealthTarget {
  readonly kind: 'health'
}

export type Route = (url: string) => Target | undefined

interface PathRow {
  /** A regular expression of the whole path. */
  readonly path: string
  /** Whether the path is served without the base too. */
  readonly is_base_optional?: true
  /** From the path and the groups of its expression. */
  target(groups: readonly string[]): Target
}

export const user_id_pattern = '[1-9][0-9]{0,15}'
export const timestamp_pattern = '[1-9][0-9]{0,9}(?:\\.[0-9]{1,9})?'

/** In the order in which a path is compared with them: the commonest first. */
const paths: readonly PathRow[] = [
  {
    path: `/api/([12])/json/(${user_id_pattern})/(${timestamp_pattern})/([0-9a-fA-F]{40})`,
    target: ([, version, user, timestamp, signature]) => ({
      kind: 'signed',
      version: versionOf(version),
      user: user as string,
      timestamp: timestamp as string,
      signature: (signature as string).toLowerCase(),
    }),
  },
  {
    path: '/api/([12])/json/?',
    target: ([, version]) => ({ kind: 'header_signed', version: versionOf(version) }),
  },
  { path: '/healthz', is_base_optional: true, target: () => ({ kind: 'health' }) },
]

function versionOf(digit: string | undefined): 1 | 2 {
  return digit === '1' ? 1 : 2
}

/** `base` is empty or starts with a slash, else a RangeError. A trailing slash is dropped. */
export function routeUnder(base: string): Route {
  const prefix = base.replace(/\/+$/, '')
  if (prefix !== '' && !/^\/[!-~]*$/.test(prefix)) {
    throw new RangeError(`base: ${JSON.stringify(base)} is no path that opens with a slash`)
  }
  const literal = prefix.replace(/[^/A-Za-z0-9_-]/g, '\\$&')
  const routes = paths.map(({ path, is_base_optional, target }) => {
    const opening = is_base_optional ? `(?:${literal})?` : literal
    return { pattern: new RegExp(`^${opening}${path}(?:\\?|$)`), target }
  })
  return (url) => {
    for (const { pattern, target } of routes) {
      const groups = pattern.exec(url)
      if (groups !== null) return target(groups)
    }
    return undefined
  }
}
