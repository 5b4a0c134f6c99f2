/**
 * The transport of a client, to one address or over several. Lists are checked before anything is
 * opened; gRPC is loaded only for a target with an `address`.
 */
import { systemChance, systemClock } from '../core/clock.ts'
import type { ConnectOptions } from './api.ts'
import { failover } from './failover.ts'
import { serverBase } from './http-messages.ts'
import { httpTransport } from './http-transport.ts'
import { probe_ms_max } from './owner-search.ts'
import type { RetryPolicy } from './retry.ts'
import type { Transport } from './transport.ts'

const retries_max_default = 4
const several_wait_ms_max = 500

/** Rejects with a TypeError for invalid options. */
export async function openTransport(
  options: ConnectOptions,
  timeout_ms: number,
): Promise<{ readonly transport: Transport; readonly policy: RetryPolicy }> {
  const { clock = systemClock, chance = systemChance, retries_max } = options
  const transports = await openAll(options)
  const [only] = transports
  if (only !== undefined && transports.length === 1) {
    const policy = { clock, chance, retries_max: retries_max ?? retries_max_default }
    return { transport: only, policy }
  }
  const transport = failover(transports, { clock, chance }, timeout_ms)
  const { ready, pause } = transport
  const policy = {
    ...{ clock, chance, retries_max: retries_max ?? Number.POSITIVE_INFINITY },
    ...{ patience_ms: timeout_ms, wait_ms_max: several_wait_ms_max, has_others: true },
    ...{ ready, pause },
  }
  return { transport, policy }
}

async function openAll(options: ConnectOptions): Promise<Transport[]> {
  const { clock = systemClock, chance = systemChance } = options
  const several = (list: readonly unknown[]) =>
    list.length === 1 ? undefined : { connect_ms_max: probe_ms_max }
  if ('url' in options && 'address' in options) {
    throw new TypeError('url is for HTTP and address for gRPC: give one of the two')
  }
  if ('url' in options) {
    const urls = listed('url', options.url, (url) => serverBase(url) ?? url)
    return Promise.all(
      urls.map((url) => httpTransport({ ...options, url }, { clock, chance }, several(urls))),
    )
  }
  const addresses = listed('address', options.address, (address) => address.toLowerCase())
  const { grpcTransport } = await import('./grpc-transport.ts')
  return Promise.all(
    addresses.map((address) =>
      grpcTransport({ ...options, address }, { clock, chance }, several(addresses)),
    ),
  )
}

/** Throws a TypeError for a value that is no text, an empty list, and a duplicate. */
function listed(name: string, given: unknown, plain: (one: string) => string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? [...given] : [given]
  if (list.length === 0) throw new TypeError(`${name} is an empty list: give at least one`)
  const seen = new Set<string>()
  for (const one of list) {
    if (typeof one !== 'string') throw new TypeError(`${name} is no text, nor a list of texts`)
    if (seen.has(plain(one))) throw new TypeError(`${name} has ${one} twice`)
    seen.add(plain(one))
  }
  return list as readonly string[]
}
