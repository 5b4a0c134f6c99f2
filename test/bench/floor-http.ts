/**
 * The floor of HTTP cells: the least that a signed JSON endpoint on node:http does. It reads the body,
 * verifies the signature, parses, and answers JSON of the size of our answers. No store, no limits, no
 * checks.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serveCalls } from './child.ts'
import type { BenchOp } from './workload.ts'

export type HttpFloorCalls = typeof calls

const calls = {
  listen: ({ secret }: { secret: string }): Promise<{ port: number }> => {
    const no_bounds = { headersTimeout: 0, requestTimeout: 0 }
    const server = createServer(no_bounds, (request, response) => answer(secret, request, response))
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => {
        resolve({ port: (server.address() as AddressInfo).port })
      })
    })
  },
}

serveCalls(calls)

const obj_id = '5cf67011094bab1b9a00a31d'

function answer(secret: string, request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
    const [timestamp, signature] = (request.url as string).split('/').slice(-2) as [string, string]
    const hash = createHash('sha1').update(timestamp).update(secret).update(body).update(secret)
    const is_right = hash.digest('hex') === signature
    const { ops } = JSON.parse(body.toString('utf8')) as { ops: BenchOp[] }
    const text = JSON.stringify({ request_proc: is_right ? 'ok' : 'no', ops: ops.map(resultOf) })
    response.writeHead(200, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(text),
    })
    response.end(text)
  })
}

function resultOf({ type, ref }: BenchOp): object {
  return type === 'create' ? { ref, obj: 'task', obj_id, proc: 'ok' } : { ref, proc: 'ok' }
}
