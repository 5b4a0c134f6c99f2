/**
 * The client over both transports against a real engine: the same rows, the same results. Failures
 * of servers are in client-trouble.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  type BatchResult,
  type Client,
  type ClientOp,
  type ClientResult,
  connect,
  isClientFault,
  rawJson,
} from '../src/client.ts'
import { tempFolder } from './support/cli-run.ts'
import { type ClientServers, openClientServers, transports } from './support/client-servers.ts'
import { conv_id } from './support/http-server.ts'
import { pick } from './support/pick.ts'
import { turns } from './support/store-trees.ts'

const folder = tempFolder()
let servers: ClientServers
before(async () => {
  servers = await openClientServers(folder.path)
})
after(async () => {
  await servers.close()
  folder.remove()
})

/** A result without what differs from run to run. */
function seen({ obj_id, task, ...result }: ClientResult): object {
  return {
    ...result,
    has_obj_id: obj_id !== undefined,
    ...(task === undefined ? {} : { data: task.data_text, status: task.status }),
  }
}

const ok = { proc: 'ok', has_obj_id: true }

test('over HTTP it can sign in headers, and says how it may sign', async () => {
  const { url, user, secret } = servers.targets.http
  const client = await connect({ url, user, secret, sign: 'hmac' })
  await servers.engine.users.sign(user, 'hmac')
  assert.equal((await client.create({ conv_id, ref: 'hmac', data: {} })).proc, 'ok')
  const refused = servers.clients.http.create({ conv_id, data: {} })
  await assert.rejects(refused, { code: 'bad_signature' })
  await servers.engine.users.sign(user, 'both')
  await client.close()
  const wrong = connect({ url, user, secret, sign: 'none' as 'path' })
  await assert.rejects(wrong, TypeError)
})

/** [what, ops, the results as seen]; `REF` stands for a ref of the row's own. */
const rows: readonly (readonly [string, readonly ClientOp[], readonly object[]])[] = [
  [
    'create, the same again, modify, and it is gone',
    [
      { type: 'create', conv_id, ref: 'REF', data: { a: 1 } },
      { type: 'create', conv_id, ref: 'REF', data: { a: 1 }, id: 'x' },
      { type: 'modify', conv_id: Number(conv_id), ref: 'REF', data: {} },
      { type: 'modify', conv_id, ref: 'REF', data: {} },
    ],
    [
      { ref: 'REF', ...ok },
      { id: 'x', ref: 'REF', ...ok },
      { ref: 'REF', ...ok },
      { ref: 'REF', proc: 'not_found_task', description: 'not found task', has_obj_id: false },
    ],
  ],
  [
    'a clash names the holder',
    [
      { type: 'create', conv_id, ref: 'REF', data: { a: 1 } },
      { type: 'create', conv_id, ref: 'REF', data: { a: 2 } },
    ],
    [
      { ref: 'REF', ...ok },
      { ref: 'REF', proc: 'not_unical_ref', description: 'not unical reference', has_obj_id: true },
    ],
  ],
  [
    'numbers keep their digits, and odd keys are keys',
    [
      {
        type: 'create',
        conv_id,
        ref: 'REF',
        data: rawJson('{"a":1.10,"b":12345678901234567890,"__proto__":{"c":-0}}'),
      },
      { type: 'show', conv_id, ref: 'REF' },
    ],
    [
      { ref: 'REF', ...ok },
      {
        ref: 'REF',
        ...ok,
        data: '{"a":1.10,"b":12345678901234567890,"__proto__":{"c":-0}}',
        status: 'delayed',
      },
    ],
  ],
  [
    'a Date is its JSON text',
    [
      { type: 'create', conv_id, ref: 'REF', data: { at: new Date(0) } },
      { type: 'show', conv_id, ref: 'REF' },
    ],
    [
      { ref: 'REF', ...ok },
      { ref: 'REF', ...ok, data: '{"at":"1970-01-01T00:00:00.000Z"}', status: 'delayed' },
    ],
  ],
  [
    'no ref, a ref that is a number, an empty array for data',
    [
      { type: 'create', conv_id, data: [] },
      { type: 'create', conv_id, ref: null, data: { n: 10n } },
    ],
    [
      { ref: null, ...ok },
      { ref: null, ...ok },
    ],
  ],
  [
    'is_sync and node_id hold back a late repeat',
    [
      { type: 'create', conv_id, ref: 'REF', data: {} },
      { type: 'modify', conv_id, ref: 'REF', data: {}, node_id: 'start' },
      { type: 'modify', conv_id, ref: 'REF', data: {}, is_sync: true, node_id: 'wait' },
    ],
    [
      { ref: 'REF', ...ok },
      {
        ref: 'REF',
        proc: 'no_api_callback_in_node_with_task',
        description: 'no api callback logic in node with task',
        has_obj_id: true,
      },
      { ref: 'REF', ...ok },
    ],
  ],
]

for (const transport of transports) {
  describe(`over ${transport}`, () => {
    let client: Client
    before(() => {
      client = servers.clients[transport]
    })

    for (const [at, [what, ops, expected]] of rows.entries()) {
      test(what, async () => {
        const ref = `${transport}-${at}`
        const named = ops.map((op) => (op.ref === 'REF' ? { ...op, ref } : op))
        const results = await client.apply(named)
        const wanted = expected.map((one) => ('ref' in one && one.ref ? { ...one, ref } : one))
        assert.deepEqual(results.map(seen), wanted)
      })
    }

    test('create, task, modify by obj_id, and the ended task by obj_id and by ref', async () => {
      const made = await client.create({ conv_id, ref: `${transport}-one`, data: { amount: 120 } })
      assert.equal(made.proc, 'ok', made.description)
      const obj_id = made.obj_id as string
      const task = await client.task({ conv_id, ref: `${transport}-one` })
      assert.equal(task?.obj_id, obj_id)
      assert.equal(task?.conv_id, conv_id)
      assert.equal(task?.user_id, '13000')
      assert.equal(task?.node_id, 'wait')
      assert.equal(task?.node_prev_id, 'start')
      assert.deepEqual(task?.data, { amount: 120 })
      const stored = await servers.engine.task({ conv_id, obj_id })
      assert.equal(Math.floor(task.create_time_ms / 1000), seconds(stored?.create_time_ms))
      const done = await client.modify({ conv_id, obj_id, data: { paid: true } })
      assert.deepEqual([done.proc, done.obj_id], ['ok', obj_id])
      const ended = await client.task({ conv_id, obj_id })
      assert.deepEqual(await client.task({ conv_id, ref: `${transport}-one` }), ended)
      assert.deepEqual(
        [ended?.status, ended?.data_text],
        ['processed', '{"amount":120,"paid":true}'],
      )
    })

    test('the result of a task, which ends while somebody waits or has ended before', async () => {
      const ref = `${transport}-result`
      const { obj_id } = await client.create({ conv_id, ref, data: { n: 1 } })
      const wait = client.result({ conv_id, ref }, { timeout_ms: 60_000 })
      await client.task({ conv_id, ref })
      await client.modify({ conv_id, ref, data: { n: 2 } })
      for (const task of [await wait, await client.result({ conv_id, obj_id: obj_id as string })]) {
        assert.deepEqual([task.obj_id, task.status, task.data], [obj_id, 'processed', { n: 2 }])
      }
    })

    test('a wait for a result ends by its time, its signal, or as it is refused', async () => {
      const ref = `${transport}-waits`
      await client.create({ conv_id, ref, data: {} })
      const reason = new Error('enough')
      const abort = new AbortController()
      const late = client.result({ conv_id, ref }, { timeout_ms: 150 })
      const left = client.result({ conv_id, ref }, { signal: abort.signal })
      const ends = [assert.rejects(left, reason), assert.rejects(late, { code: 'result_timeout' })]
      await client.task({ conv_id, ref })
      abort.abort(reason)
      await Promise.all(ends)
      await assert.rejects(client.result({ conv_id, ref: 'none' }), { code: 'not_found_task' })
      await assert.rejects(client.result({ conv_id: 404, ref }), { code: 'access_denied' })
    })

    test('lists, page by page, which HTTP does not have', async () => {
      const refs = [1, 2, 3].map((n) => `${transport}-list-${n}`)
      for (const ref of refs) await client.create({ conv_id, ref, data: { n: ref } })
      const query = { conv_id, ref_prefix: `${transport}-list-`, limit: 2 }
      if (transport === 'http') return assert.rejects(client.list(query), { code: 'not_found' })
      const { tasks, cursor, scanned, sorted_by } = await client.list(query)
      assert.deepEqual(
        [tasks.map(({ ref }) => ref), scanned, sorted_by],
        [refs.slice(0, 2), 2, 'ref'],
      )
      const rest = await client.list({ ...query, cursor: cursor as string })
      assert.deepEqual(
        [rest.tasks.map(({ data }) => data), rest.cursor],
        [[{ n: refs[2] }], undefined],
      )
      const found = await client.list({ where: { n: { eq: refs[1] } } })
      assert.deepEqual(pick(found.tasks, 'ref'), [refs[1]])
      const { total, by_status, rows } = await client.count({ conv_id, status: 'live' })
      assert.deepEqual(Object.keys(by_status), ['processing', 'delayed', 'failed'])
      assert.ok(total >= 3 && rows.some(({ node_id }) => node_id === 'wait'))
      await assert.rejects(client.list({ status: 'lost' as 'live' }), { code: 'bad_filter' })
      await assert.rejects(client.list({ statuz: 'live' } as object), { code: 'bad_filter' })
      await assert.rejects(client.list({ conv_id: 404 }), { code: 'access_denied' })
    })

    test('a task with its history, which HTTP does not have', async () => {
      const ref = `${transport}-history`
      const target = { conv_id, ref }
      await client.create({ ...target, data: {} })
      const calls = [
        client.task(target, { history: true }),
        client.result(target, { history: true }),
      ]
      if (transport === 'http') {
        for (const call of calls) await assert.rejects(call, { code: 'not_found' })
        return
      }
      await client.cancel(target)
      const tasks = await Promise.all(calls)
      const whys = tasks.map((task) => task?.history?.map(({ why, by }) => [why, by]))
      assert.deepEqual(whys[1]?.slice(0, 2), whys[0])
      assert.deepEqual(whys[1], [
        ['create', '13000'],
        ['go', undefined],
        ['cancel', '13000'],
      ])
      assert.equal(await client.task({ conv_id, ref: 'none' }, { history: true }), undefined)
    })

    test('cancel and retry, which HTTP does not have', async () => {
      const ref = `${transport}-cancel`
      const { obj_id } = await client.create({ conv_id, ref, data: {} })
      const calls = [
        () => client.retry({ conv_id, ref }),
        () => client.cancel({ conv_id, ref }),
        () => client.cancel({ conv_id, ref }),
      ]
      if (transport === 'http') {
        for (const call of calls) await assert.rejects(call(), { code: 'not_found' })
        return
      }
      const results: object[] = []
      for (const call of calls) {
        const { task, ...result } = await call()
        results.push(task === undefined ? result : { ...result, task: task.status })
      }
      assert.deepEqual(results, [
        { ref, proc: 'error', description: 'the task has not failed' },
        { ref, obj_id, proc: 'ok', was: { status: 'delayed', node_id: 'wait' }, task: 'canceled' },
        { ref, proc: 'not_found_task', description: 'not found task' },
      ])
    })

    test('a task that may not be read rejects with the code of the op', async () => {
      await assert.rejects(client.task({ conv_id: 404, ref: 'x' }), {
        code: 'access_denied',
        outcome: 'not_applied',
      })
    })

    /** [ops, code] */
    const refusals: readonly (readonly [readonly ClientOp[], string])[] = [
      [[], 'format_error'],
      [
        Array.from({ length: 1_001 }, () => ({ type: 'show', conv_id, ref: 'x' }) as const),
        'too_many_ops',
      ],
    ]
    for (const [ops, code] of refusals) {
      test(`${ops.length} ops reject with ${code}`, async () => {
        await assert.rejects(client.apply(ops), (error) => {
          assert.ok(isClientFault(error))
          assert.deepEqual([error.code, error.outcome], [code, 'not_applied'])
          return true
        })
      })
    }

    /** [op, member]: what no message can carry. */
    const mistakes: readonly (readonly [object, RegExp])[] = [
      [{ conv_id, data: undefined }, /data/],
      [{ conv_id, data: { f: () => 1 } }, /data\.f is a function/],
      [{ conv_id, data: { n: Number.NaN } }, /data\.n is NaN/],
      [{ conv_id: {}, data: {} }, /conv_id/],
      [{ conv_id, ref: '\ud800', data: {} }, /ref/],
    ]
    for (const [op, says] of mistakes) {
      test(`a TypeError for ${says.source}`, async () => {
        await assert.rejects(client.create(op as never), { name: 'TypeError', message: says })
      })
    }

    test('a stream answers in order, with a refused batch among others', async () => {
      const too_many = Array.from(
        { length: 1_001 },
        () => ({ type: 'create', conv_id, data: {} }) as const,
      )
      const batches = Array.from({ length: 40 }, (_, n): readonly ClientOp[] =>
        n === 20
          ? too_many
          : [
              { type: 'create', conv_id, ref: `${transport}-s${n}`, data: { n } },
              { type: 'modify', conv_id, ref: `${transport}-s${n}`, data: {}, id: String(n) },
            ],
      )
      const answers = await collect(client.stream(batches))
      const expected = batches.map((_, n) =>
        n === 20
          ? ['too_many_ops']
          : ['ok', [`${transport}-s${n}`, 'ok'], [`${transport}-s${n}`, 'ok']],
      )
      const found = answers.map(({ proc, results }) => [
        proc,
        ...results.map((result) => [result.ref, result.proc]),
      ])
      assert.deepEqual(found, expected)
    })

    test('a source that waits for each answer gets it', async () => {
      let onAnswer: (answer: BatchResult) => void = () => {}
      const procs: string[] = []
      async function* source(): AsyncGenerator<ClientOp[]> {
        for (let n = 0; n < 5; n++) {
          const answered = new Promise<BatchResult>((resolve) => {
            onAnswer = resolve
          })
          yield [{ type: 'create', conv_id, data: { n } }]
          procs.push((await answered).proc)
        }
      }
      for await (const answer of client.stream(source())) onAnswer(answer)
      assert.deepEqual(procs, ['ok', 'ok', 'ok', 'ok', 'ok'])
    })

    test('a reader that stops reading stops the source, and ends it by leaving', async () => {
      let taken = 0
      let ended = false
      function* source(): Generator<ClientOp[]> {
        try {
          for (;;) {
            taken++
            yield [{ type: 'create', conv_id, data: {} }]
          }
        } finally {
          ended = true
        }
      }
      const stream = client.stream(source())
      await stream.next()
      while (taken <= 1) await turns(1)
      await new Promise((resolve) => setTimeout(resolve, 150))
      assert.ok(taken > 1 && taken <= 12, `${taken} batches taken`)
      await stream.return()
      assert.ok(ended)
    })

    test("a source's own throw ends the stream with it, behind the answers", async () => {
      const wrong = new Error('out of batches')
      function* source(): Generator<ClientOp[]> {
        yield [{ type: 'create', conv_id, data: {} }]
        throw wrong
      }
      const answers: string[] = []
      await assert.rejects(async () => {
        for await (const { proc } of client.stream(source())) answers.push(proc)
      }, wrong)
      assert.deepEqual(answers, ['ok'])
    })

    test('an AbortSignal ends a call and a stream with its reason', async () => {
      const reason = new Error('enough')
      const aborted = AbortSignal.abort(reason)
      await assert.rejects(client.create({ conv_id, data: {} }, { signal: aborted }), reason)
      const abort = new AbortController()
      async function* silent(): AsyncGenerator<ClientOp[]> {
        yield [{ type: 'create', conv_id, data: {} }]
        await new Promise(() => {})
      }
      await assert.rejects(async () => {
        for await (const _answer of client.stream(silent(), { signal: abort.signal })) {
          setImmediate(() => abort.abort(reason))
        }
      }, reason)
    })

    test('fifty calls at once share one signal and a few connections, without a warning', async () => {
      const warnings: string[] = []
      const note = (warning: Error): void => void warnings.push(warning.message)
      process.on('warning', note)
      const { signal } = new AbortController()
      const calls = Array.from({ length: 50 }, (_, n) =>
        client.create({ conv_id, ref: `${transport}-many-${n}`, data: {} }, { signal }),
      )
      const results = await Promise.all(calls)
      assert.equal(new Set(results.map(({ obj_id }) => obj_id)).size, 50)
      assert.ok(results.every(({ proc }) => proc === 'ok'))
      await new Promise((resolve) => setImmediate(resolve))
      process.off('warning', note)
      assert.deepEqual(warnings, [])
    })

    test('a removed user is refused from the next call on', async () => {
      const other = await openClientServers(`${folder.path}/${transport}`)
      const caller = other.clients[transport]
      assert.equal((await caller.create({ conv_id, data: {} })).proc, 'ok')
      await other.engine.users.remove('13000')
      await assert.rejects(caller.create({ conv_id, data: {} }), (error) => {
        assert.ok(isClientFault(error), String(error))
        assert.ok(['bad_signature', 'access_denied'].includes(error.code), error.code)
        assert.equal(error.outcome, 'not_applied')
        return true
      })
      await other.close()
    })
  })
}

/** [options, what is wrong] */
const senseless: readonly (readonly [object, RegExp])[] = [
  [{ url: 'localhost:8080', user: 1, secret: 's' }, /url/],
  [{ url: 'http://h', user: 'ann', secret: 's' }, /user/],
  [{ url: 'http://h', user: 1, secret: '' }, /secret/],
  [{ url: 'https://h', user: 1, secret: 's', ca: Buffer.from('none') }, /ca holds no PEM/],
  [{ address: 'h', ca: 'x', cert: 'x', key: 'x' }, /address h is no HOST:PORT/],
  [{ address: 'http://h:1', ca: 'x', cert: 'x', key: 'x' }, /address http:\/\/h:1 is no HOST:PORT/],
  [
    { address: ['h:1', 'h:70000'], ca: 'x', cert: 'x', key: 'x' },
    /address h:70000 is no HOST:PORT/,
  ],
  [{ address: ['h:1', 'H:1'], ca: 'x', cert: 'x', key: 'x' }, /address has H:1 twice/],
  [{ address: [], ca: 'x', cert: 'x', key: 'x' }, /address is an empty list: give at least one/],
  [
    { address: ['h:1', 7], ca: 'x', cert: 'x', key: 'x' },
    /address is no text, nor a list of texts/,
  ],
  [
    { url: ['http://h', '127.0.0.1:9090'], user: 1, secret: 's' },
    /url 127.0.0.1:9090 is no address such/,
  ],
  [{ url: ['http://h', 'http://h/'], user: 1, secret: 's' }, /url has http:\/\/h\/ twice/],
  [{ url: [], user: 1, secret: 's' }, /url is an empty list: give at least one/],
  [{ url: 'http://h', address: 'h:1', user: 1, secret: 's' }, /give one of the two/],
  [{ user: 1, secret: 's' }, /address is no text, nor a list of texts/],
  [{ address: 'h:1', ca: '/no/such/file', cert: 'x', key: 'x' }, /no such file/],
]
for (const [options, says] of senseless) {
  test(`connect refuses ${says.source}`, async () => {
    await assert.rejects(connect(options as never), says)
  })
}

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const value of values) all.push(value)
  return all
}

function seconds(time_ms: number | undefined): number {
  return Math.floor((time_ms as number) / 1000)
}
