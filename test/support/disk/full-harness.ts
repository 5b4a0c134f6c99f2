/**
 * `conveyor serve` with all its servers in a process of its own, over a file on a disk that fills,
 * and what it answers there: to callers over HTTP and gRPC, to probes, at the operator's page and
 * at the socket of the command line.
 */

import { cpSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { connectOwner } from '../../../src/cli/admin-connection.ts'
import type { Client } from '../../../src/client/api.ts'
import { connect } from '../../../src/client.ts'
import {
  type ConsoleCalls,
  type Session,
  token_header,
} from '../../../src/console/server/messages.ts'
import type { Admin } from '../../../src/server/admin/verbs.ts'
import { buildChild, type Edit } from '../store-child.ts'
import { pathOf } from '../workload-callers.ts'
import { makeWorkloadFile, pathIn } from '../workload-file.ts'
import { addressesOf, type Limits, startServing } from './serve.ts'

export interface FullHarness {
  /** Puts a file without tasks into the folder. */
  putFile(folder: string): void
  /** Serves the file of a folder, also again. */
  serve(folder: string, limits: Limits): Promise<FullServer>
  remove(): Promise<void>
}

export interface FullServer {
  readonly http: Client
  readonly grpc: Client
  readonly admin: Admin
  /** Signed in with the right to operate. Rejects where the call is refused. */
  readonly page: Page
  /** Ops in a signed request: the status of the answer over HTTP and its code. */
  post(ops: readonly object[]): Promise<string>
  /** `GET` of the operator's listener, or of the HTTP server. */
  get(path: string, at?: 'operator' | 'http'): Promise<{ status: number; text: string }>
  /** The names of the events in its log, in order. */
  events(): readonly string[]
  /** The lines of standard error that are no events; LMDB writes some where something fails. */
  said(): string
  /** Resolves with what is wrong with how it ended. */
  stop(): Promise<string | undefined>
  kill(): Promise<void>
}

export type Page = <Name extends keyof ConsoleCalls>(
  name: Name,
  input: ConsoleCalls[Name]['in'],
) => Promise<ConsoleCalls[Name]['out']>

/** Nothing is sent again: what is refused must be seen. */
const options = { retries_max: 0, timeout_ms: 100_000, sockets_max: 256 }

export async function makeFullHarness(edits: readonly Edit[]): Promise<FullHarness> {
  const { script, folder, remove } = await buildChild('../../bin/conveyor.ts', edits)
  const original = join(folder, 'original')
  mkdirSync(original)
  const { access } = await makeWorkloadFile(original)
  const { user, secret, folder: tls } = access
  const files = readdirSync(original).filter((name) => name.startsWith('tasks.lmdb'))
  const keys = {
    ca: join(tls, 'ca.crt'),
    cert: join(tls, 'load.crt'),
    key: join(tls, 'load.key'),
  }
  async function serve(from: string, limits: Limits): Promise<FullServer> {
    const listeners = ['http', 'grpc', 'operator'] as const
    const serving = startServing({ script, path: pathIn(from), listeners, tls, limits })
    const { child, ended } = serving
    const at = await addressesOf(serving)
    const http = await connect({ url: at.http, user, secret, ...options })
    const grpc = await connect({ address: at.grpc, ...keys, ...options })
    const admin = (await connectOwner(pathIn(from))) as Admin
    const page = await signIn(at.operator, admin)
    const closeAll = () => Promise.all([http.close(), grpc.close(), admin.close()])
    return {
      ...{ http, grpc, admin, page },
      events: () => serving.lines().map(({ event }) => event),
      said: () => serving.said().replace(/^{.*}\n/gm, ''),
      async post(ops) {
        const body = JSON.stringify({ ops })
        const answer = await fetch(`${at.http}${pathOf(access, body)}`, { method: 'POST', body })
        const { request_proc } = (await answer.json()) as { readonly request_proc: string }
        return `${answer.status} ${request_proc}`
      },
      async get(path, from = 'operator') {
        const answer = await fetch(`${at[from]}${path}`)
        return { status: answer.status, text: await answer.text() }
      },
      async stop() {
        await closeAll()
        child.kill('SIGTERM')
        const { code, signal } = await ended
        return code === 0 ? undefined : `it ended with ${code ?? signal}: ${serving.said()}`
      },
      async kill() {
        child.kill('SIGKILL')
        await ended
        await closeAll()
      },
    }
  }

  return {
    serve,
    remove,
    putFile(to) {
      for (const name of files) cpSync(join(original, name), join(to, name))
    },
  }
}

/** By a link, as whoever may open the socket. */
async function signIn(operator: string, admin: Admin): Promise<Page> {
  const { links } = await admin.call('console.link', { right: 'operate' })
  const link = links[0]?.split('#link=')[1]
  const send = (name: string, input: unknown, headers: object): Promise<Response> =>
    fetch(`${operator}/console/api/${name}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(input),
    })
  const answer = await send('sign_in', { link }, {})
  if (!answer.ok) throw new Error(`sign_in: ${await answer.text()}`)
  const { token } = (await answer.json()) as Session
  const [cookie = ''] = answer.headers.get('set-cookie')?.split(';') ?? []
  return async (name, input) => {
    const answer = await send(name, input, { Cookie: cookie, [token_header]: token })
    if (!answer.ok) throw new Error(`${name} of the page: ${await answer.text()}`)
    return (await answer.json()) as never
  }
}
