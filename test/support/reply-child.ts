/**
 * Serves a file over HTTP and sends itself signed requests one after another, so that each answer
 * has its own commit: `reply-child PATH REQUESTS`.
 */
import { Console } from 'node:console'
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { connect } from 'node:net'
import { signatureOf } from '../../src/codec/signature.ts'
import { serveHttp } from '../../src/http.ts'
import { openEngine } from '../../src/index.ts'

const [path = '', requests = '1'] = process.argv.slice(2)
// What it tells explains a trace that is not as it should be.
const engine = await openEngine(path, { logger: new Console(process.stderr) })
const logic = (type: string, to_node_id?: string) => ({ type, to_node_id })
await engine.processes.put({
  obj_id: 1,
  title: 'wait',
  conv_type: 'process',
  scheme: {
    nodes: [
      { id: 's', obj_type: 1, condition: { logics: [logic('go', 'w')] } },
      { id: 'w', obj_type: 0, condition: { logics: [logic('api_callback'), logic('go', 'e')] } },
      { id: 'e', obj_type: 2 },
    ],
  },
})
const { id, secret } = await engine.users.add()
await engine.processes.share(1, id)
const server = await serveHttp(engine, { port: 0 })
writeSync(1, 'ready\n')
const socket = connect(server.address.port, server.address.address)
for (let n = 0; n < Number(requests); n++) {
  const type = n % 2 === 0 ? 'create' : 'modify'
  const op = { type, obj: 'task', conv_id: 1, ref: `r${n >> 1}`, data: { n } }
  const body = JSON.stringify({ ops: [op] })
  const now = String(Math.floor(Date.now() / 1000))
  const target = `/api/1/json/${id}/${now}/${signatureOf(now, secret, body)}`
  socket.write(
    `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (!answer.includes('"proc":"ok"}]')) throw new Error(answer.toString())
}
socket.end()
await server.drain()
await engine.close()
