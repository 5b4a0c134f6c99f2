/**
 * Calls through the whole engine, to real servers: how often a call is made, before and after the
 * file is closed, and what comes of its answer.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../src/core/model.ts'
import { serveHttp } from '../src/http.ts'
import { answerJson, callServer } from './support/call-server.ts'
import { conv_id, ended, go, patient, processOf, stage, taskOf } from './support/call-stage.ts'
import { openHttp } from './support/http-server.ts'
import { memoryHarness } from './support/model-setup.ts'
import { pick } from './support/pick.ts'
import { eventually } from './support/waits.ts'

test('the response is merged, and the task resumes', () =>
  stage(answerJson('{"b":1.10,"a":2}'), async ({ server, engine }) => {
    await engine.processes.put(
      processOf({ url: `${server.url}/{{a}}`, method: 'POST', extra: { id: '{{a}}' } }),
    )
    const { obj_id } = await engine.create({ conv_id, data: { a: 1, c: 3 } })
    const task = await ended(engine, obj_id)
    assert.equal(task.node_id, 'done')
    assert.equal(task.data_text, '{"a":2,"c":3,"b":1.10}')
    assert.deepEqual(pick(server.asked, 'path', 'body'), [['/1', '{"id":1}']])
  }))

const answers: [what: string, answer: Parameters<typeof callServer>[0], description: string][] = [
  ['500', answerJson('no', 500), '500'],
  ['404', answerJson('{"a":1}', 404), '404'],
  ['429', answerJson('', 429), '429'],
  ['a reset', (_asked, request) => request.socket.resetAndDestroy(), 'failed_connect'],
]

for (const [what, answer, description] of answers) {
  test(`an endpoint that answers ${what} is called once, and the task goes on at once`, () =>
    stage(answer, async ({ server, engine }) => {
      await engine.processes.put(processOf({ url: server.url }))
      const { obj_id } = await engine.create({ conv_id, data: {} })
      const task = await ended(engine, obj_id)
      assert.equal(task.node_id, 'bad')
      assert.deepEqual(task.data, {
        __conveyor_api_return_type_error__: 'software',
        __conveyor_api_return_type_tag__: 'api_bad_answer',
        __conveyor_api_return_description__: description,
      })
      await new Promise((resolve) => setTimeout(resolve, 20))
      assert.equal(server.asked.length, 1)
    }))
}

/** As the editor draws it behind a call: it asks for the type, the description and the tag. */
const escalation = [
  ['late', { type_error: 'hardware' }],
  ['done', { type_error: 'software', description: 'no_scheme' }],
  ['late', { type_error: 'software', type_tag: 'api_bad_answer' }],
] as const
const asks = escalation.map(([to_node_id, fields]) => ({
  ...{ type: 'go_if_const', to_node_id },
  conditions: Object.entries(fields).map(([field, value]) => ({
    ...{ param: `__conveyor_api_return_${field}__`, fun: 'eq', const: value, cast: 'string' },
  })),
}))

test('the editor’s own escalation tells what another try may help', () =>
  stage(
    (asked, request, response) =>
      asked.path === '/reset' ? request.socket.resetAndDestroy() : response.writeHead(500).end(),
    async ({ server, engine }) => {
      const { obj_id, scheme } = processOf({ url: '{{url}}', extra_headers: { x: '{{x}}' } })
      const nodes = scheme.nodes.map((node) =>
        node.id === 'bad'
          ? { ...node, obj_type: 3, condition: { logics: [...asks, go('bad')], semaphors: [] } }
          : node,
      )
      await engine.processes.put({ obj_id, scheme: { nodes } })
      const rows: [data: object, node_id: string][] = [
        [{ url: '' }, 'done'],
        [{}, 'done'],
        [{ url: 'a.example/x' }, 'done'],
        [{ url: server.url }, 'late'],
        [{ url: `${server.url}/reset` }, 'late'],
        [{ url: server.url, x: 'a\nb' }, 'late'],
      ]
      for (const [data, node_id] of rows) {
        const { obj_id: made } = await engine.create({ conv_id, data })
        assert.equal((await ended(engine, made)).node_id, node_id, JSON.stringify(data))
      }
      assert.equal(server.asked.length, 2)
    },
  ))

test('an endpoint that hangs is called once', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ harness: { clock }, server, engine }) => {
    await engine.processes.put(processOf({ url: server.url, debug_info: true }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    await eventually(() => hanging.open.length === 1)
    clock.advance(60_000)
    const { data } = await ended(engine, obj_id)
    assert.deepEqual(data, {
      __conveyor_api_return_type_error__: 'software',
      __conveyor_api_return_type_tag__: 'api_bad_answer',
      __conveyor_api_return_description__: 'timeout',
    })
    clock.advance(600_000)
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(server.asked.length, 1)
  })
})

test('debug_info is kept by a failure too', () =>
  stage(answerJson('no', 500), async ({ server, engine }) => {
    await engine.processes.put(processOf({ url: server.url, debug_info: true, extra: { a: '1' } }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    const { __conveyor_api_debug__: debug } = (await ended(engine, obj_id)).data as {
      __conveyor_api_debug__: { http_exec_time: number }
    }
    const { http_exec_time, ...sizes } = debug
    assert.ok(http_exec_time > 0)
    assert.deepEqual(sizes, { http_req_body_size: 9, http_res_code: 500, http_res_body_size: 2 })
  }))

test('XML goes out and comes in', () =>
  stage(
    (asked, _request, response) =>
      response.writeHead(200, { 'content-type': 'text/xml' }).end(asked.body),
    async ({ server, engine }) => {
      await engine.processes.put(
        processOf({
          ...{ url: server.url, content_type: 'text/xml; charset=utf-8' },
          ...{ extra: { root: '{"@id":"{{n}}","item":["{{n}}",{"@b":"<","#value":"x"}]}' } },
          ...{ extra_type: { root: 'object' } },
        }),
      )
      const { obj_id } = await engine.create({ conv_id, data: { n: 'a&b' } })
      const { node_id, data } = await ended(engine, obj_id)
      assert.deepEqual(
        [node_id, data],
        ['done', { n: 'a&b', root: { '@id': 'a&b', item: ['a&b', { '@b': '<', '#value': 'x' }] } }],
      )
    },
  ))

test('an image larger than a task is refused', () =>
  stage(
    (_asked, _request, response) =>
      response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.alloc(120_000, 0xff)),
    async ({ server, engine }) => {
      await engine.processes.put(processOf({ url: server.url }))
      const { obj_id } = await engine.create({ conv_id, data: {} })
      const { data } = await ended(engine, obj_id)
      assert.equal(
        (data as Record<string, unknown>).__conveyor_api_return_type_tag__,
        'api_task_size_overflow_limit',
      )
    },
  ))

test('an order that cannot be made sends no request', () =>
  stage(answerJson(), async ({ server, engine }) => {
    const extra_headers = { 'x-a': '{{a}}' }
    await engine.processes.put(processOf({ url: server.url, extra_headers }))
    const { obj_id } = await engine.create({ conv_id, data: { a: 'x\r\nhost: y' } })
    const task = await ended(engine, obj_id)
    assert.equal(task.node_id, 'bad')
    assert.equal(
      (task.data as Record<string, unknown>).__conveyor_api_return_type_tag__,
      'api_bind_error',
    )
    assert.equal(server.asked.length, 0)
  }))

test('a definition may ask for more attempts, later each time and under one key', () => {
  let left = 3
  return stage(
    (_asked, _request, response) => response.writeHead(left-- > 0 ? 503 : 200).end('{"ok":true}'),
    async ({ harness: { clock }, server, engine }) => {
      const retry = { attempts_max: 4, backoff_ms: 500 }
      await engine.processes.put(processOf({ url: server.url, retry }))
      const { obj_id } = await engine.create({ conv_id, data: {} })
      for (const wait_ms of [500, 1_000, 2_000]) {
        const asked = server.asked.length + 1
        const now_ms = clock.now_ms()
        let wake_ms: number | undefined
        await eventually(() => {
          wake_ms = clock.nextWake_ms()
          return (
            server.asked.length === asked && wake_ms !== undefined && wake_ms <= now_ms + wait_ms
          )
        })
        assert.ok((wake_ms as number) >= now_ms + wait_ms / 2)
        assert.equal((await taskOf(engine, obj_id)).status, 'delayed')
        clock.advance((wake_ms as number) - now_ms)
      }
      const task = await ended(engine, obj_id)
      assert.deepEqual(task.data, { ok: true })
      const keys = server.asked.map(({ headers }) => headers['idempotency-key'])
      assert.equal(keys.length, 4)
      assert.equal(new Set(keys).size, 1)
    },
  )
})

test('the last attempt is final', () =>
  stage(answerJson('', 500), async ({ harness: { clock }, server, engine }) => {
    await engine.processes.put(processOf({ url: server.url, retry: { attempts_max: 3 } }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    for (let tries = 1; tries < 3; tries++) {
      // While a call is under way the clock has its deadline, in 60 s.
      const deadline_ms = clock.now_ms() + 60_000
      await eventually(() => server.asked.length === tries && clock.nextWake_ms() !== deadline_ms)
      clock.advance(64_000)
    }
    const { data, node_id } = await ended(engine, obj_id)
    assert.equal(node_id, 'bad')
    assert.equal((data as Record<string, unknown>).__conveyor_api_return_description__, '500')
    assert.equal(server.asked.length, 3)
  }))

test('a failure that will not pass is final at once', () =>
  stage(answerJson('', 404), async ({ server, engine }) => {
    await engine.processes.put(processOf({ url: server.url, retry: { attempts_max: 3 } }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    assert.equal((await ended(engine, obj_id)).node_id, 'bad')
    assert.equal(server.asked.length, 1)
  }))

test('a job survives reopening, under its key', async () => {
  const first = await callServer(answerJson('', 500))
  const harness = memoryHarness({ allow_hosts: [first.host] })
  const engine = await harness.open()
  await engine.processes.put(processOf({ url: first.url, retry: { attempts_max: 2 } }))
  const { obj_id } = await engine.create({ conv_id, data: {} })
  await eventually(() => first.asked.length === 1)
  await first.close()
  await eventually(async () => (await engine.check()).counts.outbox === 1)
  await engine.close()

  await using again = await harness.open()
  await using second = await callServer(answerJson('{"came":"later"}'), { port: first.port })
  harness.clock.advance(1_000)
  assert.deepEqual((await ended(again, obj_id)).data, { came: 'later' })
  assert.equal(
    second.asked[0]?.headers['idempotency-key'],
    first.asked[0]?.headers['idempotency-key'],
  )
  assert.deepEqual((await again.check()).breaches, [])
})

test('a call aborted by closing is made again after the next opening', async () => {
  const hanging = patient()
  await using server = await callServer(hanging.answer)
  const harness = memoryHarness({ allow_hosts: [server.host] })
  const engine = await harness.open()
  await engine.processes.put(processOf({ url: server.url }))
  const { obj_id } = await engine.create({ conv_id, data: {} })
  await eventually(() => server.asked.length === 1)
  await engine.close()
  await using again = await harness.open()
  await eventually(() => server.asked.length === 2)
  hanging.open.shift()
  hanging.letGo('{"a":1}')
  assert.deepEqual((await ended(again, obj_id)).data, { a: 1 })
  const [one, two] = server.asked.map(({ headers }) => headers['idempotency-key'])
  assert.equal(one, two)
})

/** Creates so many tasks, and lets the server go on eventually each has ended. */

test('a process reaches a callback address of its own server, and nothing else there', async () => {
  const harness = memoryHarness({})
  await using engine = await harness.open()
  const server = await serveHttp(engine, { port: 0 })
  await engine.processes.put(processOf({ type: 'api_callback' }, { obj_id: 'waits' }))
  await engine.processes.put(
    processOf({ url: '{{url}}', extra: { obj_id: '{{id}}', paid: 'yes' } }),
  )
  await engine.processes.put(
    processOf(
      {
        ...{
          type: 'set_param',
          extra: { url: '{{conv[waits].node[call].public_callback_corezoid}}' },
        },
      },
      { obj_id: 'tells' },
    ),
  )
  const { obj_id: id } = await engine.create({ conv_id: 'waits', data: {} })
  const { obj_id: told } = await engine.create({ conv_id: 'tells', data: {} })
  const { url } = (await ended(engine, told, 'tells')).data as { url: string }
  const call = async (to: string) =>
    (await ended(engine, (await engine.create({ conv_id, data: { url: to, id } })).obj_id)).node_id
  for (const other of [`${server.url}/`, `${server.url}/api/2/json/1`, `${url}/../../../x`]) {
    assert.equal(await call(other), 'bad')
  }
  assert.equal(await call(url), 'done')
  assert.deepEqual((await ended(engine, id, 'waits')).data, { obj_id: id, paid: 'yes' })
  await server.drain()
})

test('a process calls the API of another server, which knows the user by the query', async () => {
  const other = await openHttp({ limits: { window_ms: 0 } })
  await stage(
    answerJson('{}'),
    async ({ engine }) => {
      const create = { type: 'create', obj: 'task', conv_id: '1234', ref: '{{order}}', data: {} }
      const logic = {
        ...{ url: `http://127.0.0.1:${other.port}/api/2/json/13000`, method: 'POST' },
        ...{ format: 'raw', raw_body: JSON.stringify({ ops: [create] }) },
      }
      for (const [order, api_secret_outer, request_proc] of [
        ['o-1', other.secret, 'ok'],
        ['o-2', `${other.secret}x`, undefined],
      ] as const) {
        await engine.processes.put(processOf({ ...logic, api_secret_outer }))
        const { obj_id } = await engine.create({ conv_id, data: { order } })
        const { data } = await ended(engine, obj_id)
        assert.equal((data as JsonObject).request_proc, request_proc)
        const made = await other.engine.task({ conv_id: 1234, ref: order })
        assert.equal(made?.ref, request_proc && order)
      }
    },
    { allow_hosts: [`127.0.0.1:${other.port}`] },
  )
  await other.close()
})

test('format corezoid: the task goes out signed, res_data comes in', () =>
  stage(
    answerJson('{"request_proc":"ok","ops":[{"proc":"ok","res_data":{"paid":true}}]}'),
    async ({ server, engine }) => {
      await engine.processes.put(
        processOf({ url: server.url, format: 'corezoid', api_secret_outer: 's' }),
      )
      const { obj_id } = await engine.create({ conv_id, ref: 'r-1', data: { a: 1.5 } })
      assert.deepEqual((await ended(engine, obj_id)).data, { a: 1.5, paid: true })
      assert.deepEqual(JSON.parse(server.asked[0]?.body ?? ''), {
        ops: [{ ref: 'r-1', obj_id, conv_id, node_id: 'call', type: 'data', data: { a: 1.5 } }],
      })
    },
  ))
