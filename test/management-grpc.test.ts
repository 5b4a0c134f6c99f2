/** Ops on other objects than tasks over gRPC: the rights of a certificate, answers and repeats. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestClient } from './support/grpc-client.ts'
import { openGrpc } from './support/grpc-server.ts'

type Entry = Readonly<Record<string, unknown>>

async function send(client: TestClient, ops: readonly Entry[], key = ''): Promise<string> {
  const request = { body_json: Buffer.from(JSON.stringify({ ops })), request_key: key }
  return (await client.call('ApplyJson', request)).answer_json.toString()
}

const name = 'uri:conveyor:test'
const show = { type: 'show', obj: 'folder', obj_id: 0, id: 7 }
const list = { type: 'list', obj: 'projects' }
const create = { type: 'create', obj: 'conv', title: 'once', conv_type: 'process' }
const task = { type: 'create', obj: 'task', conv_id: 1234, ref: 'j', data: { n: 1 } }

test('a certificate has the rights of the user whom it acts as, and without one none', async () => {
  await using server = await openGrpc()
  const { users } = server.engine
  const client = server.connect()
  const procs = async (): Promise<unknown[]> => {
    const { ops } = JSON.parse(await send(client, [show, list, task])) as { ops: Entry[] }
    return ops.map(({ proc }) => proc)
  }
  assert.deepEqual(await procs(), ['ok', 'access_denied', 'ok'])
  const { id } = await users.add({ id: 13005 })
  await users.bind(id, name)
  assert.deepEqual(await procs(), ['ok', 'access_denied', 'access_denied'])
  await users.administer(id, true)
  assert.deepEqual(await procs(), ['ok', 'ok', 'access_denied'])
})

test('an answer is that of version 2 over HTTP, and a repeat under its key makes nothing', async () => {
  await using server = await openGrpc()
  const { users, processes } = server.engine
  const { id } = await users.add({ administer: true })
  await users.bind(id, name)
  const client = server.connect()
  const made =
    '{"request_proc":"ok","ops":[{"id":"","proc":"ok","obj":"conv","obj_id":1235,"folder_id":0,"hash":null}]}'
  assert.equal(await send(client, [create], 'k'), made)
  assert.equal(await send(client, [create], 'k'), made)
  assert.equal((await processes.list()).length, 2)
  const unknown =
    '{"request_proc":"ok","ops":[{"id":"","obj":"snapshots","proc":"error","description":"bad object"}]}'
  assert.equal(await send(client, [{ type: 'list', obj: 'snapshots' }]), unknown)
})

/** [what, body, status] */
const refused: readonly (readonly [string, string, string])[] = [
  ['no JSON', '{', 'INVALID_ARGUMENT'],
  ['no ops', '{"ops":[]}', 'INVALID_ARGUMENT'],
  ['too many ops', JSON.stringify({ ops: Array(1001).fill(list) }), 'RESOURCE_EXHAUSTED'],
]

for (const [what, body, status] of refused) {
  test(`a body with ${what} fails with ${status}`, async () => {
    await using server = await openGrpc()
    const found = await server.connect().statusOf('ApplyJson', { body_json: Buffer.from(body) })
    assert.equal(found, status)
  })
}
