/**
 * What outsiders read while the machine is in trouble: a code, and no name of a file. The folder of
 * the data file has a name that no answer of a server may have.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { serveGrpc } from '../src/grpc.ts'
import { serveHttp } from '../src/http.ts'
import { openEngine } from '../src/index.ts'
import { serveOperator } from '../src/operator.ts'
import { openClient } from './support/grpc-client.ts'
import { healthOf } from './support/health.ts'
import { conv_id, createBody, process_definition } from './support/http-server.ts'
import { tempFolder } from './support/package-folder.ts'

const hidden = 'no-answer-has-this'
const { path: top, remove } = tempFolder()
after(remove)
const folder = join(top, hidden)
mkdirSync(folder)
const path = join(folder, 'tasks.lmdb')

/** The path of a webhook that asks for the secret of a user. */
let webhook = ''

/** What all servers answer, as one text. */
async function answers(engine: Engine): Promise<string> {
  const http = await serveHttp(engine, { port: 0 })
  const sync = await serveHttp(engine, { port: 0, sync: true })
  const operator = await serveOperator(engine, { port: 0, token: 'a-token-of-some-length' })
  const grpc = await serveGrpc(engine, { port: 0, plain: true })
  const client = openClient(grpc.address, undefined)
  const now_s = Math.floor(Date.now() / 1000)
  const posts = [http.url, sync.url].map(
    (url) => `${url}/api/1/json/13000/${now_s}/${'0'.repeat(40)}`,
  )
  const texts: string[] = []
  for (const url of [...posts, http.url + webhook]) {
    const headers = { authorization: 'Basic MTMwMDA6eA==' }
    const body = createBody('r')
    texts.push(await (await fetch(url, { method: 'POST', body, headers })).text())
  }
  for (const url of [`${http.url}/healthz`, `${operator.url}/healthz`, `${operator.url}/readyz`]) {
    texts.push(await (await fetch(url)).text())
  }
  for (const name of ['CreateTask', 'GetTask', 'WaitTask', 'ListTasks'] as const) {
    texts.push(await client.call(name, { conv_id }).then(JSON.stringify, String))
  }
  client.close()
  await Promise.all([http, sync, operator, grpc].map((server) => server.drain()))
  return texts.join('\n')
}

test('a key file that is missing', async () => {
  const first = await openEngine(path)
  await first.processes.put(process_definition)
  await first.users.add({ id: 13000 })
  const { address } = await first.processes.webhook(conv_id, { address: 'new', user: 13000 })
  webhook = address as string
  await first.close()
  rmSync(`${path}.key`)
  const engine = await openEngine(path)
  assert.match((await engine.ready()).checks.key.reason ?? '', new RegExp(hidden))
  const text = await answers(engine)
  assert.match(text, /"store_failed".*"ok":false/s)
  assert.ok(!text.includes(hidden) && !text.includes(top), text)
  await engine.close()
})

test('a commit log that is lost', async () => {
  const engine = await openEngine(path)
  await engine.create({ conv_id, data: {} })
  for (const name of readdirSync(folder)) if (/-log-/.test(name)) rmSync(join(folder, name))
  while (healthOf(engine) !== 'store_failed')
    await new Promise((resolve) => setTimeout(resolve, 20))
  const text = await answers(engine)
  assert.match(text, /store_failed: the store has failed/)
  assert.ok(!text.includes(hidden) && !text.includes(top), text)
  await engine.close().catch(() => {})
})
