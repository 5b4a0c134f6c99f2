/**
 * The grammar of the paths: one row for each (wire 1.1, 1.11, 1.12). A query counts only where it
 * signs. A configured base path precedes all; /healthz also answers without it, for probes that
 * bypass the proxy. Only ids of addresses may have percent escapes, and only necessary ones, so
 * that an address has one spelling.
 */
import {
  areWellFormed,
  mistakesOf,
  path_signature_pattern,
  timestamp_pattern,
  user_id_pattern,
} from './credentials.ts'

/** The target of a path. A new path needs a kind here, a row of `paths` and a case in request. */
export type Target = BodyTarget | HealthTarget | MalformedTarget
/** A target whose request has a body: a POST. */
export type BodyTarget = OpsTarget | WebhookTarget | CallbackTarget | SyncAnswerTarget | FileTarget

/** Ops, signed in the path or in headers. */
export type OpsTarget = SignedTarget | HeaderSignedTarget | ServiceTarget

/** Ops with a signature in the path or its query. */
export interface SignedTarget {
  readonly kind: 'signed'
  /** Decides only the shape of the results. */
  readonly version: 1 | 2
  readonly user: string
  /** As written there, which is what was signed. */
  readonly timestamp: string
  /** In lower case. */
  readonly signature: string
}

/** What is signed in the path: the user, the time as written, and the signature in lower case. */
type PathSigned = Pick<SignedTarget, 'user' | 'timestamp' | 'signature'>

/** Ops of a service with an address of its own, signed in the path. */
export interface ServiceTarget extends PathSigned {
  readonly kind: 'service'
  readonly version: 2
  readonly service: 'download' | 'upload' | 'merge' | 'compare' | 'copy'
}

/** The file at an address that a download has made: a GET, which signs an empty body. */
export interface FileTarget extends PathSigned {
  readonly kind: 'file'
  readonly of: 'conv' | 'folder' | 'stage' | 'project'
  readonly obj_id: string
  readonly format: 'json' | 'zip'
  /** When the address was made. */
  readonly made_ms: number
  /** 64 lowercase hex digits. */
  readonly token: string
}

/** Ops with a signature in headers. */
export interface HeaderSignedTarget {
  readonly kind: 'header_signed'
  readonly version: 1 | 2
}

/** A task to create without a signature. */
export interface WebhookTarget {
  readonly kind: 'webhook'
  /** The form of the body: JSON, XML, or names and values. */
  readonly form: 'json' | 'nvp' | 'xml'
  readonly conv_id: string
  /** 40 lowercase hex digits, as in every address. */
  readonly hash: string
}

/** A task that waits in a node for a callback. */
export interface CallbackTarget {
  readonly kind: 'callback'
  readonly conv_id: string
  readonly node_id: string
  readonly hash: string
}

/** The answer that a synchronous request waits for. */
export interface SyncAnswerTarget {
  readonly kind: 'sync_answer'
  readonly token: string
}

export interface HealthTarget {
  readonly kind: 'health'
}

/** The path or query of signed ops with a malformed user, timestamp or signature. */
export interface MalformedTarget {
  readonly kind: 'malformed'
  /** A sentence for the caller. */
  readonly mistakes: string
}

/** The path of each kind as a template, without any value of a caller. */
export const route_of: Readonly<Record<BodyTarget['kind'], string>> = {
  signed: '/api/{version}/json/{user}/{timestamp}/{signature}',
  header_signed: '/api/{version}/json',
  webhook: '/api/{version}/{form}/public/{conv_id}/{hash}',
  callback: '/api/{version}/json/callback/{conv_id}/{node_id}/{hash}',
  sync_answer: '/api/sync/{token}',
  service: '/api/2/{service}/{user}/{timestamp}/{signature}',
  file: '/user_downloads/{file}/{user}/{timestamp}/{signature}',
}

export type Route = (url: string) => Target | undefined

interface PathRow {
  /** A regular expression of the whole path. */
  readonly path: string
  /** The path is served without the base too. */
  readonly is_base_optional?: true
  /** Takes the path and the groups of its expression; undefined for a misspelt id. */
  target(groups: readonly string[]): Target | undefined
}

/** The path of an answer address, up to its token. */
export const sync_path = '/api/sync/'

/** The beginnings of address paths that the data of a task may contain. */
export const address_paths = [sync_path, '/api/1/json/callback/', '/api/2/json/callback/'] as const

const id = '([^/?#]+)'
const hash = '([0-9a-f]{40})'
const download_pattern = [
  `(conv|folder|stage|project)_${id}_([0-9]{1,15})_`,
  '([0-9a-f]{64})\\.(json|zip)',
].join('')

/** The id of a path segment; undefined unless it is spelt as in addresses. */
function idOf(segment: string | undefined): string | undefined {
  try {
    const id = decodeURIComponent(segment as string)
    return encodeURIComponent(id) === segment ? id : undefined
  } catch {
    return undefined
  }
}

const signed = `(${user_id_pattern})/(${timestamp_pattern})/(${path_signature_pattern})`

function signedBy([user, timestamp, signature]: readonly string[]): PathSigned {
  return {
    user: user as string,
    timestamp: timestamp as string,
    signature: (signature as string).toLowerCase(),
  }
}

/** The commonest first. */
const paths: readonly PathRow[] = [
  {
    path: `/api/([12])/json/${signed}`,
    // Spelt out, because each request has one: lists and spreads allocate.
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
  {
    path: '/api/([12])/json/([^/?#]*)/?(?=\\?([^#]*))',
    target: ([, version, user = '', query = '']) => querySigned(versionOf(version), user, query),
  },
  {
    path: `/api/[12]/(json|nvp|xml)/public/${id}/${hash}/?`,
    target: ([, form, conv, hash]) => {
      const conv_id = idOf(conv)
      if (conv_id === undefined) return undefined
      return { kind: 'webhook', form: form as WebhookTarget['form'], conv_id, hash: hash as string }
    },
  },
  {
    path: `/api/[12]/json/callback/${id}/${id}/${hash}/?`,
    target: ([, conv, node, hash]) => {
      const [conv_id, node_id] = [idOf(conv), idOf(node)]
      if (conv_id === undefined || node_id === undefined) return undefined
      return { kind: 'callback', conv_id, node_id, hash: hash as string }
    },
  },
  {
    path: `${sync_path}([0-9a-f]{64})/?`,
    target: ([, token]) => ({ kind: 'sync_answer', token: token as string }),
  },
  {
    path: `/api/2/(download|upload|merge|compare|copy)/${signed}`,
    target: ([, name, ...by]) => {
      const service = name as ServiceTarget['service']
      return { kind: 'service', version: 2, service, ...signedBy(by) }
    },
  },
  {
    path: `/user_downloads/${download_pattern}/${signed}`,
    target: ([, of, id, made_ms, token, format, ...by]) => {
      const obj_id = idOf(id)
      if (obj_id === undefined) return undefined
      const file = {
        of: of as FileTarget['of'],
        ...{ obj_id, made_ms: Number(made_ms), token: token as string },
        format: format as FileTarget['format'],
      }
      return { kind: 'file', ...file, ...signedBy(by) }
    },
  },
  {
    // Not with six segments: a wrong process or hash in an address is not reported.
    path: '/api/[12]/json/(?!public/)([^/?]*)/([^/?]*)/([^/?]*)',
    target: ([, user = '', timestamp = '', signature = '']) => ({
      kind: 'malformed',
      mistakes: mistakesOf({ user, timestamp, signature }, 'path'),
    }),
  },
  { path: '/healthz', is_base_optional: true, target: () => ({ kind: 'health' }) },
]

function versionOf(digit: string | undefined): 1 | 2 {
  return digit === '1' ? 1 : 2
}

/**
 * What an `api` logic that signs adds to an address: `conv_signature`, `conv_time` and `conv_id`,
 * which is not signed and gives no right. Undefined where the query has no signature.
 */
function querySigned(version: 1 | 2, user: string, query: string): Target | undefined {
  const names = new URLSearchParams(query)
  if (!names.has('conv_signature')) return undefined
  const [timestamp, signature] = ['conv_time', 'conv_signature'].map((name) => {
    const values = names.getAll(name)
    return values.length === 1 ? values[0] : ''
  })
  const given = { user, timestamp, signature }
  if (!areWellFormed(given, 'query')) {
    return { kind: 'malformed', mistakes: mistakesOf(given, 'query') }
  }
  return { kind: 'signed', version, ...given, signature: given.signature.toLowerCase() }
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
