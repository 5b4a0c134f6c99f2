/**
 * Callers who send more than a program may hold, each request once: batches and single ops over HTTP
 * and gRPC. What is noted of each tells what must be in the file: all of it where it was answered
 * `ok`, nothing where it was refused, all or nothing where it has no answer.
 */
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { credentials, type ServiceError, status } from '@grpc/grpc-js'
import { faultOfStatus } from '../../../src/client/grpc-messages.ts'
import { openClient, type TestClient } from '../grpc-client.ts'
import { plain } from '../workload.ts'
import { pathOf, type Target } from '../workload-callers.ts'
import { timeOfDay } from './serve.ts'

export const ways = ['http', 'grpc'] as const
export type Way = (typeof ways)[number]

export interface Answer {
  /** `ok`, or the code of the refusal. */
  readonly code: string
  /** Of HTTP or gRPC. */
  readonly status: string
  readonly retry_after: string | undefined
  /** Since it was sent. */
  readonly ms: number
}

export interface SentRequest {
  readonly way: Way
  readonly refs: readonly string[]
  readonly data_bytes: number
  /** Of the time of day, in milliseconds and parts of them. */
  readonly sent_at: number
  answer: Answer | undefined
}

export interface HungCallers {
  readonly sent: readonly SentRequest[]
  /** Sends creates of so many tasks, each with so many bytes of data. */
  send(way: Way, tasks: number, text_bytes: number): SentRequest
  /** Resolves with the milliseconds that a list of tasks took, which needs no write. */
  list(): Promise<number>
  /** Of the operator's listener. */
  ask(
    path: string,
  ): Promise<{ readonly status: number; readonly text: string; readonly ms: number }>
  close(): void
}

/** A connection takes a hundred calls at once. */
const grpc_connections = 4
/** No caller gives up. */
const deadline_ms = 600_000

export async function openHungCallers(
  target: Target & { readonly operator: string },
): Promise<HungCallers> {
  const agent = new Agent({ keepAlive: true })
  const names = ['ca.crt', 'load.key', 'load.crt'].map((name) => join(target.folder, name))
  const [ca, key, cert] = await Promise.all(names.map((path) => readFile(path)))
  const open = (): TestClient =>
    openClient(target.address, credentials.createSsl(ca as Buffer, key, cert))
  const clients = Array.from({ length: grpc_connections }, open)
  const reader = open()
  const sent: SentRequest[] = []
  const text_of = new Map<number, string>()
  let count = 0
  let calls = 0

  function dataOf(text_bytes: number): string {
    const known = text_of.get(text_bytes) ?? JSON.stringify({ text: 'x'.repeat(text_bytes) })
    text_of.set(text_bytes, known)
    return known
  }

  async function post(refs: readonly string[], data: string): Promise<Omit<Answer, 'ms'>> {
    const ops = refs.map(
      (ref) => `{"type":"create","obj":"task","conv_id":"${plain}","ref":"${ref}","data":${data}}`,
    )
    const body = `{"ops":[${ops}]}`
    const url = `${target.url}${pathOf(target, body)}`
    const { status, text, retry_after } = await fetched(url, agent, body)
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
        return { code: 'ok', status: 'OK', retry_after: undefined }
      }
      const ops = creates.map((create) => ({ create }))
      const { results } = await client.call('ApplyOps', { ops }, undefined, deadline)
      return { code: codeOf(refs, results), status: 'OK', retry_after: undefined }
    } catch (error) {
      const { code } = faultOfStatus(error as ServiceError)
      return { code, status: status[(error as ServiceError).code], retry_after: undefined }
    }
  }

  return {
    sent,
    send(way, tasks, text_bytes) {
      const number = count++
      const refs = Array.from({ length: tasks }, (_, at) => `${way}-${number}-${at}`)
      const data = dataOf(text_bytes)
      const sent_at = timeOfDay()
      const data_bytes = tasks * data.length
      const one: SentRequest = { way, refs, data_bytes, sent_at, answer: undefined }
      sent.push(one)
      void (way === 'http' ? post(refs, data) : call(refs, data))
        .catch((error) => ({ code: 'unreachable', status: String(error), retry_after: undefined }))
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
    async ask(path) {
      const began_ms = performance.now()
      const { status, text } = await fetched(new URL(path, target.operator).href, agent)
      return { status, text, ms: performance.now() - began_ms }
    },
    close() {
      agent.destroy()
      for (const client of [...clients, reader]) client.close()
    },
  }
}

/** Of all ops: of a batch each is made. */
function codeOf(refs: readonly string[], results: readonly { readonly proc: string }[]): string {
  if (results.length !== refs.length) return `${results.length} results of ${refs.length}`
  return results.find(({ proc }) => proc !== 'ok')?.proc ?? 'ok'
}

interface Fetched {
  readonly status: number
  readonly text: string
  readonly retry_after: string | undefined
}

function fetched(url: string, agent: Agent, body?: string): Promise<Fetched> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const asked = request(url, { agent, method }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        text += part
      })
      response.on('error', reject)
      const { statusCode = 0, headers } = response
      const retry_after = headers['retry-after']
      response.on('end', () => resolve({ status: statusCode, text, retry_after }))
    })
    asked.on('error', reject).end(body)
  })
}
