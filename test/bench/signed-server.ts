/**
 * The least that a signed JSON endpoint on node:http does: it reads the body, verifies the signature,
 * parses, and answers JSON of the size of our answers. No limits, no checks. A floor has nothing
 * behind it; a rival without a server of its own is behind `apply`.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BenchOp } from './workload.ts'

/** Answers at once where it returns nothing. */
export type Apply = (ops: readonly BenchOp[]) => Promise<unknown> | undefined

export function listenSigned(secret: string, apply: Apply): Promise<{ port: number }> {
  const no_bounds = { headersTimeout: 0, requestTimeout: 0 }
  const server = createServer(no_bounds, (request, response) =>
    take(secret, apply, request, response),
  )
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve({ port: (server.address() as AddressInfo).port })
    })
  })
}

function take(
  secret: string,
  apply: Apply,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
    const [timestamp, signature] = (request.url as string).split('/').slice(-2) as [string, string]
    const hash = createHash('sha1').update(timestamp).update(secret).update(body).update(secret)
    const is_right = hash.digest('hex') === signature
    const { ops } = JSON.parse(body.toString('utf8')) as { ops: BenchOp[] }
    const applied = apply(ops)
    if (applied === undefined) answer(response, ops, is_right)
    else
      applied.then(
        () => answer(response, ops, is_right),
        (error) => response.writeHead(500, { 'Content-Length': 0 }).end(void console.error(error)),
      )
  })
}

const obj_id = '5cf67011094bab1b9a00a31d'

function answer(response: ServerResponse, ops: readonly BenchOp[], is_right: boolean): void {
  const text = JSON.stringify({ request_proc: is_right ? 'ok' : 'no', ops: ops.map(resultOf) })
  response.writeHead(200, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  })
  response.end(text)
}

function resultOf({ type, ref }: BenchOp): object {
  return type === 'create' ? { ref, obj: 'task', obj_id, proc: 'ok' } : { ref, proc: 'ok' }
}
