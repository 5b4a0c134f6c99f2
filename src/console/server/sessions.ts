/**
 * Who is signed in to the operator's page, and the one-time links that sign in. All of it is in
 * memory; of the id in a cookie and of the token in a link only the digest is kept. A session that
 * has ended is never found again.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Chance, Clock } from '../../core/clock.ts'
import type { Right } from './messages.ts'

export const sessions_max = 100
export const session_ms_max = 12 * 3_600_000
export const idle_ms_max = 3_600_000
export const links_max = 100
export const link_ms_max = 600_000

const secret_bytes = 32

export interface Who {
  /** In the log. */
  readonly name: string
  /** What he may now; undefined once he may nothing any more. */
  right(): Right | undefined
}

export interface OpenSession extends Who {
  /** Every call that may change something sends it. */
  readonly token: string
  readonly signal: AbortSignal
}

export interface Sessions {
  /** The token of a link that signs in once, within `link_ms_max`. */
  link(right: Right): string
  /** What the link gives, which it gives once. */
  takeLink(token: string): Right | undefined
  /**
   * The id is for the cookie. Beyond `sessions_max`, of the name with the most sessions the one
   * unused for longest ends: repeated sign-ins cannot end the sessions of other names.
   */
  begin(who: Who): { readonly id: string; readonly session: OpenSession }
  /** The session of a cookie. `is_use`: it is kept for `idle_ms_max` from now. */
  find(id: string, is_use: boolean): OpenSession | undefined
  /** Whether it goes on; one whose time is over ends. */
  goesOn(session: OpenSession): boolean
  end(session: OpenSession): void
  close(): void
}

interface Kept extends OpenSession {
  readonly digest: string
  readonly ends_ms: number
  readonly abort: AbortController
  used_ms: number
}

export function newSessions({ clock, chance }: { clock: Clock; chance: Chance }): Sessions {
  /** By digest, the one unused for longest first. */
  const sessions = new Map<string, Kept>()
  /** By digest, the oldest first. */
  const links = new Map<string, { readonly right: Right; readonly until_ms: number }>()
  const newSecret = (): string => chance.bytes(secret_bytes).toString('base64url')

  function end({ digest, abort }: Kept): void {
    sessions.delete(digest)
    abort.abort()
  }

  function endOne(): void {
    const counts = new Map<string, number>()
    for (const { name } of sessions.values()) counts.set(name, (counts.get(name) ?? 0) + 1)
    const most = Math.max(...counts.values())
    const ends = [...sessions.values()].find(({ name }) => counts.get(name) === most)
    if (ends !== undefined) end(ends)
  }

  function goesOn(one: Kept): boolean {
    const now_ms = clock.now_ms()
    const is_over = now_ms >= one.ends_ms || now_ms >= one.used_ms + idle_ms_max
    if (!one.signal.aborted && (is_over || one.right() === undefined)) end(one)
    return !one.signal.aborted
  }

  return {
    link(right) {
      const token = newSecret()
      links.set(digestOf(token), { right, until_ms: clock.now_ms() + link_ms_max })
      const [oldest = ''] = links.size > links_max ? links.keys() : []
      links.delete(oldest)
      return token
    },
    takeLink(token) {
      const digest = digestOf(token)
      const link = links.get(digest)
      links.delete(digest)
      return link !== undefined && clock.now_ms() < link.until_ms ? link.right : undefined
    },
    begin({ name, right }) {
      const id = newSecret()
      const abort = new AbortController()
      const now_ms = clock.now_ms()
      const session: Kept = {
        ...{ name, right, token: newSecret(), signal: abort.signal, abort },
        ...{ digest: digestOf(id), ends_ms: now_ms + session_ms_max, used_ms: now_ms },
      }
      sessions.set(session.digest, session)
      if (sessions.size > sessions_max) endOne()
      return { id, session }
    },
    find(id, is_use) {
      const session = sessions.get(digestOf(id))
      if (session === undefined || !goesOn(session)) return undefined
      if (is_use) {
        session.used_ms = clock.now_ms()
        sessions.delete(session.digest)
        sessions.set(session.digest, session)
      }
      return session
    },
    goesOn: (session) => goesOn(session as Kept),
    end: (session) => end(session as Kept),
    close() {
      for (const session of [...sessions.values()]) end(session)
      links.clear()
    },
  }
}

/** Whether two secrets are the same, in a time that says nothing of how they differ. */
export function isSame(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(digestOf(one)), Buffer.from(digestOf(other)))
}

const digestOf = (secret: string): string => hash('sha256', secret)
