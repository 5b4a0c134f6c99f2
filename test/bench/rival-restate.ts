/**
 * Restate behind its HTTP ingress. A create starts a workflow with the ref as its id, which waits for
 * a durable promise; a resume calls the handler that resolves the promise. A promise is resolved
 * once, so each task is resumed once. The service that Restate calls runs in a process of its own.
 */
import { Agent, request } from 'node:http'
import { createServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { fillWith, loadPackage, type RivalCalls } from './rival-calls.ts'
import { dataOf, refOf } from './workload.ts'

interface Waiting {
  promise(name: string): PromiseLike<object> & { resolve(data: object): Promise<void> }
}

interface Restate {
  workflow(definition: object): unknown
  endpoint(): Endpoint
}

interface Endpoint {
  bind(service: unknown): Endpoint
  http2Handler(): (request: Http2ServerRequest, response: Http2ServerResponse) => void
}

export type RestateCalls = typeof calls

const agent = new Agent({ keepAlive: true })
let ingress_port = 0
let created = 0
let resumed = 0

const calls = {
  /** Starts the service that runs the workflow; returns its port. */
  async serve({ packages }: { packages: string }): Promise<number> {
    process.env.RESTATE_LOGGING = 'ERROR'
    const { workflow, endpoint } = loadPackage<Restate>(packages, '@restatedev/restate-sdk')
    const run = async (context: Waiting, data: object): Promise<object> => ({
      ...data,
      ...(await context.promise('resume')),
    })
    const resume = (context: Waiting, data: object): Promise<void> =>
      context.promise('resume').resolve(data)
    const task = workflow({ name: 'task', handlers: { run, resume } })
    const server = createServer(endpoint().bind(task).http2Handler())
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    })
  },

  async register({ admin_port, service_port }: { admin_port: number; service_port: number }) {
    await post(admin_port, '/deployments', { uri: `http://127.0.0.1:${service_port}` })
  },

  async open({ port, tasks }) {
    ingress_port = port
    await fillWith(tasks, create)
  },

  run({ verb, callers, ...span }) {
    const requests_max = verb === 'create' ? Number.POSITIVE_INFINITY : created - resumed
    return closedLoop({ callers, ops: 1, ...span, requests_max }, async () => {
      if (verb === 'create') await create()
      else await resume(resumed++)
    })
  },

  async close() {
    agent.destroy()
  },
} satisfies RivalCalls & Record<string, unknown>

serveCalls(calls)

function create(): Promise<void> {
  const n = created++
  return post(ingress_port, `/task/${refOf(n, 'random')}/run/send`, dataOf('create', n))
}

function resume(n: number): Promise<void> {
  return post(ingress_port, `/task/${refOf(n, 'random')}/resume`, dataOf('modify', n))
}

function post(port: number, path: string, body: object): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(body))
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length }
  const options = { host: '127.0.0.1', port, path, method: 'POST', agent, headers }
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => {
        const { statusCode = 0 } = response
        if (statusCode < 300) resolve()
        else reject(new Error(`${path}: ${statusCode} ${text.slice(0, 500)}`))
      })
    })
    sent.on('error', reject)
    sent.end(bytes)
  })
}
