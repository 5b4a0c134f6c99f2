/**
 * Mutual TLS of a gRPC client, and the name by which it knows the server: the host of the address,
 * as the server's certificate must have it.
 *
 * grpc-js also sends that name along (SNI), where an IP address may not stand. So where the address
 * has one, `localhost` is sent, and the certificate is held against the address all the same.
 */

import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import type { ChannelCredentials, ChannelOptions } from '@grpc/grpc-js'
import { credentials } from '@grpc/grpc-js'
import type { GrpcTarget } from './api.ts'
import { readPem } from './pem.ts'

export interface ClientTls {
  readonly credentials: ChannelCredentials
  readonly options: ChannelOptions
}

/** Rejects with a TypeError for an address without a port, and where a file cannot be read. */
export async function clientTls({ address, ca, cert, key }: GrpcTarget): Promise<ClientTls> {
  const [, six, name] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/]+)):[0-9]{1,5}$/.exec(address) ?? []
  const host = six ?? name
  if (host === undefined) throw new TypeError('address is no HOST:PORT')
  const is_ip = isIP(host) !== 0
  return {
    credentials: credentials.createSsl(
      await readPem('ca', ca),
      await readPem('key', key),
      await readPem('cert', cert),
      is_ip ? { checkServerIdentity: (_sent, found) => checkServerIdentity(host, found) } : {},
    ),
    options: is_ip ? { 'grpc.ssl_target_name_override': 'localhost' } : {},
  }
}
