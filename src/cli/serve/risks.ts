/**
 * The risks of a configuration of `serve`: each row is judged once, when it listens, and emits an
 * event `risky` with a sentence that says what helps. Nothing is refused. The engine itself emits
 * `key_open` for a key file that others may read.
 */
import { statfs } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'
import { health_checks } from '../../core/health-checks.ts'
import { isLoopback } from '../../core/host.ts'
import type { GivenDatabases } from '../../engine/api/database-api.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import { nonPublicReason } from '../../executors/call-address.ts'
import { fileSystemRisk } from '../doctor/machine-checks.ts'
import { type Io, print } from '../io.ts'
import { type Given, list, text } from '../verb.ts'
import type { WantedServers } from './servers.ts'

export interface Configured {
  readonly wanted: WantedServers
  readonly window_s: number
  readonly allow_hosts: readonly string[]
  readonly databases: GivenDatabases
  readonly has_webhook: boolean
  readonly file_system: number | undefined
  readonly uid: number
  readonly now_ms: number
  readonly certificates_until_ms: Readonly<Record<string, number>>
}

interface Risk {
  readonly what: string
  judge(configured: Configured): string | undefined
}

const risks: readonly Risk[] = [
  {
    what: 'plain_http',
    judge({ wanted: { http, http_sync } }) {
      const open = [http, http_sync].find((one) => one !== undefined && isBeyondLoopback(one))
      if (open === undefined) return undefined
      const says = `HTTP on ${open.host} has no TLS: no secret is sent, but bodies can be read`
      return `${says} on the way; put a proxy with TLS in front`
    },
  },
  {
    what: 'window_off',
    judge: ({ window_s }) =>
      window_s > 0
        ? undefined
        : 'with --window 0 a recorded request can be sent again at any time; leave it at 300',
  },
  {
    what: 'grpc_not_strict',
    judge: ({ wanted: { grpc } }) =>
      grpc === undefined || grpc.strict
        ? undefined
        : 'a certificate without a binding may use every process; bind them, add --grpc-strict',
  },
  {
    what: 'reflection',
    judge: ({ wanted: { grpc } }) =>
      grpc?.reflection === true
        ? 'with --reflection gRPC callers learn what the service offers; leave it out if you can'
        : undefined,
  },
  {
    what: 'private_calls',
    judge({ allow_hosts }) {
      const open = allow_hosts.filter(isPrivate)
      if (open.length === 0) return undefined
      const says = `processes may call ${open.join(', ')}, no public address (--allow-host)`
      return `${says}; allow no more than is needed`
    },
  },
  {
    what: 'plain_database',
    judge({ databases }) {
      const plain = Object.entries(databases)
        .filter(([, { host, ssl }]) => ssl === false && !isLoopback(host) && !host.startsWith('/'))
        .map(([name]) => name)
      if (plain.length === 0) return undefined
      const says = `queries of ${plain.join(', ')} and their rows can be read on the way`
      return `${says}; leave out "ssl": false in the file of --databases`
    },
  },
  {
    what: 'no_public_url',
    judge: ({ has_webhook, wanted: { http } }) =>
      has_webhook && http !== undefined && http.public_url === undefined
        ? 'the addresses of webhooks are those of this listener; name the outer by --public-url'
        : undefined,
  },
  {
    what: 'file_system',
    judge({ file_system }) {
      const risk = file_system === undefined ? undefined : fileSystemRisk(file_system)
      return risk && `${risk.says}; ${risk.help}`
    },
  },
  {
    what: 'certificate_ends',
    judge({ now_ms, certificates_until_ms }) {
      const [until_ms] = Object.values(certificates_until_ms).sort((one, other) => one - other)
      if (until_ms === undefined || until_ms - now_ms > health_checks.certificate.left_ms_min)
        return undefined
      const says = `server.crt ${until_ms < now_ms ? 'has expired on' : 'expires on'}`
      const day = new Date(until_ms).toISOString().slice(0, 10)
      return `${says} ${day}; ${health_checks.certificate.helps}`
    },
  },
  {
    what: 'console_plain_http',
    judge({ wanted: { operator } }) {
      if (operator?.console_plain_http !== true || operator.tls !== undefined) return undefined
      if (!isBeyondLoopback(operator)) return undefined
      const says = `the operator's page on ${operator.host} has no TLS: sessions can be taken over`
      return `${says}; put a proxy with TLS in front`
    },
  },
  {
    what: 'root',
    judge: ({ uid }) =>
      uid === 0
        ? 'it runs as root; give it a user of its own, who owns the data file and its folder'
        : undefined,
  },
]

export function risksOf(
  configured: Configured,
): { readonly what: string; readonly says: string }[] {
  return risks.flatMap(({ what, judge }) => {
    const says = judge(configured)
    return says === undefined ? [] : [{ what, says }]
  })
}

/** Emits each risk of a server that listens; without a log, warns of that instead. */
export async function emitRisks(
  given: Given,
  io: Io,
  engine: Engine,
  wanted: WantedServers,
  databases: GivenDatabases = {},
): Promise<void> {
  if (text(given, 'log-level') === 'silent') {
    await print(
      io.stderr,
      'conveyor: --log-level silent: failures are not logged; use warn or info\n',
    )
    return
  }
  const { emit, diagnose } = servedEngine(engine)
  const file_system = await statfs(dirname(engine.path)).catch(() => undefined)
  const configured = {
    ...{
      wanted,
      window_s: engine.limits.window_ms / 1_000,
      allow_hosts: list(given, 'allow-host'),
      databases,
    },
    has_webhook: (await diagnose()).has_webhook,
    ...{ file_system: file_system?.type, uid: userInfo().uid, now_ms: io.clock.now_ms() },
    certificates_until_ms: engine.statistics().certificates_until_ms,
  }
  for (const { what, says } of risksOf(configured)) emit('risky', { what, says })
}

function isBeyondLoopback({ host }: { readonly host: string }): boolean {
  return host !== 'fd' && !isLoopback(host)
}

/** Of `host:port`: an address that is not public, or a name of this machine or a local net. */
function isPrivate(entry: string): boolean {
  const host = entry.replace(/:[0-9]*$/, '').replace(/^\[|\]$/g, '')
  if (isLoopback(host) || !host.includes('.')) return true
  return /^[0-9.]+$/.test(host) && nonPublicReason(host) !== undefined
}
