/**
 * Whole lives on Restate, through its HTTP ingress. A create starts a workflow with the ref as its id,
 * which waits for a durable promise; a callback calls the handler that resolves the promise, and the
 * workflow ends with the message in its result, after the answer. Callers and the service that
 * Restate calls share this process.
 */
import { Agent, request } from 'node:http'
import { createServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { serveLives } from './cluster/lives-calls.ts'
import { loadPackage } from './rival-packages.ts'

serveLives(async ({ packages, port, admin_port }) => {
  const service = await startService(packages)
  await registerService(admin_port, service.port)
  const { create, resume, close } = restateIngress(port)
  return { create, callback: resume, ended: service.ended, close: async () => close() }
})

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

interface RestateService {
  readonly port: number
  /** Runs that have returned. */
  ended(): number
}

/** Starts the service that runs the workflow. */
function startService(packages: string): Promise<RestateService> {
  process.env.RESTATE_LOGGING = 'ERROR'
  const { workflow, endpoint } = loadPackage<Restate>(packages, '@restatedev/restate-sdk')
  let ended = 0
  const run = async (context: Waiting, data: object): Promise<object> => {
    const message = await context.promise('resume')
    ended++
    return { ...data, ...message }
  }
  const resume = (context: Waiting, data: object): Promise<void> =>
    context.promise('resume').resolve(data)
  const task = workflow({ name: 'task', handlers: { run, resume } })
  const server = createServer(endpoint().bind(task).http2Handler())
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve({ port: (server.address() as AddressInfo).port, ended: () => ended })
    })
  })
}

interface Ingress {
  create(ref: string, data: object): Promise<void>
  resume(ref: string, data: object): Promise<void>
  close(): void
}

/** Calls with one op each over kept connections. */
function restateIngress(port: number): Ingress {
  const agent = new Agent({ keepAlive: true })
  return {
    create: (ref, data) => post(agent, port, `/task/${ref}/run/send`, data),
    resume: (ref, data) => post(agent, port, `/task/${ref}/resume`, data),
    close: () => agent.destroy(),
  }
}

/** Tells Restate where the service is. */
async function registerService(admin_port: number, service_port: number): Promise<void> {
  const agent = new Agent()
  await post(agent, admin_port, '/deployments', { uri: `http://127.0.0.1:${service_port}` })
}

function post(agent: Agent, port: number, path: string, body: object): Promise<void> {
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
