/**
 * Who is it: from the verified certificate of a call's connection to the caller the engine knows
 * (wire 2). Bindings are asked anew for each message, and so is the end of the certificate, for a
 * call may outlive both; what a certificate says is read once and remembered.
 */
import type { Socket } from 'node:net'
import { loadX509 } from '../../certs/x509.ts'
import { systemClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { Caller } from '../../core/model.ts'
import type { Engine } from '../../engine/api.ts'
import { type Names, namesOf } from './certificate-names.ts'

export interface Identity {
  /** What the certificate says, by its DER and node's fingerprint of it. */
  read(certificate: Certificate): Names
  /** A connection was taken, whose certificate says this; until it is closed it is known. */
  connected(socket: Socket, names: Pick<Names, 'names' | 'ends_ms'>): void
  /** By the address of the peer. Throws `access_denied` where its connection is gone. */
  whoIs(peer: string): Who
  /**
   * Throws `bad_signature` for a certificate that has ended, `access_denied` where its names are
   * refused, are bound to different users or, under `strict`, are not bound at all.
   */
  callerOf(who: Who): Caller
}

/** The other side of a connection. */
export interface Who extends Pick<Names, 'names' | 'ends_ms'> {
  readonly answers: AnswerAccount
}

export interface Certificate {
  readonly raw: Buffer
  readonly fingerprint256: string
}

const remembered_max = 1_024

export async function newIdentity(engine: Engine, strict: boolean): Promise<Identity> {
  const x509 = await loadX509()
  const remembered = new Map<string, Names>()
  /** HTTP/2 switches renegotiation off: a connection has one certificate as long as it lasts. */
  const by_peer = new Map<string, Who>()

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
    connected(socket, { names, ends_ms }) {
      // As grpc-js names it.
      const peer = `${socket.remoteAddress}:${socket.remotePort}`
      const who = { names, ends_ms, answers: engine.answerAccount() }
      by_peer.set(peer, who)
      socket.once('close', () => {
        if (by_peer.get(peer) === who) by_peer.delete(peer)
      })
    },
    whoIs(peer) {
      const who = by_peer.get(peer)
      if (who === undefined) throw fault('access_denied', 'no certificate')
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

/** Of a caller without a certificate, where none is asked for. */
export const nameless = { names: [], ends_ms: Number.POSITIVE_INFINITY }
