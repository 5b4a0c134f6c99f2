/**
 * The operator's listener: what it listens on, whom it refuses, health, and the feed as server-sent
 * events: positions, what comes again after a break, and readers that do not read.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import type { Engine } from '../src/engine/api.ts'
import { openEngine, rawJson } from '../src/index.ts'
import { type OperatorServer, serveOperator } from '../src/operator.ts'
import { exchange } from './support/http-raw.ts'
import { conv_id, process_definition } from './support/http-server.ts'

let engine: Engine
let server: OperatorServer

before(async () => {
  engine = await openEngine(':memory:')
  await engine.putProcess(process_definition)
  server = await serveOperator(engine, { port: 0 })
})
after(async () => {
  await server.drain()
  await engine.close()
})

interface Event {
  readonly id?: string
  readonly event?: string
  readonly data?: string
}

/** Opens a feed, which has begun then. */
async function open(
  path: string,
  headers: Record<string, string> = {},
): Promise<AsyncGenerator<Event>> {
  const response = await fetch(server.url + path, { headers })
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  return eventsOf(response)
}

/** The events one by one; comments and the time of retries are none. */
async function* eventsOf(response: Response): AsyncGenerator<Event> {
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    const whole = text.split('\n\n')
    text = whole.pop() as string
    for (const block of whole) {
      const lines = block.split('\n').filter((line) => !/^(:|retry: )/.test(line))
      const event: Record<string, string> = {}
      for (const line of lines) {
        const [, name = '', value = ''] = /^(\w+): (.*)$/.exec(line) ?? []
        event[name] = value
      }
      if (lines.length > 0) yield event
    }
  }
}

async function next(feed: AsyncGenerator<Event>): Promise<Event & { readonly change: unknown }> {
  const { value } = (await feed.next()) as { value: Event }
  return { ...value, change: JSON.parse(value.data ?? 'null') }
}

async function create(ref: string, data: unknown = {}): Promise<string> {
  return (await engine.create({ conv_id, ref, data })).obj_id as string
}

describe('what it listens on', () => {
  for (const host of ['0.0.0.0', '::', '192.168.1.1', 'example.com', '']) {
    test(`not on ${JSON.stringify(host)}`, () =>
      assert.rejects(serveOperator(engine, { host, port: 0 }), (error: Error) => {
        assert.ok(error instanceof RangeError)
        assert.match(error.message, /is no loopback address: .* 127\.0\.0\.1, ::1 or localhost$/)
        return true
      }))
  }
  for (const host of ['127.0.0.1', '127.0.0.2', 'localhost']) {
    test(`on ${host}`, async () => {
      const other = await serveOperator(engine, { host, port: 0 })
      assert.equal((await fetch(`${other.url}/healthz`)).status, 200)
      await other.drain()
    })
  }
})

describe('whom it answers', () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [string, string, string[], number, string])[] = [
    ['GET',  '/healthz', ['Host: 127.0.0.1:8081'],                                   200, '{"request_proc":"ok"}'],
    ['GET',  '/healthz', ['Host: localhost'],                                        200, '{"request_proc":"ok"}'],
    ['GET',  '/healthz', ['Host: [::1]:8081', 'Sec-Fetch-Site: none'],               200, '{"request_proc":"ok"}'],
    ['GET',  '/healthz', ['Host: 127.0.0.1', 'Sec-Fetch-Site: same-origin'],         200, '{"request_proc":"ok"}'],
    ['GET',  '/healthz', ['Host: evil.example:8081'],                                403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1.evil.example'],                           403, 'bad_request'],
    ['GET',  '/changes', ['Host: localhost.evil.example'],                           403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1', 'Origin: http://127.0.0.1:8081'],       403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1', 'Origin: null'],                        403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1', 'Sec-Fetch-Site: cross-site'],          403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1', 'Sec-Fetch-Site: same-site'],           403, 'bad_request'],
    ['POST', '/changes', ['Host: 127.0.0.1', 'Content-Length: 0'],                   405, 'method_not_allowed'],
    ['GET',  '/',        ['Host: 127.0.0.1'],                                        404, 'not_found'],
    ['GET',  '//changes', ['Host: 127.0.0.1'],                                       404, 'not_found'],
    ['GET',  '//',       ['Host: 127.0.0.1'],                                        400, 'bad_request'],
    ['GET',  '/changes?to=1',       ['Host: 127.0.0.1'],                             400, 'bad_request'],
    ['GET',  '/changes?data=yes',   ['Host: 127.0.0.1'],                             400, 'bad_request'],
    ['GET',  '/changes?from=x',     ['Host: 127.0.0.1'],                             400, 'not_possible'],
    ['GET',  '/changes',            ['Host: 127.0.0.1', 'Last-Event-ID: x'],         400, 'not_possible'],
    ['GET',  '/changes?conv_id=77', ['Host: 127.0.0.1'],                             404, 'conv_not_found'],
  ]
  for (const [method, path, headers, status, answer] of rows) {
    test(`${method} ${path} with ${headers.join(', ')}: ${status}`, async () => {
      const bytes = `${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
      const given = await exchange(server.address.port, bytes)
      const code = given.status === 200 ? given.body.trim() : JSON.parse(given.body).error
      assert.deepEqual([given.status, code], [status, answer])
      assert.equal(given.headers['access-control-allow-origin'], undefined)
      assert.equal(given.headers['cache-control'], 'no-store')
    })
  }

  test('HEAD /changes has the head of a feed alone', async () => {
    const answer = await fetch(`${server.url}/changes`, { method: 'HEAD' })
    assert.deepEqual([answer.status, await answer.text()], [200, ''])
  })
})

describe('the feed', () => {
  test('has each change once, and goes on after the last one that was read', async () => {
    const feed = await open('/changes')
    const obj_id = await create('a')
    const { id, change } = await next(feed)
    const { position, at_ms, ...members } = change as Record<string, unknown>
    assert.equal(position, id)
    assert.equal(typeof at_ms, 'number')
    const of_a = { conv_id, obj_id, ref: 'a', status: 'delayed', node_id: 'wait' }
    assert.deepEqual(members, of_a)
    await feed.return(undefined)
    await create('b')
    await create('c')
    for (const [path, headers] of [
      [`/changes?from=${id}`, {}],
      ['/changes?from=start', { 'Last-Event-ID': id as string }],
    ] as const) {
      const again = await open(path, headers)
      const refs = [(await next(again)).change, (await next(again)).change]
      assert.deepEqual(
        refs.map((one) => (one as { ref: string }).ref),
        ['b', 'c'],
      )
      await again.return(undefined)
    }
  })

  test('of one process, with the data of tasks as it is stored', async () => {
    await engine.putProcess({ ...process_definition, obj_id: 55 })
    await create('not this one')
    await engine.create({
      conv_id: 55,
      ref: 7,
      data: rawJson('{"n":1.10,\n"big":12345678901234567890}'),
    })
    const feed = await open('/changes?from=start&conv_id=55&data=1')
    const { data = '' } = await next(feed)
    assert.ok(/"data":\{"n":1\.10, ?"big":12345678901234567890\}\}\}$/.test(data), data)
    const { task } = JSON.parse(data)
    assert.deepEqual([task.ref, task.ref_is_number, task.user_id], ['7', true, null])
    assert.ok(!('history' in task) && !('dataText' in task))
    await feed.return(undefined)
  })

  test('tells a reader whose position has left the window, at the start and later', async () => {
    const small = await openEngine(':memory:', { limits: { changes_bytes_max: 2_000 } })
    await small.putProcess(process_definition)
    const own = await serveOperator(small, { port: 0 })
    const fill = async (): Promise<void> => {
      for (let n = 0; n < 60; n++) await small.create({ conv_id, data: {} })
    }
    await small.create({ conv_id, data: {} })
    const first = await small.changes({ from: 'start' }).next()
    await fill()
    const url = `${own.url}/changes?from=${first.value?.position}`
    const response = await fetch(url)
    const text = await response.text()
    assert.match(
      text,
      /^retry: 1000\n\nevent: gone\ndata: \{"error":"changes_gone","description":".*"\}\n\n$/,
    )
    await own.drain()
    await small.close()
  })

  test('ends with the listener and with the engine', async () => {
    const ending = await openEngine(':memory:')
    const own = await serveOperator(ending, { port: 0 })
    const one = await fetch(`${own.url}/changes`)
    await own.drain()
    assert.equal(await one.text(), 'retry: 1000\n\n')
    const other = await serveOperator(ending, { port: 0 })
    const two = await fetch(`${other.url}/changes`)
    await ending.close()
    assert.equal(await two.text(), 'retry: 1000\n\n')
    assert.equal((await fetch(`${other.url}/healthz`)).status, 503)
    await other.drain()
  })
})

describe('readers that do not read', () => {
  test('are ended after reader_stalled_ms_max', async () => {
    const limits = { reader_stalled_ms_max: 200, readers_max: 1 }
    const own = await serveOperator(engine, { port: 0, limits })
    const data = { text: 'x'.repeat(100_000) }
    const create = { type: 'create', obj: 'task', conv_id, data }
    await engine.apply(Array.from({ length: 100 }, () => create))
    const socket = connect(own.address.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /changes?from=start&data=1 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    let read_bytes = (await once(socket, 'data'))[0].length
    socket.pause()
    // Until then nobody else may read.
    const status = async (): Promise<number> =>
      (await fetch(`${own.url}/changes`, { method: 'HEAD' })).status
    while ((await status()) !== 200);
    socket.on('data', (chunk) => {
      read_bytes += chunk.length
    })
    await Promise.all([once(socket, 'close'), socket.resume()])
    assert.ok(read_bytes < 100 * data.text.length, `${read_bytes} bytes came`)
    await own.drain()
  })

  test('leave nothing where requests behind them on their connection were not answered', async () => {
    const limits = { readers_max: 2, drain_ms_max: 600_000 }
    const own = await serveOperator(engine, { port: 0, limits })
    const socket = connect(own.address.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /changes HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(2))
    const status = async (): Promise<number> =>
      (await fetch(`${own.url}/changes`, { method: 'HEAD' })).status
    while ((await status()) !== 503);
    socket.destroy()
    while ((await status()) !== 200);
    await own.drain()
  })

  test('are told from those that wait by comments', async () => {
    const own = await serveOperator(engine, { port: 0, limits: { reader_beat_ms: 5 } })
    const response = await fetch(`${own.url}/changes`)
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if (text.endsWith(':\n\n:\n\n')) break
    }
    await own.drain()
  })

  test('are bounded in number', async () => {
    const own = await serveOperator(engine, { port: 0, limits: { readers_max: 1 } })
    const one = await fetch(`${own.url}/changes`)
    const other = await fetch(`${own.url}/changes`)
    assert.deepEqual(
      [other.status, ((await other.json()) as { error: string }).error],
      [503, 'overloaded'],
    )
    assert.equal((await fetch(`${own.url}/healthz`)).status, 200)
    await one.body?.cancel()
    while ((await fetch(`${own.url}/changes`, { method: 'HEAD' })).status !== 200);
    await own.drain()
  })
})
