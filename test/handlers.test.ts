/**
 * Handlers of the embedder, for a logic kind that the engine does not run or for nodes of a title.
 * Each row is a handler with the node and the data of its task afterwards. The other tests are about
 * time limits, registration and closing.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Handler, HandlerOptions } from '../src/engine/api/handler-api.ts'
import {
  atNode,
  by_kind,
  by_title,
  created,
  end,
  failure,
  go,
  linesLogger,
  opened,
  processWith,
  taskOf,
  turns,
  unguarded,
  until,
  waiting,
} from './support/handler-harness.ts'

const wide = { limits: { task_bytes_max: 100 } }

const not_text = {
  toString(): string {
    throw new Error('not even that')
  },
}
const deep = JSON.parse(`{"x":${'['.repeat(70)}${']'.repeat(70)}}`) as object
const cyclic: { self?: object } = {}
cyclic.self = cyclic

// [what the handler does, the handler, the node its task ends in, what its data has then]
const rows: [name: string, handler: Handler, node_id: string, data: object][] = [
  ['gives an object', () => ({ b: 2 }), 'done', { a: 1, b: 2 }],
  ['gives one later', async () => ({ a: 5 }), 'done', { a: 5 }],
  ['gives nothing', () => {}, 'done', { a: 1 }],
  ['gives null', () => null, 'done', { a: 1 }],
  ['reads the task', ({ data }) => ({ saw: data }), 'done', { a: 1, saw: { a: 1 } }],
  ['gives a text', () => 'x', 'failed', failure('handler_error', 'the handler gave no object')],
  ['gives an array', () => [1], 'failed', failure('handler_error', 'the handler gave no object')],
  [
    'gives what JSON cannot hold',
    () => ({ at: new Map() }),
    'failed',
    failure('handler_error', 'the handler gave what is no JSON: data.at is no plain object'),
  ],
  [
    'gives a circle',
    () => cyclic,
    'failed',
    failure(
      'handler_error',
      `the handler gave what is no JSON: data${'.self'.repeat(61)} is nested too deep`,
    ),
  ],
  [
    'gives an object that is nested too deep',
    () => deep,
    'failed',
    failure(
      'handler_error',
      `the handler gave what is no JSON: data.x${'[0]'.repeat(60)} is nested too deep`,
    ),
  ],
  [
    'throws',
    () => {
      throw new Error('no such card')
    },
    'failed',
    failure('handler_error', 'no such card', 'hardware'),
  ],
  [
    'throws an error with causes',
    () => {
      const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })
      throw new Error('fetch failed', { cause: refused })
    },
    'failed',
    failure('handler_error', 'fetch failed: ECONNREFUSED', 'hardware'),
  ],
  [
    'throws an error that causes itself',
    () => {
      const error = new Error('again')
      error.cause = error
      throw error
    },
    'failed',
    failure('handler_error', 'again: again: again: again', 'hardware'),
  ],
  [
    'rejects with half a character',
    () => Promise.reject('\ud800'),
    'failed',
    failure('handler_error', '\ufffd', 'hardware'),
  ],
  [
    'throws undefined',
    () => {
      throw undefined
    },
    'failed',
    failure('handler_error', 'undefined', 'hardware'),
  ],
  [
    'is an async generator',
    async function* () {
      yield {}
    },
    'failed',
    failure('handler_error', 'the handler gave what is no JSON: data is no plain object'),
  ],
  [
    'changes the task that it got',
    (task) => {
      Object.assign(task, { node_id: 'x', obj_id: 'y', data_text: '{}' })
      Object.assign(task.data as object, { a: 9 })
    },
    'done',
    { a: 1 },
  ],
  [
    'gives an object whose getter throws',
    () => ({
      get x() {
        throw new Error('a trap')
      },
    }),
    'failed',
    failure('handler_error', 'a trap', 'hardware'),
  ],
  [
    'throws what cannot be printed',
    () => {
      throw not_text
    },
    'failed',
    failure('handler_error', 'the handler threw', 'hardware'),
  ],
]

for (const [kind, name, definition] of [
  ['a kind', 'db_call', by_kind],
  ['a title', 'Charge', by_title],
] as const) {
  for (const [what, handler, node_id, data] of rows) {
    test(`a handler of ${kind} ${what}`, async () => {
      const { engine } = await opened()
      engine.handle(name, handler, { attempts_max: 1 })
      await engine.processes.put(definition)
      const task = await atNode(engine, await created(engine), node_id)
      assert.deepEqual(task.data, { a: 1, ...data })
      assert.equal(task.status, 'processed')
      assert.deepEqual((await engine.check()).breaches, [])
      await engine.close()
    })
  }
}

test('a result over the size of a task fails and does not change the data', async () => {
  const { engine } = await opened(wide)
  engine.handle('Charge', () => ({ long: 'x'.repeat(100) }))
  await engine.processes.put(unguarded)
  const obj_id = await created(engine)
  await until(async () => (await taskOf(engine, obj_id)).status === 'failed')
  const { status_details, data } = await taskOf(engine, obj_id)
  assert.equal(status_details?.tag, 'handler_task_size_overflow')
  assert.deepEqual(data, { a: 1 })
  await engine.close()
})

test('a definition with a kind without a handler is refused, and a stored one always compiles', async () => {
  const { harness, engine } = await opened()
  for (const type of ['git_call', 'db_call', 'api_form']) {
    await assert.rejects(engine.processes.put(processWith([{ type }, go('done')])), {
      code: 'bad_definition',
      message: new RegExp(`logics\\[0\\] type "${type}" is not run here`),
    })
  }
  await assert.rejects(engine.processes.put(processWith([{ type: 'constructor' }, go('done')])), {
    message: /is no logic of this release/,
  })
  engine.handle('db_call', () => ({ b: 2 }))
  await engine.processes.put(by_kind)
  await engine.close()
  const next = await harness.open()
  const obj_id = await created(next)
  await turns(50)
  assert.equal((await taskOf(next, obj_id)).status, 'delayed', 'it waits for a handler')
  next.handle('db_call', () => ({ b: 3 }))
  assert.deepEqual((await atNode(next, obj_id, 'done')).data, { a: 1, b: 3 })
  await next.close()
})

test('a task that an import moves to a node that nothing runs or leads to fails there', async () => {
  const lost = (type: string, more: object = {}): object => ({
    obj_id: 1,
    scheme: {
      nodes: [
        { id: 'start', obj_type: 1, condition: { logics: [go('rest')] } },
        { id: 'rest', obj_type: 0, condition: { logics: [{ type: 'api_callback' }] } },
        { id: 'work', obj_type: 0, condition: { logics: [{ type, ...more }, go('done')] } },
        { id: 'done', ...end },
      ],
    },
  })
  const tag = '__conveyor_handler_return_type_tag__'
  for (const [type, more] of [
    ['git_call', {}],
    ['api_code', { lang: 'erl', src: '' }],
    ['x', { err_node_id: 'done' }],
  ] as const) {
    const { harness, engine } = await opened()
    const before = lost(type, more) as { scheme: { nodes: { id: string }[] } }
    await engine.processes.put(before)
    const obj_id = await created(engine)
    const nodes = before.scheme.nodes.filter(({ id }) => id !== 'rest')
    const start = { id: 'start', obj_type: 1, condition: { logics: [go('done')] } }
    const after = { ...before, scheme: { nodes: [start, ...nodes.slice(1)] } }
    await engine.processes.put(after, { moves: { rest: 'work' } })
    const settled = async (): Promise<boolean> =>
      (await taskOf(engine, obj_id)).status === 'failed' ||
      (await taskOf(engine, obj_id)).node_id === 'done'
    await until(settled)
    const task = await taskOf(engine, obj_id)
    if (type === 'x') assert.equal((task.data as Record<string, unknown>)[tag], 'handler_error')
    else assert.deepEqual(task.status_details?.tag, 'handler_error')
    if (type === 'git_call') {
      engine.handle('git_call', () => ({ b: 2 }))
      await engine.tasks.retry({ conv_id: 1, obj_id })
      assert.deepEqual((await atNode(engine, obj_id, 'done')).data, { a: 1, b: 2 })
    }
    await engine.close()
    const next = await harness.open()
    assert.equal((await next.create({ conv_id: 1, data: {} })).proc, 'ok', 'it compiles again')
    await next.close()
  }
})

test('a handler gets the tasks that came before it, and without one a modify resumes them', async () => {
  const { engine } = await opened()
  await engine.processes.put(by_title)
  const before = await created(engine, { a: 1 }, 'before')
  const forget = engine.handle('Charge', () => ({ handled: true }))
  assert.deepEqual((await atNode(engine, before, 'done')).data, { a: 1, handled: true })
  const behind = await created(engine, { a: 2 }, 'behind')
  assert.deepEqual((await atNode(engine, behind, 'done')).data, { a: 2, handled: true })
  forget()
  const late = await created(engine, { a: 3 }, 'late')
  await turns(20)
  assert.equal((await taskOf(engine, late)).node_id, 'work')
  assert.equal((await engine.modify({ conv_id: 1, ref: 'late', data: {} })).resumed, true)
  assert.equal((await taskOf(engine, late)).node_id, 'done')
  await engine.close()
})

test('a modify of a task that waits for a handler is merged only', async () => {
  const { engine } = await opened()
  let answer: (data: object) => void = () => {}
  engine.handle('Charge', () => new Promise<object>((resolve) => (answer = resolve)))
  await engine.processes.put(by_title)
  const obj_id = await created(engine, { a: 1 }, 'r')
  const data = { a: 2, b: 1 }
  for (const demand of [{ is_sync: true }, { node_id: 'work' }]) {
    const { proc, resumed } = await engine.modify({ conv_id: 1, ref: 'r', data, ...demand })
    assert.deepEqual([proc, resumed], ['no_api_callback_in_node_with_task', undefined])
  }
  const { proc, resumed } = await engine.modify({ conv_id: 1, ref: 'r', data })
  assert.deepEqual([proc, resumed], ['ok', false])
  assert.equal((await taskOf(engine, obj_id)).node_id, 'work')
  await until(() => answer.length === 1)
  answer({ b: 2 })
  assert.deepEqual((await atNode(engine, obj_id, 'done')).data, { a: 2, b: 2 })
  await engine.close()
})

test('attempts are repeated with backoff under one key, and the last failure is final', async () => {
  const { clock, engine } = await opened()
  const keys: string[] = []
  const times_ms: number[] = []
  engine.handle(
    'db_call',
    (_task, { key }) => {
      keys.push(key)
      times_ms.push(clock.now_ms())
      throw new Error(`try ${keys.length}`)
    },
    { attempts_max: 4 },
  )
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  for (let tries = 1; tries < 4; tries++) {
    await until(() => keys.length === tries)
    await turns(20)
    assert.equal(keys.length, tries, 'not before its time')
    clock.advance(1_000 * 2 ** (tries - 1))
  }
  const { data } = await atNode(engine, obj_id, 'failed')
  assert.equal(new Set(keys).size, 1)
  const waits_ms = times_ms.slice(1).map((at_ms, n) => at_ms - (times_ms[n] as number))
  assert.deepEqual(waits_ms, [1_000, 2_000, 4_000])
  assert.deepEqual(data, { a: 1, ...failure('handler_error', 'try 4', 'hardware') })
  await engine.close()
})

test('attempts_max Infinity: it is called until it answers', async () => {
  const { clock, engine } = await opened()
  let tries = 0
  const handler: Handler = () => {
    if (++tries < 12) throw new Error('not yet')
    return { tries }
  }
  engine.handle('db_call', handler, { attempts_max: Number.POSITIVE_INFINITY })
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  for (let n = 1; n < 12; n++) {
    await until(() => tries === n)
    await turns(20)
    clock.advance(300_000)
  }
  assert.deepEqual((await atNode(engine, obj_id, 'done')).data, { a: 1, tries: 12 })
  await engine.close()
})

test('each visit, and each logic of a node, has a key of its own', async () => {
  const { engine } = await opened()
  const keys: string[] = []
  const note: Handler = (_task, { key }) => {
    keys.push(key)
    return { rounds: keys.length }
  }
  engine.handle('db_call', note)
  engine.handle('git_call', note)
  const again = {
    type: 'go_if_const',
    to_node_id: 'work',
    conditions: [{ param: 'rounds', fun: 'less', const: '5', cast: 'number' }],
  }
  await engine.processes.put(
    processWith([{ type: 'db_call' }, { type: 'git_call' }, again, go('done')]),
  )
  await atNode(engine, await created(engine), 'done')
  assert.equal(keys.length, 6)
  assert.equal(new Set(keys).size, 6)
  await engine.close()
})

test('a handler that never answers is aborted at its time limit and tried again', async () => {
  const { clock, engine } = await opened()
  const signals: AbortSignal[] = []
  engine.handle(
    'db_call',
    (_task, { signal }) => {
      signals.push(signal)
      return signals.length === 1 ? new Promise(() => {}) : { b: 2 }
    },
    { time_ms_max: 5_000 },
  )
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  await until(() => signals.length === 1)
  clock.advance(4_999)
  assert.equal(signals[0]?.aborted, false)
  clock.advance(1)
  assert.equal(signals[0]?.aborted, true)
  await turns(20)
  clock.advance(1_000)
  await atNode(engine, obj_id, 'done')
  assert.equal(signals.length, 2)
  await engine.close()
})

test('a handler that never answers fails with handler_timeout after its last attempt', async () => {
  const { clock, engine } = await opened()
  let calls = 0
  const options = { time_ms_max: 5_000, attempts_max: 1 }
  engine.handle('db_call', () => new Promise(() => calls++), options)
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  await until(() => calls === 1)
  clock.advance(5_000)
  const { data } = await atNode(engine, obj_id, 'failed')
  const expected = failure('handler_timeout', 'no answer within 5000 ms', 'hardware')
  assert.deepEqual(data, { a: 1, ...expected })
  await engine.close()
})

test('without an err_node_id the task has failed in its node, and a retry calls again', async () => {
  const { engine } = await opened()
  let fails = true
  engine.handle('Charge', () => (fails ? 'x' : { b: 2 }))
  await engine.processes.put(unguarded)
  const obj_id = await created(engine)
  await until(async () => (await taskOf(engine, obj_id)).status === 'failed')
  const { node_id, status_details } = await taskOf(engine, obj_id)
  const description = 'the handler gave no object'
  assert.deepEqual(
    { node_id, status_details },
    {
      node_id: 'work',
      status_details: { tag: 'handler_error', description },
    },
  )
  fails = false
  assert.equal((await engine.tasks.retry({ conv_id: 1, obj_id })).proc, 'ok')
  assert.deepEqual((await atNode(engine, obj_id, 'done')).data, { a: 1, b: 2 })
  await engine.close()
})

test('a handler may use the engine, also on its own process', async () => {
  const { engine } = await opened()
  engine.handle(
    'Charge',
    async ({ obj_id, data }) => {
      const [own, other] = await engine.apply([
        { type: 'modify', obj: 'task', conv_id: 1, obj_id, data: { noted: true } },
        { type: 'create', obj: 'task', conv_id: 1, data: { child: true } },
      ])
      if ((data as { child?: true }).child) return {}
      return { own: own?.proc, other: other?.proc }
    },
    { threads_max: 1 },
  )
  await engine.processes.put(by_title)
  const task = await atNode(engine, await created(engine, {}), 'done')
  assert.deepEqual(task.data, { noted: true, own: 'ok', other: 'ok' })
  await engine.close()
})

test('no more calls at once than threads_max; a reached limit and a missing handler delay no other job', async () => {
  const { engine } = await opened({ limits: { jobs_max: 8 } })
  const answers: (() => void)[] = []
  let most = 0
  let now = 0
  engine.handle(
    'db_call',
    async () => {
      most = Math.max(most, ++now)
      await new Promise<void>((resolve) => answers.push(resolve))
      now--
    },
    { threads_max: 2 },
  )
  engine.handle('Charge', () => ({ b: 2 }))
  await engine.processes.put(by_kind)
  await engine.processes.put({ ...by_title, obj_id: 2 })
  const forget = engine.handle('git_call', () => {})
  await engine.processes.put({ ...processWith([{ type: 'git_call' }, go('done')]), obj_id: 3 })
  forget()
  const unhandled = Array.from({ length: 300 }, () => ({
    type: 'create',
    obj: 'task',
    conv_id: 3,
    data: {},
  }))
  await engine.apply(unhandled)
  const slow = await Promise.all(Array.from({ length: 600 }, () => created(engine)))
  await until(() => answers.length === 2)
  const quick = await engine.create({ conv_id: 2, ref: 'q', data: {} })
  await until(async () => {
    const task = await engine.task({ conv_id: 2, obj_id: quick.obj_id as string })
    return task?.status === 'processed'
  })
  for (let done = 0; done < slow.length; done++) {
    await until(() => answers.length > done)
    answers[done]?.()
  }
  await atNode(engine, slow.at(-1) as string, 'done')
  for (const obj_id of slow) await atNode(engine, obj_id, 'done')
  assert.equal(most, 2)
  await engine.close()
})

test('more jobs than memory holds delay no other job either, and each is done once', async () => {
  const { engine } = await opened({ limits: { jobs_max: 2 } })
  const called = new Set<string>()
  let letGo = (): void => {}
  const let_go = new Promise<void>((resolve) => {
    letGo = resolve
  })
  let calls = 0
  engine.handle(
    'db_call',
    async ({ obj_id }) => {
      calls++
      called.add(obj_id)
      await let_go
    },
    { threads_max: 1 },
  )
  engine.handle('Charge', () => ({ b: 2 }))
  await engine.processes.put(by_kind)
  await engine.processes.put({ ...by_title, obj_id: 2 })
  const create = { type: 'create', obj: 'task', conv_id: 1, data: {} }
  await engine.apply(Array(600).fill(create))
  await atNode(engine, await created(engine, {}, 'quick', 2), 'done', 2)
  assert.equal(calls, 1)
  letGo()
  await until(async () => (await engine.tasks.count({ conv_id: 1, status: 'live' })).total === 0)
  assert.deepEqual([calls, called.size], [600, 600])
  await engine.close()
})

test('closing aborts handlers, and the job starts again under its key after the next opening', async () => {
  const { harness, engine } = await opened()
  const keys: string[] = []
  const aborted: unknown[] = []
  const never: Handler = (_task, { signal, key }) => {
    keys.push(key)
    signal.addEventListener('abort', () => aborted.push(key))
    return new Promise(() => {})
  }
  engine.handle('db_call', never)
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  await until(() => keys.length === 1)
  await engine.close()
  assert.deepEqual(aborted, keys)
  const next = await harness.open()
  assert.equal((await taskOf(next, obj_id)).status, 'delayed')
  next.handle('db_call', (_task, { key }) => ({ key }))
  const task = await atNode(next, obj_id, 'done')
  assert.deepEqual(task.data, { a: 1, key: keys[0] })
  await next.close()
})

test('the outcome of a handler waits for a paused process, and is dropped for a canceled task', async () => {
  const { engine } = await opened()
  const answers: (() => void)[] = []
  engine.handle(
    'db_call',
    () => new Promise<object>((resolve) => answers.push(() => resolve({ b: 2 }))),
  )
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  const canceled = await created(engine)
  await until(() => answers.length === 2)
  await engine.processes.pause(1)
  await engine.tasks.cancel({ conv_id: 1, obj_id: canceled })
  for (const answer of answers) answer()
  await turns(20)
  assert.deepEqual((await taskOf(engine, obj_id)).data, { a: 1 })
  await engine.processes.resume(1)
  assert.deepEqual((await atNode(engine, obj_id, 'done')).data, { a: 1, b: 2 })
  const { status, data } = await taskOf(engine, canceled)
  assert.deepEqual({ status, data }, { status: 'canceled', data: { a: 1 } })
  assert.equal(answers.length, 2)
  await engine.close()
})

test('a timer of the node moves a task that waits for its handler', async () => {
  const { clock, engine } = await opened()
  let calls = 0
  engine.handle('Charge', () => new Promise(() => calls++))
  const semaphors = [{ type: 'time', value: 30, dimension: 'sec', to_node_id: 'failed' }]
  await engine.processes.put(processWith([{ type: 'api_callback' }, go('done')], { semaphors }))
  const obj_id = await created(engine)
  await until(() => calls === 1)
  clock.advance(30_000)
  assert.equal((await atNode(engine, obj_id, 'failed')).status, 'processed')
  await engine.close()
})

test('after a new definition without the logic its tasks run their node again', async () => {
  const { harness, engine } = await opened()
  engine.handle('db_call', () => new Promise(() => {}))
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  await engine.close()
  const next = await harness.open()
  await next.processes.put(processWith([go('done')]))
  assert.deepEqual((await atNode(next, obj_id, 'done')).data, { a: 1 })
  await next.close()
})

test('options that are no number above 0 are refused', async () => {
  const { harness, engine } = await opened()
  const bad: HandlerOptions[] = [
    { threads_max: 0 },
    { time_ms_max: -1 },
    { attempts_max: 1.5 },
    { threads_max: Number.NaN },
    { threads_max: Number.POSITIVE_INFINITY },
    { backoff_ms: 0 },
    { attempt_max: 3 } as HandlerOptions,
  ]
  for (const options of bad) {
    assert.throws(() => engine.handle('db_call', () => {}, options), RangeError)
    const handlers = { db_call: { handler: () => {}, ...options } }
    await assert.rejects(harness.open({ handlers }), RangeError)
  }
  assert.throws(() => engine.handle('', () => {}), RangeError)
  assert.throws(() => engine.handle('x', 1 as unknown as Handler), TypeError)
  await engine.close()
})

test('a failed attempt is told with the task and the attempt, the last one as an error', async () => {
  const logger = linesLogger()
  const { clock, engine } = await opened({ logger, variables: { card: { key: 'top secret' } } })
  let tries = 0
  const options = { attempts_max: 2, backoff_ms: 50 }
  engine.handle(
    '1/db_call',
    () => {
      throw new Error(`try ${++tries} with top secret ${'x'.repeat(300)}`)
    },
    options,
  )
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  await until(() => logger.lines.length === 1)
  await turns(20)
  clock.advance(50)
  await atNode(engine, obj_id, 'failed')
  const told = {
    event: 'handler_repeats',
    conv_id: '1',
    obj_id,
    node_id: 'work',
    handler: '1/db_call',
    code: 'handler_error',
  }
  const error = (n: number) => `try ${n} with *** ${'x'.repeat(300)}`.slice(0, 200)
  const { thrown_in = '' } = { ...(logger.lines[0]?.[1] as { thrown_in?: string }) }
  assert.match(thrown_in, /handlers\.test\.[jt]s:\d+:\d+/)
  assert.deepEqual(logger.lines, [
    ['warn', { ...told, attempt: 1, attempts_max: 2, error: error(1), thrown_in }],
    [
      'error',
      {
        ...{ ...told, event: 'handler_failed', attempt: 2, attempts_max: 2 },
        ...{ error: error(2), thrown_in },
      },
    ],
  ])
  await engine.close()
})

test('a handler for which no node waits is named where the process is stored, and told', async () => {
  const logger = linesLogger()
  const { engine } = await opened({ logger })
  engine.handle('1/Chrage', () => {})
  engine.handle('@shop/Refund', () => {})
  engine.handle('Charge', () => {})
  /** [the title of the node, warnings, the handlers of the nodes] */
  const rows: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['Charge', ['1/Chrage'], ['Charge']],
    ['Charge', ['1/Chrage', '@shop/Refund'], ['Charge']],
    ['Chrage', ['@shop/Refund', 'Charge'], ['1/Chrage']],
    ['Refund', ['1/Chrage'], ['@shop/Refund']],
  ]
  for (const [title, idle, used] of rows) {
    logger.lines.length = 0
    const { warnings } = await engine.processes.put(processWith(waiting, {}, { title }))
    const told = warnings.filter((text) => !text.includes('nothing leads'))
    assert.deepEqual(
      told,
      idle.map((name) => `no node waits for the handler "${name}"`),
    )
    const { nodes } = await engine.processes.show(1)
    assert.deepEqual(
      nodes.flatMap(({ handler }) => handler ?? []),
      used,
    )
    assert.deepEqual(
      logger.lines,
      idle.map((handler) => ['warn', { event: 'handler_unused', conv_id: '1', handler }]),
    )
    await engine.processes.setAlias('shop', 1)
  }
  await engine.close()
})

test('a logger that throws costs nothing', async () => {
  const trap = (): never => {
    throw new Error('no room for lines')
  }
  const logger = { debug: trap, info: trap, warn: trap, error: trap }
  const { engine } = await opened({ logger })
  engine.handle('db_call', () => 'x')
  await engine.processes.put(by_kind)
  await atNode(engine, await created(engine), 'failed')
  await engine.close()
})
