/**
 * The client of the admin socket. A call resolves with the verb's value or rejects with the Fault
 * that the verb threw. It rejects with `file_held` for an unreadable response, with `store_failed`
 * if the process ends before it answers, and with the system's error (`syscall` is `connect`) if
 * nothing listens: the file may be free.
 */
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { parsePlain } from '../../codec/json.ts'
import { fault } from '../../core/faults.ts'
import { type AdminResponse, checkEndpoint, type Endpoint, request_bytes_max } from './protocol.ts'
import type { Admin } from './verbs.ts'

/** Connects with the first call. Calls may overlap; `close` closes the connections. */
export function adminClient(options: Endpoint & { readonly socket: string }): Admin {
  const { socket, file_id, version } = options
  const mine = { file_id, version }
  const agent = new Agent({ keepAlive: true })
  return {
    async call(verb, args) {
      const body = Buffer.from(JSON.stringify({ ...mine, verb, args }))
      if (body.length > request_bytes_max) {
        throw fault(
          'body_too_large',
          `over ${request_bytes_max} bytes at once: send less at a time`,
        )
      }
      const response = readResponse(await post(agent, socket, body))
      checkEndpoint(mine, response)
      if ('fault' in response) {
        const { code, message, ...more } = response.fault
        throw fault(code, message, more)
      }
      return response.value as never
    },
    async close() {
      agent.destroy()
    },
  }
}

function readResponse(body: string): AdminResponse {
  try {
    return parsePlain(body) as AdminResponse
  } catch {
    throw fault('file_held', 'the process that holds the file did not answer: see its log')
  }
}

function post(agent: Agent, socket: string, body: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void => reject(cutOff(error))
    const call = request({ agent, socketPath: socket, method: 'POST', path: '/' }, (response) => {
      text(response).then(resolve, onError)
    })
    call.on('error', onError)
    call.setHeader('content-type', 'application/json; charset=utf-8')
    call.end(body)
  })
}

function cutOff(error: NodeJS.ErrnoException): Error {
  if (error.syscall === 'connect') return error
  const why = 'the process that holds the file ended before it answered: look whether it was done'
  return fault('store_failed', why, { cause: error })
}
