/**
 * Who is it: from the verified certificate of a call's connection to the caller the engine knows
 * (wire 2). Bindings are asked anew for each message, and so is the end of the certificate, for a
 * call may outlive both; what a certificate says is read once and remembered.
 */
import type { Http2Session } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { loadX509 } from '../../certs/x509.ts'
import type { Engine } from '../../engine/api.ts'
import { systemClock } from '../../words/clock.ts'
import { fault } from '../../words/faults.ts'
import type { Caller } from '../../words/model.ts'
import { type Names, namesOf } from './names.ts'

export interface Identity {
  /** What the certificate says, by its DER and node's fingerprint of it. */
  read(certificate: Certificate): Names
  /** Throws `access_denied` where there is no certificate. */
  whoIs(connection: Http2Session): Who
  /**
   * Throws `bad_signature` for a certificate that has ended, `access_denied` where its names are
   * refused, are bound to different users or, under `strict`, are not bound at all.
   */
  callerOf(who: Who): Caller
}

/** The other side of a call, for as long as it lasts. */
export type Who = Pick<Names, 'names' | 'ends_ms'>

export interface Certificate {
  readonly raw: Buffer
  readonly fingerprint256: string
}

const remembered_max = 1_024

/** `plain` lets a caller without a certificate through, as one without a name. */
export async function newIdentity(
  engine: Engine,
  { strict, plain }: { readonly strict: boolean; readonly plain: boolean },
): Promise<Identity> {
  const x509 = await loadX509()
  const remembered = new Map<string, Names>()
  /** HTTP/2 switches renegotiation off: a connection has one certificate as long as it lasts. */
  const by_connection = new WeakMap<Http2Session, Who>()

  const read = (certificate: Certificate): Names => {
    const known = remembered.get(certificate.fingerprint256)
    if (known !== undefined) return known
    const names = namesOf(x509, certificate.raw)
    // The oldest goes: what is still in use comes back with its next call.
    if (remembered.size >= remembered_max) {
      remembered.delete(remembered.keys().next().value as string)
    }
    remembered.set(certificate.fingerprint256, names)
    return names
  }

  return {
    read,
    whoIs(connection) {
      if (plain) return nameless
      const known = by_connection.get(connection)
      if (known !== undefined) return known
      const certificate = (connection.socket as TLSSocket).getPeerCertificate()
      // A socket that is gone has none.
      if (certificate?.raw === undefined) throw fault('access_denied', 'no certificate')
      const who = read(certificate)
      by_connection.set(connection, who)
      return who
    },
    callerOf({ names, ends_ms }) {
      if (systemClock.now_ms() >= ends_ms) {
        throw fault('bad_signature', 'the certificate has expired')
      }
      const caller = engine.users.callerOf(names, { strict })
      if (caller === undefined) {
        throw fault('access_denied', 'this certificate is not allowed to call')
      }
      return caller
    },
  }
}

const nameless: Who = { names: [], ends_ms: Number.POSITIVE_INFINITY }
