/**
 * Dispatch of calls through the whole engine, to real servers, with a clock that the test sets: one
 * attempt or more, concurrency limits, closing and pausing in between. handlers.test runs handlers.
 */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { Task } from '../src/core/model.ts'
import type { Engine, EngineOptions } from '../src/engine/api.ts'
import { serveHttp } from '../src/http.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { answerJson, type CallServer, callServer } from './support/call-server.ts'
import { breakingTree } from './support/crash-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn, memoryBed } from './support/model-setup.ts'

const conv_id = 'calls'
const go = (to_node_id: string) => ({ type: 'go', to_node_id })

function processOf(logic: object, more: { semaphors?: object[]; obj_id?: string } = {}) {
  const { semaphors = [], obj_id = conv_id } = more
  const node = (id: string, obj_type: number, logics: object[], rest: object = {}) => ({
    ...{ id, obj_type, title: id, options: { save_task: true } },
    condition: { logics, semaphors: [], ...rest },
  })
  return {
    obj_id,
    scheme: {
      nodes: [
        node('start', 1, [go('call')]),
        node('call', 0, [{ type: 'api', err_node_id: 'bad', ...logic }, go('done')], { semaphors }),
        node('done', 2, []),
        node('bad', 2, []),
        node('late', 2, []),
      ],
    },
  }
}

/** Waits until it holds; what never comes fails the test. */
async function until(holds: () => unknown): Promise<void> {
  const give_up_ms = performance.now() + 30_000
  while (!(await holds())) {
    assert.ok(performance.now() < give_up_ms, `in vain: ${holds}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

async function taskOf(engine: Engine, obj_id: string | undefined, conv = conv_id): Promise<Task> {
  return (await engine.task({ conv_id: conv, obj_id: obj_id as string })) as Task
}

async function ended(engine: Engine, obj_id: string | undefined, conv = conv_id): Promise<Task> {
  await until(async () => (await taskOf(engine, obj_id, conv)).status === 'processed')
  return taskOf(engine, obj_id, conv)
}

interface Stage {
  readonly bed: ReturnType<typeof memoryBed>
  readonly server: CallServer
  readonly engine: Engine
}

async function stage(
  answer: Parameters<typeof callServer>[0],
  run: (stage: Stage) => Promise<void>,
  { limits = {}, allow_hosts = [] }: EngineOptions = {},
): Promise<void> {
  const server = await callServer(answer)
  const bed = memoryBed({ limits, allow_hosts: [server.host, ...allow_hosts] })
  const engine = await bed.open()
  try {
    await run({ bed, server, engine })
  } finally {
    await engine.close()
    await server.close()
  }
}

/** A server that answers only when told, and knows how many it kept waiting at most. */
function patient() {
  const open: ServerResponse[] = []
  let most = 0
  return {
    open,
    most: () => most,
    answer: ((_asked, _request, response) => {
      open.push(response)
      most = Math.max(most, open.length)
    }) satisfies Parameters<typeof callServer>[0],
    letGo: (text = '{}') => open.shift()?.end(text),
  }
}

test('the response is merged, and the task resumes', () =>
  stage(answerJson('{"b":1.10,"a":2}'), async ({ server, engine }) => {
    await engine.putProcess(
      processOf({ url: `${server.url}/{{a}}`, method: 'POST', extra: { id: '{{a}}' } }),
    )
    const { obj_id } = await engine.create({ conv_id, data: { a: 1, c: 3 } })
    const task = await ended(engine, obj_id)
    assert.equal(task.node_id, 'done')
    assert.equal(task.dataText, '{"a":2,"c":3,"b":1.10}')
    assert.deepEqual(
      server.asked.map(({ path, body }) => [path, body]),
      [['/1', '{"id":1}']],
    )
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
      await engine.putProcess(processOf({ url: server.url }))
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
      await engine.putProcess({ obj_id, scheme: { nodes } })
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
  return stage(hanging.answer, async ({ bed: { clock }, server, engine }) => {
    await engine.putProcess(processOf({ url: server.url, debug_info: true }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    await until(() => hanging.open.length === 1)
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
    await engine.putProcess(processOf({ url: server.url, debug_info: true, extra: { a: '1' } }))
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
      await engine.putProcess(
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
      await engine.putProcess(processOf({ url: server.url }))
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
    await engine.putProcess(processOf({ url: server.url, extra_headers }))
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
    async ({ bed: { clock }, server, engine }) => {
      const retry = { attempts_max: 4, backoff_ms: 500 }
      await engine.putProcess(processOf({ url: server.url, retry }))
      const { obj_id } = await engine.create({ conv_id, data: {} })
      for (const wait_ms of [500, 1_000, 2_000]) {
        const asked = server.asked.length + 1
        const now_ms = clock.now_ms()
        let wake_ms: number | undefined
        await until(() => {
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
  stage(answerJson('', 500), async ({ bed: { clock }, server, engine }) => {
    await engine.putProcess(processOf({ url: server.url, retry: { attempts_max: 3 } }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    for (let tries = 1; tries < 3; tries++) {
      // While a call is under way the clock has its deadline, in 60 s.
      const deadline_ms = clock.now_ms() + 60_000
      await until(() => server.asked.length === tries && clock.nextWake_ms() !== deadline_ms)
      clock.advance(64_000)
    }
    const { data, node_id } = await ended(engine, obj_id)
    assert.equal(node_id, 'bad')
    assert.equal((data as Record<string, unknown>).__conveyor_api_return_description__, '500')
    assert.equal(server.asked.length, 3)
  }))

test('a failure that will not pass is final at once', () =>
  stage(answerJson('', 404), async ({ server, engine }) => {
    await engine.putProcess(processOf({ url: server.url, retry: { attempts_max: 3 } }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    assert.equal((await ended(engine, obj_id)).node_id, 'bad')
    assert.equal(server.asked.length, 1)
  }))

test('a job survives reopening, under its key', async () => {
  const first = await callServer(answerJson('', 500))
  const bed = memoryBed({ allow_hosts: [first.host] })
  const engine = await bed.open()
  await engine.putProcess(processOf({ url: first.url, retry: { attempts_max: 2 } }))
  const { obj_id } = await engine.create({ conv_id, data: {} })
  await until(() => first.asked.length === 1)
  await first.close()
  await until(async () => (await engine.check()).counts.outbox === 1)
  await engine.close()

  const again = await bed.open()
  const second = await callServer(answerJson('{"came":"later"}'), { port: first.port })
  bed.clock.advance(1_000)
  assert.deepEqual((await ended(again, obj_id)).data, { came: 'later' })
  assert.equal(
    second.asked[0]?.headers['idempotency-key'],
    first.asked[0]?.headers['idempotency-key'],
  )
  assert.deepEqual((await again.check()).breaches, [])
  await again.close()
  await second.close()
})

test('a call aborted by closing is made again after the next opening', async () => {
  const hanging = patient()
  const server = await callServer(hanging.answer)
  const bed = memoryBed({ allow_hosts: [server.host] })
  const engine = await bed.open()
  await engine.putProcess(processOf({ url: server.url }))
  const { obj_id } = await engine.create({ conv_id, data: {} })
  await until(() => server.asked.length === 1)
  await engine.close()
  const again = await bed.open()
  await until(() => server.asked.length === 2)
  hanging.open.shift()
  hanging.letGo('{"a":1}')
  assert.deepEqual((await ended(again, obj_id)).data, { a: 1 })
  const [one, two] = server.asked.map(({ headers }) => headers['idempotency-key'])
  assert.equal(one, two)
  await again.close()
  await server.close()
})

/** Creates so many tasks, and lets the server go on until each has ended. */
async function drive(
  { engine }: Pick<Stage, 'engine'>,
  server: ReturnType<typeof patient>,
  count: number,
  conv_ids = [conv_id],
): Promise<void> {
  const made: { obj_id?: string; conv: string }[] = []
  for (const conv of conv_ids) {
    const ops = Array.from({ length: count }, (_, n) => ({
      ...{ type: 'create', obj: 'task', conv_id: conv, data: { n } },
    }))
    for (const { obj_id } of await engine.apply(ops)) {
      made.push({ conv, ...(obj_id !== undefined && { obj_id }) })
    }
  }
  for (const { obj_id, conv } of made) {
    await until(async () => {
      // Time for calls to pile up over their bound, if they would.
      await new Promise((resolve) => setTimeout(resolve, 1))
      server.letGo()
      return (await taskOf(engine, obj_id, conv)).status === 'processed'
    })
  }
}

test('a logic has no more than max_threads calls in flight', () => {
  const hanging = patient()
  return stage(hanging.answer, async (all) => {
    await all.engine.putProcess(processOf({ url: all.server.url, max_threads: 2 }))
    await drive(all, hanging, 20)
    assert.equal(hanging.most(), 2)
    assert.equal(all.server.asked.length, 20)
  })
})

test('a host has no more calls than its limit, over all logics', () => {
  const hanging = patient()
  const limits = { call_host_max: 3 }
  return stage(
    hanging.answer,
    async (all) => {
      const convs = ['one', 'two', 'three']
      for (const obj_id of convs) {
        await all.engine.putProcess(processOf({ url: all.server.url, max_threads: 2 }, { obj_id }))
      }
      await drive(all, hanging, 10, convs)
      assert.equal(hanging.most(), 3)
      assert.equal(all.server.asked.length, 30)
    },
    { limits },
  )
})

test('a call that waits too long for a slot fails without being made', () => {
  const hanging = patient()
  return stage(
    hanging.answer,
    async ({ bed: { clock }, server, engine }) => {
      await engine.putProcess(processOf({ url: server.url, max_threads: 1 }))
      const create = () => engine.create({ conv_id, data: {} })
      const made = [await create(), await create(), await create()]
      const [first, second, third] = made.map(({ obj_id }) => obj_id)
      await until(() => hanging.open.length === 1 && clock.nextWake_ms() !== undefined)
      clock.advance(9_999)
      hanging.letGo()
      await ended(engine, first)
      await until(() => hanging.open.length === 1)
      clock.advance(1)
      const { node_id, data } = await ended(engine, third)
      assert.equal(node_id, 'bad')
      assert.deepEqual(data, {
        __conveyor_api_return_type_error__: 'hardware',
        __conveyor_api_return_type_tag__: 'api_expire_query',
        __conveyor_api_return_description__:
          'Expire task to API, please check your api for correct answer, ' +
          'or increase max_threads for connections',
      })
      hanging.letGo()
      assert.equal((await ended(engine, second)).node_id, 'done')
      const last = await create()
      await until(() => hanging.open.length === 1)
      hanging.letGo()
      assert.equal((await ended(engine, last.obj_id)).node_id, 'done')
      assert.equal(server.asked.length, 3)
    },
    { limits: { call_wait_ms_max: 10_000 } },
  )
})

test('a waiting call is made once where more slots become free at once', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ server, engine }) => {
    await engine.putProcess(processOf({ url: server.url, max_threads: 2 }))
    const made: (string | undefined)[] = []
    for (let n = 0; n < 3; n++) made.push((await engine.create({ conv_id, data: {} })).obj_id)
    await until(() => hanging.open.length === 2)
    hanging.letGo()
    hanging.letGo()
    await until(() => server.asked.length >= 3)
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(server.asked.length, 3)
    hanging.letGo()
    for (const obj_id of made) assert.equal((await ended(engine, obj_id)).node_id, 'done')
  })
})

test('a host that hangs delays no other', async () => {
  const quick = await callServer(answerJson('{"quick":true}'))
  const hanging = patient()
  await stage(
    hanging.answer,
    async ({ server, engine }) => {
      await engine.putProcess(processOf({ url: '{{url}}', max_threads: 0 }))
      const ops = [...Array(400).fill(server.url), quick.url].map((url) => ({
        ...{ type: 'create', obj: 'task', conv_id, data: { url } },
      }))
      const last = (await engine.apply(ops)).at(-1)
      const task = await ended(engine, last?.obj_id)
      assert.equal((task.data as Record<string, unknown>).quick, true)
      assert.equal(hanging.most(), 2)
    },
    { limits: { call_host_max: 2, jobs_max: 4 }, allow_hosts: [quick.host] },
  )
  await quick.close()
})

test('the outcome for a paused process is applied at resume, and holds no slot until then', () => {
  const hanging = patient()
  const limits = { jobs_max: 1, call_host_max: 1 }
  return stage(
    hanging.answer,
    async ({ server, engine }) => {
      const other = 'other'
      await engine.putProcess(processOf({ url: server.url }))
      await engine.putProcess(processOf({ url: server.url }, { obj_id: other }))
      const paused = await engine.create({ conv_id, data: {} })
      await until(() => hanging.open.length === 1)
      await engine.processes.pause(conv_id)
      hanging.letGo('{"answer":1}')
      const free = await engine.create({ conv_id: other, data: {} })
      await until(() => hanging.open.length === 1)
      hanging.letGo('{"answer":2}')
      assert.deepEqual((await ended(engine, free.obj_id, other)).data, { answer: 2 })
      assert.equal((await taskOf(engine, paused.obj_id)).status, 'delayed')
      await engine.processes.resume(conv_id)
      assert.deepEqual((await ended(engine, paused.obj_id)).data, { answer: 1 })
      assert.equal(server.asked.length, 2)
    },
    { limits },
  )
})

test('a paused process starts its calls when it is resumed', () => {
  const statuses = [500, 200]
  return stage(
    (_asked, _request, response) => response.writeHead(statuses.shift() ?? 400).end('{}'),
    async ({ server, engine, bed: { clock } }) => {
      await engine.putProcess(processOf({ url: server.url, retry: { attempts_max: 2 } }))
      const { obj_id } = await engine.create({ conv_id, data: {} })
      const deadline_ms = clock.now_ms() + 60_000
      await until(() => server.asked.length === 1 && clock.nextWake_ms() !== deadline_ms)
      await engine.processes.pause(conv_id)
      clock.advance(1_000)
      await new Promise((resolve) => setTimeout(resolve, 30))
      assert.equal(server.asked.length, 1)
      await engine.processes.resume(conv_id)
      assert.equal((await ended(engine, obj_id)).node_id, 'done')
    },
  )
})

test('a call whose host is at its limit gives its slot of the logic to the next', async () => {
  const quick = patient()
  const other = await callServer(quick.answer)
  const hanging = patient()
  await stage(
    hanging.answer,
    async ({ server, engine }) => {
      await engine.putProcess(processOf({ url: '{{url}}', max_threads: 2 }))
      const create = (url: string) => engine.create({ conv_id, data: { url } })
      await create(server.url)
      const first = await create(other.url)
      await until(() => hanging.open.length === 1 && quick.open.length === 1)
      await create(server.url)
      const last = await create(other.url)
      quick.letGo()
      await ended(engine, first.obj_id)
      await until(() => quick.open.length === 1)
      quick.letGo()
      await ended(engine, last.obj_id)
      assert.equal(server.asked.length, 1)
    },
    { limits: { call_host_max: 1 }, allow_hosts: [other.host] },
  )
  await other.close()
})

test('a task that its timer has moved gets no response', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ bed: { clock }, server, engine }) => {
    const semaphors = [{ type: 'time', value: 30, to_node_id: 'late' }]
    await engine.putProcess(processOf({ url: server.url }, { semaphors }))
    const { obj_id } = await engine.create({ conv_id, data: { a: 1 } })
    await until(() => hanging.open.length === 1)
    clock.advance(30_000)
    const task = await ended(engine, obj_id)
    hanging.letGo('{"a":2}')
    const next = await engine.create({ conv_id, data: {} })
    await until(() => hanging.open.length === 1)
    hanging.letGo()
    await ended(engine, next.obj_id)
    assert.deepEqual(await taskOf(engine, obj_id), task)
    assert.deepEqual([task.node_id, task.dataText], ['late', '{"a":1}'])
  })
})

test('a canceled task gets no response', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ server, engine }) => {
    await engine.putProcess(processOf({ url: server.url }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    await until(() => hanging.open.length === 1)
    await engine.tasks.cancel({ conv_id, obj_id: obj_id as string })
    hanging.letGo('{"a":2}')
    const next = await engine.create({ conv_id, data: {} })
    await until(() => hanging.open.length === 1)
    hanging.letGo()
    await ended(engine, next.obj_id)
    assert.deepEqual((await taskOf(engine, obj_id)).data, {})
    assert.deepEqual((await engine.check()).breaches, [])
  })
})

test('a response is merged into the data as it is then', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ server, engine }) => {
    await engine.putProcess(processOf({ url: server.url, extra: { a: '{{a}}' } }))
    const { obj_id } = await engine.create({ conv_id, data: { a: 1, b: 1, c: 1 } })
    await until(() => hanging.open.length === 1)
    const target = { conv_id, obj_id: obj_id as string }
    await engine.modify({ ...target, data: { a: 2, b: 2 } })
    assert.equal((await taskOf(engine, obj_id)).status, 'delayed')
    hanging.letGo('{"b":3}')
    assert.deepEqual((await ended(engine, obj_id)).data, { a: 2, b: 3, c: 1 })
    assert.equal(server.asked[0]?.body, '{"a":1}')
  })
})

test('a retry by an administrator is another job, with a key of its own', () =>
  stage(answerJson('no', 400), async ({ server, engine }) => {
    await engine.putProcess(processOf({ url: server.url, err_node_id: '' }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    const target = { conv_id, obj_id: obj_id as string }
    for (const asked of [1, 2]) {
      await until(async () => (await taskOf(engine, obj_id)).status === 'failed')
      assert.equal(server.asked.length, asked)
      assert.equal((await taskOf(engine, obj_id)).status_details?.tag, 'api_bad_answer')
      await engine.tasks.retry(target)
    }
    await until(() => server.asked.length === 3)
    assert.equal(new Set(server.asked.map(({ headers }) => headers['idempotency-key'])).size, 3)
  }))

test('a hundred tasks at once make one call each', () => {
  const limits = { jobs_max: 16 }
  return stage(
    answerJson('{"answered":true}'),
    async ({ server, engine }) => {
      await engine.putProcess(processOf({ url: server.url, max_threads: 5, extra: { n: '{{n}}' } }))
      const ops = Array.from({ length: 100 }, (_, n) => ({
        ...{ type: 'create', obj: 'task', conv_id, data: { n } },
      }))
      for (const { obj_id } of await engine.apply(ops)) {
        const { data } = await ended(engine, obj_id)
        assert.equal((data as Record<string, unknown>).answered, true)
      }
      const bodies = server.asked.map(({ body }) => body)
      assert.equal(bodies.length, 100)
      assert.equal(new Set(bodies).size, 100)
      assert.deepEqual((await engine.check()).breaches, [])
    },
    { limits },
  )
})

test('a process reaches a callback address of its own server, and nothing else there', async () => {
  const bed = memoryBed({})
  const engine = await bed.open()
  const server = await serveHttp(engine, { port: 0 })
  await engine.putProcess(processOf({ type: 'api_callback' }, { obj_id: 'waits' }))
  await engine.putProcess(processOf({ url: '{{url}}', extra: { obj_id: '{{id}}', paid: 'yes' } }))
  await engine.putProcess(
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
  await engine.close()
})

test('format corezoid: the task goes out signed, res_data comes in', () =>
  stage(
    answerJson('{"request_proc":"ok","ops":[{"proc":"ok","res_data":{"paid":true}}]}'),
    async ({ server, engine }) => {
      await engine.putProcess(
        processOf({ url: server.url, format: 'corezoid', api_secret_outer: 's' }),
      )
      const { obj_id } = await engine.create({ conv_id, ref: 'r-1', data: { a: 1.5 } })
      assert.deepEqual((await ended(engine, obj_id)).data, { a: 1.5, paid: true })
      assert.deepEqual(JSON.parse(server.asked[0]?.body ?? ''), {
        ops: [{ ref: 'r-1', obj_id, conv_id, node_id: 'call', type: 'data', data: { a: 1.5 } }],
      })
    },
  ))

test('a failed store starts no call again', async () => {
  const server = await callServer(answerJson())
  const tree = memoryTree()
  const options = { clock: fakeClock(), allow_hosts: [server.host] }
  const setup = await engineOn(tree, { ...options, timers: false })
  await setup.putProcess(processOf({ url: server.url }))
  for (let tasks = 0; tasks < 3; tasks++) await setup.create({ conv_id, data: {} })
  await setup.close()
  let failures = 0
  const engine = await engineOn(breakingTree(tree, 1, false), {
    ...options,
    limits: { jobs_max: 1 },
    onFailure: () => failures++,
  })
  await until(() => failures === 1)
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.equal(server.asked.length, 1)
  await engine.close().catch(() => {})
  await server.close()
})

test('a host that is no HOST:PORT is refused at once', async () => {
  await assert.rejects(memoryBed({ allow_hosts: ['localhost'] }).open(), { name: 'RangeError' })
})
