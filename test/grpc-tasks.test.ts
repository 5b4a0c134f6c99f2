/**
 * The rpcs that wait for a task, cancel it and retry it: what they answer, whom they refuse, and
 * what ends a call that waits.
 */

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import {
  Metadata,
  type ServerInterceptingCallInterface,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { nextTurn } from '../src/core/clock.ts'
import { type LimitName, limitsWith } from '../src/core/limits.ts'
import { listenerFor, type ServerContext } from '../src/server/grpc/call.ts'
import { newReception } from '../src/server/grpc/receive-bounds.ts'
import { loadSchema } from '../src/server/grpc/schema.ts'
import { answers_a_turn, newAnswerTurns } from '../src/server/grpc/sent-answers.ts'
import { newUnderway } from '../src/server/http/underway.ts'
import type { TestClient } from './support/grpc-client.ts'
import { openGrpc, type TestGrpc, waitEnds } from './support/grpc-server.ts'
import { user } from './support/http-server.ts'
import { go } from './support/processes.ts'

/** A task waits in `wait`, and fails in `loop`, to which `to` sends it. */
const definition = {
  obj_id: 'p',
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [go('wait')] } },
      {
        ...{ id: 'wait', obj_type: 0 },
        condition: {
          logics: [
            { type: 'api_callback' },
            {
              ...{ type: 'go_if_const', to_node_id: 'loop' },
              conditions: [{ param: 'to', const: 'loop', fun: 'eq', cast: 'string' }],
            },
            go('end'),
          ],
        },
      },
      { id: 'loop', obj_type: 0, condition: { logics: [go('loop')] } },
      { id: 'end', obj_type: 2 },
    ],
  },
}
const { service } = loadSchema()
const bound = 'uri:conveyor:test'
const conv_id = 'p'

interface Stage extends TestGrpc {
  readonly caller: TestClient
}

async function open(limits: Partial<Record<LimitName, number>> = {}): Promise<Stage> {
  const server = await openGrpc({ limits: { moves_without_rest_max: 5, ...limits } })
  await server.engine.processes.put(definition)
  return { ...server, caller: server.connect() }
}

/** `OK`, or the status and the code of the failure. */
async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'OK'
  } catch (error) {
    const { code, details } = error as ServiceError
    return `${status[code]} ${details.split(':')[0]}`
  }
}

describe('a task', () => {
  let stage: Stage
  let obj_id: string
  before(async () => {
    stage = await open()
  })
  beforeEach(async () => {
    await stage.engine.tasks.cancel({ conv_id, ref: 'r' })
    const made = await stage.engine.create({ conv_id, ref: 'r', data: { a: 1 } })
    obj_id = made.obj_id as string
  })
  after(async () => {
    await stage.close()
    assert.deepEqual(stage.bugs, [])
  })
  const modify = (data: object): Promise<unknown> =>
    stage.engine.modify({ conv_id, ref: 'r', data })

  test('is waited for until it ends, also where its end keeps nothing', async () => {
    const waits = [{ ref: 'r' }, { obj_id }].map((target) =>
      stage.caller.call('WaitTask', { conv_id, ...target }),
    )
    // Each has arrived when a later call of the same connection is answered.
    await stage.caller.call('GetTask', { conv_id, obj_id })
    await modify({ b: 2 })
    for (const { task } of await Promise.all(waits)) {
      assert.deepEqual([task?.obj_id, task?.status], [obj_id, 'processed'])
      assert.equal(task?.data_json.toString(), '{"a":1,"b":2}')
    }
    const gone = stage.caller.call('WaitTask', { conv_id, obj_id })
    assert.equal(await outcome(gone), 'NOT_FOUND not_found_task')
  })

  test('that has failed is answered at once with the reason, and retried from any node', async () => {
    await modify({ to: 'loop' })
    const { task } = await stage.caller.call('WaitTask', { conv_id, ref: 'r' })
    assert.equal(task?.status, 'failed')
    assert.equal(task?.status_details?.tag, 'loop')
    const again = await stage.caller.call('RetryTask', { conv_id, ref: 'r' })
    assert.deepEqual([again.ref, again.obj_id, again.task?.status], ['r', obj_id, 'failed'])
    assert.deepEqual([again.was_status, again.was_node_id], ['failed', 'loop'])
    assert.equal((await stage.engine.task({ conv_id, obj_id }))?.status, 'failed')
    await stage.caller.call('RetryTask', { conv_id, obj_id, node_id: 'wait' })
    assert.equal((await stage.engine.task({ conv_id, obj_id }))?.status, 'delayed')
  })

  test('is canceled, and who waits is told', async () => {
    const wait = stage.caller.call('WaitTask', { conv_id, ref: 'r' })
    const answer = await stage.caller.call('CancelTask', { conv_id, ref: 'r' })
    assert.deepEqual([answer.ref, answer.obj_id, answer.task?.status], ['r', obj_id, 'canceled'])
    assert.deepEqual([answer.was_status, answer.was_node_id], ['delayed', 'wait'])
    assert.equal((await wait).task?.status, 'canceled')
  })

  test('has its history where that is asked for, in an answer of its own', async () => {
    await modify({ to: 'loop' })
    const target = { conv_id, obj_id }
    const whys: string[] = []
    for (const name of ['GetTask', 'WaitTask'] as const) {
      assert.deepEqual((await stage.caller.call(name, target)).task?.history, [])
      const { task } = await stage.caller.call(name, { ...target, with_history: true })
      whys.push((task?.history ?? []).map(({ why }) => why).join(' '))
      assert.deepEqual([task?.history[0]?.node_id, task?.history.at(-1)?.tag], ['start', 'loop'])
      assert.equal(task?.history[0]?.at_ms, task?.create_time_ms)
    }
    const [first, second] = whys
    assert.match(first as string, /^create go callback (go )+fail$/)
    assert.equal(second, first)
    const { results } = await stage.caller.apply([{ show: { ...target, with_history: true } }])
    assert.deepEqual(results[0]?.task?.history, [])
  })

  type Name = 'WaitTask' | 'CancelTask' | 'RetryTask'
  const all: readonly Name[] = ['WaitTask', 'CancelTask', 'RetryTask']
  /** [what, the rpcs, the request, the outcome] */
  const refusals: readonly (readonly [string, readonly Name[], object, string])[] = [
    ['no conv_id', all, { ref: 'r' }, 'INVALID_ARGUMENT error'],
    ['no target', all, { conv_id }, 'INVALID_ARGUMENT error'],
    ['an empty ref', all, { conv_id, ref: '' }, 'INVALID_ARGUMENT error'],
    ['no such task', all, { conv_id, ref: 'x' }, 'NOT_FOUND not_found_task'],
    ['no such process', all, { conv_id: 'x', ref: 'r' }, 'NOT_FOUND conv_not_found'],
    ['a task that has not failed', ['RetryTask'], { conv_id, ref: 'r' }, 'INVALID_ARGUMENT error'],
    [
      'a node id that is too long',
      ['RetryTask'],
      { conv_id, ref: 'r', node_id: 'x'.repeat(65) },
      'INVALID_ARGUMENT error',
    ],
  ]
  for (const [what, names, request, wanted] of refusals) {
    for (const name of names) {
      test(`${name}, ${what}: ${wanted}`, async () => {
        assert.equal(await outcome(stage.caller.call(name, request)), wanted)
      })
    }
  }

  test('a user needs show to wait, also when the task ends, and modify to change it', async () => {
    await stage.engine.users.bind(user, bound)
    const tried = (name: Name): Promise<string> =>
      outcome(stage.caller.call(name, { conv_id, ref: 'r' }))
    for (const name of all) assert.equal(await tried(name), 'PERMISSION_DENIED access_denied')
    await stage.engine.processes.share(conv_id, user, ['show'])
    const wait = tried('WaitTask')
    assert.equal(await tried('CancelTask'), 'PERMISSION_DENIED access_denied')
    await stage.engine.processes.share(conv_id, user, ['modify'])
    assert.equal(await tried('WaitTask'), 'PERMISSION_DENIED access_denied')
    assert.equal(await tried('CancelTask'), 'OK')
    assert.equal(
      await wait,
      'PERMISSION_DENIED access_denied',
      'the right was taken away meanwhile',
    )
    await stage.engine.users.bindAll(bound)
    await stage.engine.processes.unshare(conv_id, user)
  })
})

describe('a list', () => {
  let stage: Stage
  before(async () => {
    stage = await open()
    await stage.engine.processes.put({ ...definition, obj_id: 'q' })
    for (const [conv_id, ref, n] of [
      ['p', 'a-1', 1],
      ['p', 'a-2', 2],
      ['q', 'a-3', 3],
      ['q', 'b-4', 4],
    ] as const) {
      await stage.engine.create({ conv_id, ref, data: { n } })
    }
    await stage.engine.tasks.cancel({ conv_id: 'q', ref: 'b-4' })
  })
  after(async () => {
    await stage.close()
    assert.deepEqual(stage.bugs, [])
  })

  type Request = Parameters<typeof service.ListTasks.requestSerialize>[0]
  const refs = async (request: Request): Promise<string> => {
    try {
      const { tasks } = await stage.caller.call('ListTasks', request)
      return tasks.map(({ ref }) => ref).join(' ')
    } catch (error) {
      return outcome(Promise.reject(error))
    }
  }
  const where = (text: string): Request => ({ filter: { where_json: Buffer.from(text) } })
  /** [request, the refs or the refusal, the same of a user who may see the tasks of q] */
  const rows: readonly (readonly [Request, string, string?])[] = [
    [{}, 'a-1 a-2 a-3', 'a-3'],
    [{ newest_first: true }, 'a-3 a-2 a-1', 'a-3'],
    [{ page_size: 2 }, 'a-1 a-2', 'a-3'],
    [{ filter: { conv_id: 'p' } }, 'a-1 a-2', 'PERMISSION_DENIED access_denied'],
    [{ filter: { status: 'ended' } }, 'b-4', 'b-4'],
    [{ filter: { ref_prefix: 'a-' } }, 'a-1 a-2 a-3', 'a-3'],
    [{ filter: { created_since_ms: 0, node_id: 'wait' } }, 'a-1 a-2 a-3', 'a-3'],
    [where('{"n":{"gte":2.0}}'), 'a-2 a-3', 'a-3'],
    [where('{"n'), 'INVALID_ARGUMENT bad_filter', 'INVALID_ARGUMENT bad_filter'],
    [where('[]'), 'INVALID_ARGUMENT bad_filter', 'INVALID_ARGUMENT bad_filter'],
    [{ page_size: -1 }, 'INVALID_ARGUMENT bad_filter', 'INVALID_ARGUMENT bad_filter'],
    [{ page_token: 'x' }, 'INVALID_ARGUMENT bad_cursor', 'INVALID_ARGUMENT bad_cursor'],
    [{ filter: { status: 'lost' } }, 'INVALID_ARGUMENT bad_filter', 'INVALID_ARGUMENT bad_filter'],
    [{ filter: { conv_id: 'x' } }, 'NOT_FOUND conv_not_found', 'PERMISSION_DENIED access_denied'],
    [{ filter: { node_id: 'x' } }, 'NOT_FOUND node_not_found', 'NOT_FOUND node_not_found'],
  ]
  for (const [request, wanted, of_user] of rows) {
    test(`${JSON.stringify(request)}: ${wanted}; of a user: ${of_user}`, async () => {
      assert.equal(await refs(request), wanted)
      await stage.engine.processes.share('q', user, ['show'])
      await stage.engine.users.bind(user, bound)
      assert.equal(await refs(request), of_user)
      await stage.engine.users.bindAll(bound)
    })
  }

  test('goes on with its token, and says how far it has come', async () => {
    const first = await stage.caller.call('ListTasks', { page_size: 2 })
    assert.deepEqual([first.tasks.length, first.scanned, first.sorted_by], [2, 2, 'created'])
    assert.ok(Number(first.reached_ms) > 0)
    const page_token = first.next_page_token
    const rest = await stage.caller.call('ListTasks', { page_size: 2, page_token })
    assert.deepEqual([rest.tasks[0]?.ref, rest.next_page_token], ['a-3', ''])
    assert.equal(rest.tasks[0]?.data_json.toString(), '{"n":3}')
  })

  test('is counted, for a user of what he may see', async () => {
    const counted = async (request: object): Promise<unknown> => {
      const { counts, rows } = await stage.caller.call('CountTasks', request)
      const each = rows.map(({ conv_id, node_id, counts }) => [conv_id + node_id, counts?.total])
      return [counts?.total, counts?.delayed, counts?.canceled, Object.fromEntries(each)]
    }
    // Beside its own processes the server has one without tasks.
    assert.deepEqual(await counted({}), ['4', '3', '1', { p: '2', q: '2' }])
    assert.deepEqual(await counted({ conv_id: 'p' }), ['2', '2', '0', { pwait: '2' }])
    assert.deepEqual(await counted({ status: 'delayed' }), [
      '3',
      '3',
      undefined,
      { p: '2', q: '1' },
    ])
    const wrong = outcome(stage.caller.call('CountTasks', { status: 'lost' }))
    assert.equal(await wrong, 'INVALID_ARGUMENT bad_filter')
    await stage.engine.processes.share('q', user, ['show'])
    await stage.engine.users.bind(user, bound)
    assert.deepEqual(await counted({}), ['2', '1', '1', { q: '2' }])
    const hidden = outcome(stage.caller.call('CountTasks', { conv_id: 'p' }))
    assert.equal(await hidden, 'PERMISSION_DENIED access_denied')
    await stage.engine.users.bindAll(bound)
  })

  test('is refused where its page may not fit among the unread answers', async () => {
    await using small = await open({ answers_bytes_max: 100_000 })
    assert.equal(await outcome(small.caller.call('ListTasks', {})), 'UNAVAILABLE overloaded')
  })
})

describe('a call that waits ends', () => {
  const rows = waitEnds(bound, (engine) => engine.modify({ conv_id, ref: 'r', data: {} }))
  for (const [what, limits, act, wanted] of rows) {
    test(`with ${what}: ${wanted}`, async () => {
      const stage = await open(limits)
      await stage.engine.create({ conv_id, ref: 'r', data: {} })
      const abort = new AbortController()
      const { path, requestSerialize, responseDeserialize } = service.WaitTask
      const ended = new Promise<unknown>((resolve, reject) => {
        const call = stage.caller.client.makeUnaryRequest(
          ...[path, requestSerialize, responseDeserialize, { conv_id, ref: 'r' }, new Metadata()],
          (error, answer) => (error === null ? resolve(answer) : reject(error)),
        )
        abort.signal.addEventListener('abort', () => call.cancel())
      })
      const how = outcome(ended)
      await stage.caller.call('GetTask', { conv_id, ref: 'r' })
      await act(stage, () => abort.abort())
      assert.equal(await how, wanted)
      await stage.close()
      assert.deepEqual(stage.bugs, [])
    })
  }

  test('before its handler is called, which then is not', () => {
    // Whether grpc-js tells the end of its message after the end of the call is a matter of timing.
    const receiver = { begin: () => ({ arrived() {}, hold() {}, end() {} }) }
    const context = {
      ...{ underway: newUnderway(), reception: newReception(60_000, () => {}) },
      ...{ limits: limitsWith({}), engine: { counters: { beginRequest: () => 0 } } },
      authenticator: { peerAt: () => ({ receiver }), requireCaller: () => ({}) },
    } as unknown as ServerContext
    const call = { getConnectionInfo: () => ({}), startRead: () => {} }
    for (const [is_over, served] of [
      [false, 1],
      [true, 0],
    ] as const) {
      let times = 0
      const rpc = { read: () => {}, serve: () => void times++ }
      const from = call as unknown as ServerInterceptingCallInterface
      const listener = listenerFor(context, from, rpc, service.WaitTask)
      listener.onReceiveMetadata(new Metadata())
      listener.onReceiveMessage({ message: {}, bytes: Buffer.alloc(0) })
      if (is_over) listener.onCancel()
      listener.onReceiveHalfClose()
      assert.equal(times, served)
    }
  })

  test('with its deadline, and then takes no place', async () => {
    const stage = await open({ results_waiting_max: 1 })
    await stage.engine.create({ conv_id, ref: 'r', data: {} })
    const wait = (ms: number): Promise<unknown> => {
      const deadline = Date.now() + ms
      return stage.caller.call('WaitTask', { conv_id, ref: 'r' }, new Metadata(), { deadline })
    }
    const first = outcome(wait(1_500))
    await stage.caller.call('GetTask', { conv_id, ref: 'r' })
    assert.equal(await outcome(wait(60_000)), 'UNAVAILABLE overloaded')
    assert.match(await first, /^DEADLINE_EXCEEDED/)
    // The server may hear of it a little later than the caller.
    let again = 'UNAVAILABLE overloaded'
    let later = Promise.resolve()
    while (again === 'UNAVAILABLE overloaded') {
      again = ''
      later = outcome(wait(60_000)).then((how) => {
        again = how
      })
      await stage.caller.call('GetTask', { conv_id, ref: 'r' })
    }
    assert.equal(again, '')
    await stage.caller.call('CancelTask', { conv_id, ref: 'r' })
    await later
    assert.equal(again, 'OK')
    await stage.close()
  })
})

test('answers of one turn are sent in several, each once and in order', async () => {
  const answer = newAnswerTurns()
  const sent: number[] = []
  const count = 2 * answers_a_turn + 1
  for (let n = 0; n < count; n++) answer(() => sent.push(n))
  const lengths = [sent.length]
  while (sent.length < count) {
    await nextTurn()
    lengths.push(sent.length)
  }
  assert.deepEqual(lengths, [answers_a_turn, 2 * answers_a_turn, count])
  assert.deepEqual(
    sent,
    Array.from({ length: count }, (_, n) => n),
  )
})
