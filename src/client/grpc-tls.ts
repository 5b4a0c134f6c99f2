/**
 * Mutual TLS with the server at one address, verified by its host. grpc-js sends the host as SNI
 * too, which may not be an IP address (RFC 6066); instead of one, `localhost` is sent, and the
 * certificate is still checked against the address.
 */
import { isIP } from 'node:net'
import { checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { type ChannelCredentials, type ChannelOptions, credentials } from '@grpc/grpc-js'
import type { GrpcTarget } from './api.ts'
import type { Cancellation } from './cancellation.ts'
import { clientFault } from './faults.ts'
import { readPem } from './transport.ts'

export type OneGrpcTarget = GrpcTarget & { readonly address: string }

export interface GrpcTls {
  readonly credentials: ChannelCredentials
  readonly options: ChannelOptions
  /** Checks that a server answers, on a connection that is closed afterwards. */
  handshake(cancellation: Cancellation): Promise<void>
}

export async function tlsOf({ address, ...files }: OneGrpcTarget): Promise<GrpcTls> {
  const [, six, name, port = ''] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/]+)):([0-9]{1,5})$/.exec(address) ?? []
  const host = six ?? name
  if (host === undefined || Number(port) > 65_535) {
    throw new TypeError(`address ${address} is no HOST:PORT`)
  }
  const [ca, key, cert] = await Promise.all([
    readPem('ca', files.ca),
    readPem('key', files.key),
    readPem('cert', files.cert),
  ])
  const is_name = isIP(host) === 0
  const servername = is_name ? host : 'localhost'
  const check = (_sent: string, found: PeerCertificate) => checkServerIdentity(host, found)
  const checks = is_name ? {} : { checkServerIdentity: check }
  return {
    credentials: credentials.createSsl(ca, key, cert, checks),
    options: is_name ? {} : { 'grpc.ssl_target_name_override': servername },
    handshake: (cancellation) =>
      new Promise((resolve, reject) => {
        const to = { host, port: Number(port), servername, ALPNProtocols: ['h2'] }
        const socket = connect({ ...to, ca, key, cert, ...checks })
        const onFailed = (cause: Error): void => {
          const more = { outcome: 'not_applied', cause } as const
          reject(cancellation.reason() ?? clientFault('unreachable', cause.message, more))
          socket.destroy()
        }
        const onCancel = (): void => onFailed(new Error('cancelled'))
        const removeListener = cancellation.onCancel(onCancel)
        socket.once('error', onFailed)
        socket.once('close', removeListener)
        socket.once('secureConnect', () => {
          resolve()
          socket.destroy()
        })
      }),
  }
}
