/**
 * WatchTasks: which changes it sends to whom, from which position on, and what ends it; a caller who
 * does not read; and the client's `changes`, which goes on over broken connections.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type ClientReadableStream, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { type ClientChange, connect } from '../src/client.ts'
import type { LimitName } from '../src/core/limits.ts'
import { callback, defineProcess, end, go } from '../src/define.ts'
import type { ServedEngine } from '../src/engine/served-engine.ts'
import { serveGrpc } from '../src/grpc.ts'
import { loadSchema } from '../src/server/grpc/schema.ts'
import { tempFolder } from './support/cli-run.ts'
import { openClientServers } from './support/client-servers.ts'
import { openGrpc, type TestGrpc, waitEnds } from './support/grpc-server.ts'
import { conv_id as demo_id, user } from './support/http-server.ts'
import { turns } from './support/store-trees.ts'

const { WatchTasks } = loadSchema().service
type Request = Parameters<typeof WatchTasks.requestSerialize>[0]
type Change = ReturnType<typeof WatchTasks.responseDeserialize>

const bound = 'uri:conveyor:test'
const definition = (id: string): object =>
  defineProcess({
    id,
    nodes: { start: go('wait'), wait: [callback(), go('done')], done: end({ save: true }) },
  })

interface Watch {
  readonly call: ClientReadableStream<Change>
  /** The next change; positions alone are skipped. Throws the status and the code of its end. */
  next(): Promise<Change>
}

function watch(server: TestGrpc, request: Request = {}): Watch {
  const { path, requestSerialize, responseDeserialize } = WatchTasks
  const call = server
    .connect()
    .client.makeServerStreamRequest(
      ...([path, requestSerialize, responseDeserialize, request, new Metadata()] as const),
    )
  const reading = call[Symbol.asyncIterator]() as AsyncIterator<Change>
  return {
    call,
    async next() {
      for (;;) {
        const { value } = await reading.next().catch((error: ServiceError) => {
          throw new Error(`${status[error.code]} ${error.details.split(':')[0]}`)
        })
        if (value.obj_id !== '' || request.from === undefined) return value
      }
    },
  }
}

async function open(limits: Partial<Record<LimitName, number>> = {}): Promise<TestGrpc> {
  const server = await openGrpc({ limits })
  for (const id of ['p', 'q']) await server.engine.processes.put(definition(id))
  return server
}

const lineOf = ({ conv_id, ref, status, node_id }: Change): string =>
  `${conv_id} ${ref} ${status} ${node_id}`

async function lines({ next }: Watch, count: number): Promise<string[]> {
  const found: string[] = []
  while (found.length < count) found.push(lineOf(await next()))
  return found
}

describe('a watch', () => {
  let server: TestGrpc
  let engine: ServedEngine
  before(async () => {
    server = await open()
    engine = server.engine
  })
  after(async () => {
    await server.close()
    assert.deepEqual(server.bugs, [])
  })

  test('says first where it begins, then sends each change once and in order', async () => {
    const all = watch(server)
    const { position, obj_id } = await all.next()
    assert.equal(obj_id, '')
    await engine.create({ conv_id: 'p', ref: 'a', data: { n: 1 } })
    await engine.create({ conv_id: 'q', ref: 'b', data: {} })
    await engine.modify({ conv_id: 'p', ref: 'a', data: {} })
    const wanted = ['p a delayed wait', 'q b delayed wait', 'p a processed done']
    assert.deepEqual(await lines(all, 3), wanted)
    const from_start = watch(server, { from: position, with_task: true })
    const first = await from_start.next()
    assert.equal(lineOf(first), wanted[0])
    assert.equal(first.task?.data_json.toString(), '{"n":1}')
    assert.ok(Number(first.at_ms) > 0)
    assert.deepEqual(await lines(from_start, 2), wanted.slice(1))
    assert.deepEqual(await lines(watch(server, { from: first.position }), 2), wanted.slice(1))
    assert.deepEqual(await lines(watch(server, { from: 'start', conv_id: 'q' }), 1), [wanted[1]])
  })

  test('of a user has what he may see, for as long as he may', async () => {
    const { position } = await watch(server).next()
    await engine.processes.share('q', user, ['show'])
    await engine.users.bind(user, bound)
    const his = watch(server, { from: position })
    const of_q = watch(server, { from: position, conv_id: 'q' })
    await assert.rejects(watch(server, { conv_id: 'p' }).next(), {
      message: 'PERMISSION_DENIED access_denied',
    })
    await engine.create({ conv_id: 'p', ref: 'hidden', data: {} })
    await engine.create({ conv_id: 'q', ref: 'seen', data: {} })
    for (const one of [his, of_q]) assert.deepEqual(await lines(one, 1), ['q seen delayed wait'])
    await engine.processes.unshare('q', user)
    await engine.modify({ conv_id: 'q', ref: 'seen', data: {} })
    await assert.rejects(of_q.next(), { message: 'PERMISSION_DENIED access_denied' })
    await engine.processes.share('q', user, ['show'])
    await engine.create({ conv_id: 'q', ref: 'again', data: {} })
    assert.deepEqual(await lines(his, 1), ['q again delayed wait'])
    // Whoever acts as somebody else may see other tasks.
    await engine.users.bindAll(bound)
    await engine.create({ conv_id: 'q', ref: 'last', data: {} })
    await assert.rejects(his.next(), { message: 'PERMISSION_DENIED access_denied' })
  })

  test('of one process gets the positions behind the changes of others', async () => {
    const seen = engine.changesSeenBy({}, { conv_id: 'p' })
    await seen.next()
    await engine.create({ conv_id: 'q', ref: 'other', data: {} })
    const { value } = await seen.next()
    assert.deepEqual(Object.keys(value), ['position'])
    const rest = engine.changes({ from: value.position })
    await engine.create({ conv_id: 'p', ref: 'own', data: {} })
    assert.equal((await rest.next()).value.ref, 'own')
    await seen.return?.()
    await rest.return?.()
  })

  /** [request, how it ends] */
  const refusals: readonly (readonly [Request, string])[] = [
    [{ from: 'x' }, 'FAILED_PRECONDITION not_possible'],
    [{ from: '1.0.0.abc' }, 'FAILED_PRECONDITION not_possible'],
    [{ conv_id: 'x' }, 'NOT_FOUND conv_not_found'],
  ]
  for (const [request, message] of refusals) {
    test(`from ${JSON.stringify(request)}: ${message}`, async () => {
      await assert.rejects(watch(server, request).next(), { message })
    })
  }
})

describe('a watch ends', () => {
  const rows = waitEnds(bound, (engine) => engine.create({ conv_id: 'p', data: {} }))
  for (const [what, limits, act, message] of rows) {
    test(`with ${what}: ${message}`, async () => {
      const server = await open(limits)
      const one = watch(server)
      await one.next()
      await act(server, () => one.call.cancel())
      await assert.rejects(one.next(), { message })
      await server.close()
      assert.deepEqual(server.bugs, [])
    })
  }

  test('where no changes are kept, and where there is no room for its unread answers', async () => {
    const off = await open({ changes_bytes_max: 0 })
    await assert.rejects(watch(off).next(), { message: 'FAILED_PRECONDITION not_possible' })
    await off.close()
    await using full = await open({ answers_bytes_max: 1_000 })
    await assert.rejects(watch(full).next(), { message: 'UNAVAILABLE overloaded' })
  })

  test('for a caller who does not read, once what he would read next is no longer kept', async () => {
    const server = await open({ changes_bytes_max: 4_000 })
    const slow = watch(server, { with_task: true })
    await slow.next()
    let read = 0
    const data = { text: 'x'.repeat(100_000) }
    const count = 250
    for (let n = 0; n < count; n++) await server.engine.create({ conv_id: 'p', data })
    await assert.rejects(
      async () => {
        for (;;) {
          await slow.next()
          read++
        }
      },
      { message: 'OUT_OF_RANGE changes_gone' },
    )
    assert.ok(read < count / 2, `${read} changes were on their way`)
    await server.close()
    assert.deepEqual(server.bugs, [])
  })
})

describe('the changes of a client', () => {
  const folder = tempFolder()
  after(() => folder.remove())

  test('come each once and in order over a new server, and end with their signal', async () => {
    await using servers = await openClientServers(folder.path)
    const { engine, targets } = servers
    const port = Number(targets.grpc.address.split(':')[1])
    await using client = await connect(targets.grpc)
    const abort = new AbortController()
    const changes = client.changes({ conv_id: demo_id, data: true, signal: abort.signal })
    const first = changes.next()
    // The watch begins when the server takes it: until then a task may be created too early.
    const refs: string[] = []
    let seen: IteratorResult<ClientChange, void> | undefined
    void first.then((one) => {
      seen = one
    })
    for (let n = 0; seen === undefined; n++) {
      await engine.create({ conv_id: demo_id, ref: `early ${n}`, data: {} })
      await turns()
    }
    const start = (seen as IteratorYieldResult<ClientChange>).value
    assert.deepEqual([start.status, start.task?.data], ['delayed', {}])
    await servers.drain()
    for (const ref of ['a', 'b']) await engine.create({ conv_id: demo_id, ref, data: {} })
    const again = await serveGrpc(engine, { port, tls: { folder: folder.path } })
    for (let ref = ''; ref !== 'b'; ) {
      const { value } = await changes.next()
      ref = (value as ClientChange).ref as string
      refs.push(ref)
    }
    assert.equal(new Set(refs).size, refs.length)
    assert.deepEqual(refs.slice(-2), ['a', 'b'])
    const ended = changes.next()
    abort.abort()
    assert.equal((await ended).done, true)
    await assert.rejects(client.changes({ from: 'x' }).next(), { code: 'not_possible' })
    await assert.rejects(servers.clients.http.changes().next(), { code: 'not_found' })
    const open = client.changes({ from: start.position })
    assert.equal((await open.next()).done, false)
    await again.drain()
  })

  test('are given up where no server answers at all', async () => {
    const pem = (name: string): string => join(folder.path, name)
    const keys = { ca: pem('ca.crt'), cert: pem('billing.crt'), key: pem('billing.key') }
    await using client = await connect({ address: '127.0.0.1:1', ...keys, retries_max: 1 })
    await assert.rejects(client.changes().next(), { code: 'unreachable' })
  })
})
