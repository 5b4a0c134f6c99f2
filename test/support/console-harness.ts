/**
 * The operator's page of an engine in memory, in a server of node:http and on a clock that tests
 * move, with a client that is a browser as far as the server can see.
 */
import './end-soon.ts'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Session } from '../../src/console/server/messages.ts'
import {
  type Console,
  type CreateConsoleOptions,
  createConsole,
  type Right,
} from '../../src/console.ts'
import type { LimitName } from '../../src/core/limits.ts'
import { type ServedEngine, servedEngine } from '../../src/engine/served-engine.ts'
import { openEngine } from '../../src/open.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'
import { process_definition } from './http-server.ts'
import { top } from './package-folder.ts'

export interface Asking {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON unless it is text. */
  readonly body?: unknown
  readonly as?: SignedIn
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** A session as a browser has it. */
export interface SignedIn {
  readonly cookie: string
  readonly token: string
  readonly session: Session
}

export type Line = Readonly<Record<string, unknown>>

export interface ConsoleHarness extends AsyncDisposable {
  readonly engine: ServedEngine
  readonly clock: FakeClock
  readonly console: Console
  readonly server: Server
  readonly port: number
  /** The events that were told, without those of the engine's own. */
  readonly told: Line[]
  ask(path: string, how?: Asking): Promise<Answer>
  /** The code of the refusal, or `ok`. */
  codeOf(path: string, how?: Asking): Promise<string>
  /** `POST BASE/api/NAME`. */
  call(name: string, body: unknown, as: SignedIn): Promise<Answer>
  signIn(input: unknown): Promise<SignedIn>
  /** By a link. */
  as(right: Right): Promise<SignedIn>
  /** The events of a live view; reading ends it. */
  live(query: string, as: SignedIn): Promise<Live>
  close(): Promise<void>
}

export interface Live {
  readonly response: IncomingMessage
  /** The next `frame` or `beat`; undefined at the end. */
  next(): Promise<{ readonly event: string; readonly data: unknown } | undefined>
}

export interface HarnessOptions extends CreateConsoleOptions {
  readonly limits?: Partial<Record<LimitName, number>>
}

/** The page is built where a test file is run by itself. */
function buildPage(): void {
  const built = fileURLToPath(new URL('../../src/console/page/built/page.js', import.meta.url))
  if (existsSync(built)) return
  execFileSync(process.execPath, ['--import', 'tsx', join(top, 'bin/page.ts')], { cwd: top })
}

export async function openHarness({
  limits = {},
  ...options
}: HarnessOptions = {}): Promise<ConsoleHarness> {
  buildPage()
  const clock = fakeClock()
  const told: Line[] = []
  const opened = await openEngine(':memory:', { clock, limits })
  await opened.processes.put(process_definition)
  const engine: ServedEngine = {
    ...servedEngine(opened),
    emit: (event, fields) => void told.push({ event, ...fields }),
  }
  const console = createConsole(engine, options)
  const server = createServer((incoming, response) => {
    if (!console.handle(incoming, response)) response.end(`not the page's: ${incoming.url}`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { base = '/console' } = options

  function send(path: string, how: Asking = {}): Promise<IncomingMessage> {
    const { method = 'GET', headers = {}, body, as } = how
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          ...{ host: '127.0.0.1', port, path, method, agent: false },
          headers: {
            ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
            ...(as && { Cookie: as.cookie, 'X-Conveyor-Token': as.token }),
            ...headers,
          },
        },
        resolve,
      )
      sent.on('error', reject)
      sent.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body))
    })
  }

  async function ask(path: string, how?: Asking): Promise<Answer> {
    const response = await send(path, how)
    const chunks: Buffer[] = []
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
    const { statusCode: status = 0, headers } = response
    return { status, headers, text: Buffer.concat(chunks).toString() }
  }

  async function signIn(input: unknown): Promise<SignedIn> {
    const answer = await ask(`${base}/api/sign_in`, { method: 'POST', body: input })
    if (answer.status !== 200) throw new Error(answer.text)
    const [cookie = ''] = answer.headers['set-cookie']?.[0]?.split(';') ?? []
    const session = JSON.parse(answer.text) as Session
    return { cookie, token: session.token, session }
  }

  async function close(): Promise<void> {
    console.close()
    server.closeAllConnections()
    server.close()
    await opened.close()
  }

  return {
    ...{ engine, clock, console, server, port, told, ask, signIn },
    async codeOf(path, how) {
      const { status, text } = await ask(path, how)
      return status < 400 ? 'ok' : JSON.parse(text).error
    },
    call: (name, body, as) => ask(`${base}/api/${name}`, { method: 'POST', body, as }),
    as: (right) => signIn({ link: console.link(right).split('#link=')[1] }),
    async live(query, as) {
      const response = await send(`${base}/live?${query}`, { as })
      if (response.statusCode !== 200) throw new Error(`live: ${response.statusCode}`)
      return { response, next: eventReader(response) }
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function eventReader(response: IncomingMessage): Live['next'] {
  let text = ''
  const chunks = response[Symbol.asyncIterator]()
  return async () => {
    for (;;) {
      const found = /^(?:retry: \d+\n\n)?event: (\w+)\ndata: (.*)\n\n/.exec(text)
      if (found !== null) {
        text = text.slice(found[0].length)
        return { event: found[1] as string, data: JSON.parse(found[2] as string) }
      }
      const { done, value } = await chunks.next().catch(() => ({ done: true, value: undefined }))
      if (done === true) return undefined
      text += String(value)
    }
  }
}
