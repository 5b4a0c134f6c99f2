/**
 * Signs in by a one-time link, or by the id and the secret of a user with a right for the page. An
 * unknown user gets the answer of a wrong secret, in the same time.
 *
 * Refusals slow an address down: after `tries_max` of them its users are refused unread until the
 * next try is due. Links cannot be guessed, so they are never limited, and the operator of the
 * server can always sign in.
 */
import type { Clock } from '../../core/clock.ts'
import { fault, isFault } from '../../core/faults.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { httpFault } from '../../server/http/fault-response.ts'
import { isSame, type Sessions, type Who } from './sessions.ts'

export const tries_max = 10
export const try_again_ms = 6_000
const addresses_max = 1_000

/** The end of a user's right, or of the secret that he has signed in by, is that of his session. */
export function signInUser(engineNow: () => ServedEngine, id: string, secret: string): Who {
  const { users } = engineNow()
  if (!hasSecret(users, id, secret)) {
    throw httpFault('bad_signature', 'there is no such user, or the secret is another')
  }
  if (users.consoleRight(id) === undefined) {
    const help = `\`conveyor user console ${id} look\` gives one`
    throw fault('access_denied', `user ${id} has no right for this page: ${help}`)
  }
  return {
    name: id,
    right() {
      const { users } = engineNow()
      return keepsSecret(users, id, secret) ? users.consoleRight(id) : undefined
    },
  }
}

export function signInByLink(sessions: Sessions, token: string): Who {
  const right = sessions.takeLink(token)
  if (right !== undefined) return { name: 'link', right: () => right }
  const text = 'this link was used, or is too old: `conveyor console link` makes another'
  throw httpFault('bad_signature', text)
}

type Users = ServedEngine['users']

function hasSecret(users: Users, id: string, secret: string): boolean {
  try {
    return users.secrets(id).filter((one) => isSame(one, secret)).length > 0
  } catch (error) {
    if (!isFault(error)) throw error
    throw fault(error.code, error.outside ?? error.message)
  }
}

/** A key that is away for a while ends no session. */
function keepsSecret(users: Users, id: string, secret: string): boolean {
  try {
    return hasSecret(users, id, secret)
  } catch (error) {
    if (isFault(error)) return true
    throw error
  }
}

export function newTries(clock: Clock) {
  /** When the last refusal is forgotten, by address; the one longest unchanged first. */
  const until = new Map<string, number>()
  const left_ms_max = tries_max * try_again_ms
  const left_ms = (address: string): number => {
    const left_ms = Math.max(0, (until.get(address) ?? 0) - clock.now_ms())
    // The clock was set back.
    return left_ms > left_ms_max ? 0 : left_ms
  }
  return {
    /** Throws `rate_limited` where this address has to wait. */
    check(address: string): void {
      const wait_ms = left_ms(address) + try_again_ms - left_ms_max
      if (wait_ms <= 0) return
      const retry_after_s = Math.ceil(wait_ms / 1_000)
      const text = `too many were refused: try again in ${retry_after_s} s, or sign in by a link`
      throw fault('rate_limited', text, { retry_after_s })
    },
    countRefused(address: string): void {
      const next_ms = Math.min(left_ms(address) + try_again_ms, left_ms_max)
      until.delete(address)
      until.set(address, clock.now_ms() + next_ms)
      const [oldest] = until.size > addresses_max ? until.keys() : []
      if (oldest !== undefined) until.delete(oldest)
    },
  }
}
