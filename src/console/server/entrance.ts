/**
 * Finds the session of a request by its cookie, begins one and ends it. Scripts, other sites and
 * other paths cannot use the cookie, and a request that may change something also needs the token
 * of its session, which only the page has.
 */
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { version } from '../../core/version.ts'
import { user_id_pattern } from '../../server/http/credentials.ts'
import { httpFault } from '../../server/http/fault-response.ts'
import { type Right, rights, type Session, token_header } from './messages.ts'
import { isSame, newSessions, type OpenSession, session_ms_max, type Who } from './sessions.ts'
import { newTries, signInByLink, signInUser } from './sign-in.ts'
import type { Authorized, ConsoleExchange, ConsoleOptions, ConsoleSource } from './source.ts'

export type Entrance = ReturnType<typeof newEntrance>

export function newEntrance(source: ConsoleSource, base: string, options: ConsoleOptions) {
  const { emit, clock } = source
  const { authorize, right_max = 'administer', servers = {} } = options
  const { command_line = 'npx conveyor VERB' } = options
  const sessions = newSessions(source)
  const tries = newTries(clock)
  /** What the embedder has said last of who is in a session. */
  const authorized = new WeakMap<OpenSession, { now: Authorized | undefined }>()

  const lesser = (right: Right): Right =>
    rights[Math.min(rights.indexOf(right), rights.indexOf(right_max))] as Right

  /** What a session may now; undefined for one that is over. */
  function rightOf(session: OpenSession): Right | undefined {
    const right = sessions.goesOn(session) ? session.right() : undefined
    return right && lesser(right)
  }

  function shown(session: OpenSession): Session {
    const { name, token } = session
    return { name, right: rightOf(session) as Right, token, version, servers, command_line }
  }

  function begin({ request, response }: ConsoleExchange, who: Who, by: string): OpenSession {
    const before = sessionOf(request, false)
    if (before !== undefined) end(before)
    const { id, session } = sessions.begin(who)
    response.setHeader('Set-Cookie', cookieOf(request, id, session_ms_max / 1_000))
    const address = request.socket.remoteAddress
    emit('console_session', {
      what: 'begun',
      by: who.name,
      right: rightOf(session),
      of: by,
      address,
    })
    return session
  }

  function end(session: OpenSession): void {
    sessions.end(session)
    emit('console_session', { what: 'ended', by: session.name })
  }

  /** Of the first cookie that has one: a page of another port may have set more of that name. */
  function sessionOf(request: IncomingMessage, is_use: boolean): OpenSession | undefined {
    for (const id of idsIn(request)) {
      const found = sessions.find(id, is_use)
      if (found !== undefined) return found
    }
    return undefined
  }

  function cookieOf(request: IncomingMessage, id: string, age_s: number): string {
    const { origin = '' } = request.headers
    const is_secure = (request.socket as TLSSocket).encrypted || origin.startsWith('https://')
    return [
      `${cookieName(request)}=${id}; Path=${base}; Max-Age=${age_s}; HttpOnly; SameSite=Strict`,
      ...(is_secure ? ['Secure'] : []),
    ].join('; ')
  }

  /** The session of the cookie, or the one that the embedder's word begins. */
  async function findOrBegin(
    exchange: ConsoleExchange,
    { is_use, begins }: { readonly is_use: boolean; readonly begins: boolean },
  ): Promise<OpenSession> {
    const { request } = exchange
    const found = sessionOf(request, is_use)
    if (authorize === undefined) {
      if (found !== undefined) return found
      throw httpFault('bad_signature', 'no session, or one that has ended: sign in')
    }
    const now = checked(await authorize(request))
    const of = found && authorized.get(found)
    if (found !== undefined && of !== undefined && now?.name === found.name) {
      of.now = now
      return found
    }
    if (found !== undefined) end(found)
    if (now === undefined) throw httpFault('bad_signature', 'no one is signed in')
    if (!begins)
      throw httpFault('bad_signature', 'no session, or one that has ended: load the page')
    const box: { now: Authorized | undefined } = { now }
    const session = begin(exchange, { name: now.name, right: () => box.now?.right }, 'authorize')
    authorized.set(session, box)
    return session
  }

  function whoSignsIn(input: unknown): readonly [Who, string] {
    const { link, user, secret } = (input ?? {}) as Record<string, unknown>
    if (authorize !== undefined) throw fault('not_possible', 'the page asks its server who you are')
    if (typeof link === 'string') return [signInByLink(sessions, link), 'link']
    if (typeof user === 'string' && typeof secret === 'string') {
      return [signInUser(source.engine, user, secret), 'user']
    }
    throw httpFault('bad_request', 'link, or user and secret: text')
  }

  return {
    /** The token of a one-time link. */
    link(right: Right): string {
      if (authorize === undefined) return sessions.link(lesser(right))
      throw fault('not_possible', 'this page has no links: its server says who may use it')
    },
    /** Of `GET BASE/session`. Rejects with `bad_signature` where there is none. */
    async session(exchange: ConsoleExchange): Promise<Session> {
      // A first visit has no session, which needs no log line.
      exchange.is_logged = true
      source.engine()
      return shown(await findOrBegin(exchange, { is_use: true, begins: true }))
    },
    /** Rejects with `bad_signature` where there is none. `is_use`: this keeps it alive. */
    find: (exchange: ConsoleExchange, is_use: boolean) =>
      findOrBegin(exchange, { is_use, begins: false }),
    /** Throws where the request does not come from the page of this session. */
    checkToken({ request }: ConsoleExchange, { token }: OpenSession): void {
      const given = request.headers[token_header]
      if (typeof given === 'string' && isSame(given, token)) return
      const text = `this was not sent by the page of the session: ${token_header} is another`
      throw httpFault('bad_request', text, { status: 403 })
    },
    signIn(exchange: ConsoleExchange, input: unknown): Session {
      const address = exchange.request.socket.remoteAddress ?? ''
      const { user } = (input ?? {}) as Record<string, unknown>
      if (user !== undefined) tries.check(address)
      try {
        const [who, by] = whoSignsIn(input)
        return shown(begin(exchange, who, by))
      } catch (error) {
        if (isFault(error) && isGuess(error)) {
          tries.countRefused(address)
          // A secret that was typed in the wrong field is no id, and is not logged.
          exchange.user = typeof user === 'string' && user_id.test(user) ? user : undefined
        }
        throw error
      }
    },
    signOut({ request, response }: ConsoleExchange, session: OpenSession): void {
      end(session)
      response.setHeader('Set-Cookie', cookieOf(request, '', 0))
    },
    rightOf,
    goesOn: sessions.goesOn,
    close: sessions.close,
  }
}

const user_id = new RegExp(`^${user_id_pattern}$`)

const isGuess = ({ code }: Fault): boolean => code === 'bad_signature' || code === 'access_denied'

/** The log says who did what, so a missing name is a mistake of the embedder. */
function checked(given: Authorized | null | undefined): Authorized | undefined {
  if (given === undefined || given === null) return undefined
  const { name, right } = given
  if (typeof name === 'string' && name !== '' && rights.includes(right)) return given
  throw new TypeError('authorize: {name, right}, with a text and a right of the page')
}

/** Browsers send a cookie to all ports of a host, on each of which another server may be. */
function cookieName({ socket }: IncomingMessage): string {
  return `conveyor_console_${socket.localPort ?? 0}`
}

function idsIn(request: IncomingMessage): string[] {
  const head = `${cookieName(request)}=`
  const cookies = (request.headers.cookie ?? '').split(/; */)
  return cookies.filter((one) => one.startsWith(head)).map((one) => one.slice(head.length))
}
