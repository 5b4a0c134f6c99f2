/**
 * Callers who send more than a program may hold, each request once: batches and single ops over HTTP
 * and gRPC. Of each request its tasks and its answer are kept.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { credentials, type ServiceError, status } from '@grpc/grpc-js'
import { faultOfStatus } from '../../../src/client/grpc-messages.ts'
import { openClient, type TestClient } from '../grpc-client.ts'
import { plain } from '../workload.ts'
import { pathOf } from '../workload-callers.ts'
import { type DiskServer, type Fetched, fetchText } from './harness.ts'
import { timeOfDay } from './serve.ts'

export const protocols = ['http', 'grpc'] as const
export type Protocol = (typeof protocols)[number]

export interface Answer {
  /** `ok`, or the code of the refusal. */
  readonly code: string
  /** Of HTTP or gRPC. */
  readonly status: string
  readonly retry_after?: string | null
  /** Since it was sent. */
  readonly ms: number
}

export interface SentRequest {
  readonly protocol: Protocol
  readonly refs: readonly string[]
  readonly data_bytes: number
  /** Of the time of day, in milliseconds and parts of them. */
  readonly sent_at: number
  answer: Answer | undefined
}

export interface HungCallers {
  readonly sent: readonly SentRequest[]
  /** Sends creates of so many tasks, each with so many bytes of data. */
  send(protocol: Protocol, tasks: number, text_bytes: number): SentRequest
  /** Resolves with the milliseconds that a list of tasks took, which needs no write. */
  list(): Promise<number>
  /** Of the operator's listener. */
  ask(path: string): Promise<Fetched>
  close(): void
}

/** A connection takes a hundred calls at once. */
const grpc_connections = 4
/** No caller gives up. */
const deadline_ms = 600_000

export async function openHungCallers({ target, at }: DiskServer): Promise<HungCallers> {
  const names = ['ca.crt', 'load.key', 'load.crt'].map((name) => join(target.folder, name))
  const [ca, key, cert] = await Promise.all(names.map((path) => readFile(path)))
  const open = (): TestClient =>
    openClient(target.address, credentials.createSsl(ca as Buffer, key, cert))
  const clients = Array.from({ length: grpc_connections }, open)
  const reader = open()
  const sent: SentRequest[] = []
  let calls = 0

  async function post(refs: readonly string[], data: string): Promise<Omit<Answer, 'ms'>> {
    const ops = refs.map(
      (ref) => `{"type":"create","obj":"task","conv_id":"${plain}","ref":"${ref}","data":${data}}`,
    )
    const body = `{"ops":[${ops}]}`
    const { status, text, retry_after } = await fetchText(
      `${target.url}${pathOf(target, body)}`,
      body,
    )
    const { request_proc, ops: results = [] } = JSON.parse(text) as {
      readonly request_proc: string
      readonly ops?: readonly { readonly proc: string }[]
    }
    const code = request_proc === 'ok' ? codeOf(refs, results) : request_proc
    return { code, status: String(status), retry_after }
  }

  async function call(refs: readonly string[], data: string): Promise<Omit<Answer, 'ms'>> {
    const client = clients[calls++ % clients.length] as TestClient
    const data_json = Buffer.from(data)
    const deadline = { deadline: Date.now() + deadline_ms }
    const creates = refs.map((ref) => ({ conv_id: plain, ref, data_json }))
    try {
      if (creates.length === 1) {
        await client.call('CreateTask', creates[0] as object, undefined, deadline)
        return { code: 'ok', status: 'OK' }
      }
      const ops = creates.map((create) => ({ create }))
      const { results } = await client.call('ApplyOps', { ops }, undefined, deadline)
      return { code: codeOf(refs, results), status: 'OK' }
    } catch (error) {
      const { code } = faultOfStatus(error as ServiceError)
      return { code, status: String(status[(error as ServiceError).code]) }
    }
  }

  return {
    sent,
    send(protocol, tasks, text_bytes) {
      const number = sent.length
      const refs = Array.from({ length: tasks }, (_, at) => `${protocol}-${number}-${at}`)
      const data = JSON.stringify({ n: 1, text: 'x'.repeat(text_bytes) })
      const sent_at = timeOfDay()
      const data_bytes = tasks * data.length
      const one: SentRequest = { protocol, refs, data_bytes, sent_at, answer: undefined }
      sent.push(one)
      void (protocol === 'http' ? post(refs, data) : call(refs, data))
        .catch((error) => ({ code: 'unreachable', status: String(error) }))
        .then((answer) => {
          one.answer = { ...answer, ms: timeOfDay() - sent_at }
        })
      return one
    },
    async list() {
      const began_ms = performance.now()
      const deadline = { deadline: Date.now() + deadline_ms }
      await reader.call('ListTasks', { page_size: 10 }, undefined, deadline)
      return performance.now() - began_ms
    },
    ask: (path) => fetchText(new URL(path, at.operator).href),
    close() {
      for (const client of [...clients, reader]) client.close()
    },
  }
}

/** Of all ops: of a batch each is made. */
function codeOf(refs: readonly string[], results: readonly { readonly proc: string }[]): string {
  if (results.length !== refs.length) return `${results.length} results of ${refs.length}`
  return results.find(({ proc }) => proc !== 'ok')?.proc ?? 'ok'
}
