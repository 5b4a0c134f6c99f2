/**
 * What a server on a disk that fills answers: to callers over HTTP and gRPC, at the operator's page
 * and at the socket of the command line. Nothing is sent again: refusals must be seen.
 */
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { connectOwner } from '../../../src/cli/admin-connection.ts'
import type { Client, ClientOp } from '../../../src/client/api.ts'
import { isClientFault } from '../../../src/client/faults.ts'
import { connect } from '../../../src/client.ts'
import {
  type ConsoleCalls,
  type Session,
  token_header,
} from '../../../src/console/server/messages.ts'
import type { Admin } from '../../../src/server/admin/verbs.ts'
import { plain as conv_id } from '../workload.ts'
import type { DiskServer } from './harness.ts'
import { answerIn, type Ledger, sendIn, wrongTask } from './ledger.ts'

export interface FullServer {
  readonly server: DiskServer
  readonly http: Client
  readonly grpc: Client
  readonly admin: Admin
  /** Signed in with the right to operate. Rejects where the call is refused. */
  readonly page: Page
  /** The names of the events in its log, in order. */
  events(): readonly string[]
  /** The lines of standard error that are no events; LMDB writes some where something fails. */
  said(): string
  /** Sends it a signal; resolves once it has ended, rejects where SIGTERM did not end it with 0. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

type Page = <Name extends keyof ConsoleCalls>(
  name: Name,
  input: ConsoleCalls[Name]['in'],
) => Promise<ConsoleCalls[Name]['out']>

const options = { retries_max: 0, timeout_ms: 100_000, sockets_max: 256 }

export async function openFullServer(server: DiskServer): Promise<FullServer> {
  const { at, target, path, child, ended } = server
  const { user, secret, folder } = target
  const [ca, cert, key] = ['ca.crt', 'load.crt', 'load.key'].map((name) => join(folder, name))
  const keys = { ca: ca as string, cert: cert as string, key: key as string }
  const http = await connect({ url: at.http, user, secret, ...options })
  const grpc = await connect({ address: at.grpc, ...keys, ...options })
  const admin = (await connectOwner(path)) as Admin
  const page = await signIn(at.operator, admin)
  return {
    ...{ server, http, grpc, admin, page },
    events: () => server.lines().map(({ event }) => event),
    said: () => server.said().replace(/^{.*}\n/gm, ''),
    async end(how) {
      const closeAll = () => Promise.all([http.close(), grpc.close(), admin.close()])
      if (how === 'SIGTERM') await closeAll()
      child.kill(how)
      const { code, signal } = await ended
      if (how === 'SIGKILL') await closeAll()
      else if (code !== 0) throw new Error(`it ended with ${code ?? signal}: ${server.said()}`)
    },
  }
}

/** With a link of the command line. */
async function signIn(operator: string, admin: Admin): Promise<Page> {
  const { links } = await admin.call('console.link', { right: 'operate' })
  const link = links[0]?.split('#link=')[1]
  const send = async (name: string, input: unknown, headers: object): Promise<Response> => {
    const answer = await fetch(`${operator}/console/api/${name}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(input),
    })
    if (!answer.ok) throw new Error(`${name} of the page: ${await answer.text()}`)
    return answer
  }
  const answer = await send('sign_in', { link }, {})
  const { token } = (await answer.json()) as Session
  const [cookie = ''] = answer.headers.get('set-cookie')?.split(';') ?? []
  return async (name, input) =>
    (await send(name, input, { Cookie: cookie, [token_header]: token })).json() as never
}

/** The work on one disk: what was sent, and how many requests got each code. */
export interface FullWork {
  readonly ledger: Ledger
  /** Of the text of a task. */
  readonly bytes: number
  readonly textOf: (ref: string, n: number) => string
  readonly codes: Map<string, number>
  newRef(): string
}

const expected: ReadonlySet<string> = new Set(['ok', 'no_space', 'unknown'])

/** Makes or changes tasks in one request: the code of its answer. Throws for a wrong one. */
export async function put(
  client: Client,
  work: FullWork,
  refs: readonly string[],
): Promise<string> {
  const { ledger, codes, textOf } = work
  const ops = sendIn(ledger, refs).map(({ ref, sent }): ClientOp => {
    const data = { n: sent, text: textOf(ref, sent) }
    return { type: sent === 1 ? 'create' : 'modify', conv_id, ref, data }
  })
  const code = await client
    .apply(ops)
    .then((results) => results.find(({ proc }) => proc !== 'ok')?.proc ?? 'ok', refusalOf)
  codes.set(code, (codes.get(code) ?? 0) + 1)
  answerIn(ledger, refs, code)
  if (!expected.has(code)) throw new Error(`a request was answered with ${code}`)
  return code
}

/** Over gRPC with the status. `unknown` for a lost answer. */
function refusalOf(error: unknown): string {
  if (!isClientFault(error)) throw error
  const { code, outcome, cause } = error
  if (outcome === 'unknown' || code === 'unreachable') return 'unknown'
  const of_grpc = (cause as { readonly code?: unknown } | undefined)?.code
  if (typeof of_grpc !== 'number' || of_grpc === status.RESOURCE_EXHAUSTED) return code
  return `${code} ${status[of_grpc]}`
}

/** Makes a task by each client; whether both were taken. */
export async function makeOne({ http, grpc }: FullServer, work: FullWork): Promise<boolean> {
  const codes = await Promise.all([http, grpc].map((client) => put(client, work, [work.newRef()])))
  return codes.every((code) => code === 'ok')
}

/** Throws where one of them is not as it was answered. */
export async function readTasks(
  client: Client,
  { ledger }: FullWork,
  refs: readonly string[],
): Promise<void> {
  const read = async (ref: string): Promise<void> => {
    const acked = ledger.tasks.get(ref)?.acked
    const task = await client.task({ conv_id, ref })
    const wrong = wrongTask(ledger, ref, task?.data, acked)
    if (wrong !== undefined) throw new Error(wrong)
  }
  await Promise.all(refs.map(read))
}

/** Whether a cancel was taken; where not, it must be for the disk. */
export async function cancel(
  { ledger }: FullWork,
  ref: string,
  how: (target: { conv_id: string; ref: string }) => Promise<{ readonly proc: string }>,
): Promise<boolean> {
  const code = await how({ conv_id, ref }).then(
    ({ proc }) => proc,
    (error: { code?: string }) => error.code ?? error,
  )
  if (code !== 'ok' && code !== 'no_space') throw new Error(`a cancel is answered with ${code}`)
  const task = ledger.tasks.get(ref)
  if (code === 'ok' && task !== undefined) task.is_canceled = true
  return code === 'ok'
}
