/**
 * Authenticates a call by the verified client certificate of its connection, as the caller to which
 * the names in it are bound (wire 2). Bindings and expiry are checked again for each message,
 * because a call may be open for long.
 */
import { hash } from 'node:crypto'
import type { Socket } from 'node:net'
import { systemClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { Caller, OpType } from '../../core/model.ts'
import type { AnswerAccount, AnswerReservation } from '../../engine/requests/unread-answers.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import type { CertificateNames } from '../tls/client-certificates.ts'
import type { ConnectionReceiver, ReceiveBounds } from './receive-bounds.ts'

export interface Authenticator {
  /** Registers an accepted connection with its certificate's names until the socket closes. */
  connected(socket: Socket, names: Pick<CertificateNames, 'names' | 'ends_ms'>): void
  /** The peer of a connection. Throws `access_denied` once it has closed. */
  peerAt(connection: PeerAddress): Peer
  /**
   * Throws `bad_signature` for an expired certificate, and `access_denied` where its names are
   * refused, are bound to different users or, under `strict`, are not bound at all.
   */
  requireCaller(peer: Peer): Caller
}

/** The caller of a peer. Throws `shutting_down`, or what `Authenticator.requireCaller` throws. */
export function authenticate(
  server: { readonly authenticator: Authenticator; readonly draining: boolean },
  peer: Peer,
): Caller {
  if (server.draining) throw fault('shutting_down')
  return server.authenticator.requireCaller(peer)
}

/** The client side of a connection. */
export interface Peer extends Pick<CertificateNames, 'names' | 'ends_ms'> {
  readonly socket: Socket
  /** The caller, where its certificate acts as no user. */
  readonly own_caller: Caller
  readonly answers: AnswerAccount
  readonly receiver: ConnectionReceiver
}

/** Reserves room for the answer, charged to the user or certificate. Throws `overloaded`. */
export function reserveAnswer(
  { answers }: Peer,
  { user, payer = '' }: Caller,
  ops: readonly { readonly type?: OpType }[],
): AnswerReservation {
  return answers.reserve(ops, user ?? payer)
}

/**
 * A certificate that acts as no user is a caller of its own, identified by its names, which a
 * renewal keeps, or without any by its fingerprint.
 */
function ownCaller(names: readonly string[]): Caller {
  if (names.length === 0) return {}
  const known_by = names.length === 1 ? names : names.slice(0, -1).sort()
  const digest = hash('sha256', JSON.stringify(known_by), 'base64url')
  return { payer: `certificate ${digest.slice(0, digest_chars)}` }
}

/** Of 6 bits each, enough to exclude collisions. */
const digest_chars = 22

/** The names of a caller on a server without TLS. */
export const anonymous = { names: [], ends_ms: Number.POSITIVE_INFINITY }

type PeerAddress = Partial<Pick<Socket, 'remoteAddress' | 'remotePort'>>

const names_chars_max = 512

export function newAuthenticator(
  engine: ServedEngine,
  strict: boolean,
  receive_bounds: ReceiveBounds,
): Authenticator {
  /** HTTP/2 forbids renegotiation, so a connection keeps its certificate. */
  const peers = new Map<string, Peer>()

  return {
    connected(socket, { names, ends_ms }) {
      const address = addressOf(socket)
      const answers = engine.answerAccount()
      const peer = {
        ...{ names, ends_ms, socket, answers, own_caller: ownCaller(names) },
        receiver: receive_bounds.connected(socket),
      }
      peers.set(address, peer)
      socket.once('close', () => {
        if (peers.get(address) === peer) peers.delete(address)
      })
    },
    peerAt(connection) {
      const peer = peers.get(addressOf(connection))
      if (peer === undefined) throw fault('access_denied', 'no certificate')
      return peer
    },
    requireCaller({ names, ends_ms, own_caller }) {
      if (systemClock.now_ms() >= ends_ms) {
        throw fault('bad_signature', 'the certificate has expired')
      }
      const caller = engine.callerOf(names, strict)
      if (caller === undefined) {
        const text = names.join(', ').slice(0, names_chars_max)
        throw fault(
          'access_denied',
          `this certificate is not allowed to call, by its names ${text}`,
        )
      }
      return caller.user === undefined ? own_caller : caller
    },
  }
}

function addressOf({ remoteAddress, remotePort }: PeerAddress): string {
  return `${remoteAddress} ${remotePort}`
}
