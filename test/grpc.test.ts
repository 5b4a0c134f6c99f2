/**
 * The rpcs of the gRPC server: answers to good and bad input, health, reflection and drain.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep_ms } from 'node:timers/promises'
import { loadPackageDefinition, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { loadFileDescriptorSetFromBuffer, loadSync } from '@grpc/proto-loader'
import { service as healthService } from 'grpc-health-check'
import { fault, type WholeFaultCode, wholeFaults } from '../src/core/faults.ts'
import type { Readiness } from '../src/engine/api/statistics-api.ts'
import type { ServedEngine } from '../src/engine/served-engine.ts'
import { serveGrpc } from '../src/grpc.ts'
import type { Op } from '../src/server/grpc/generated/messages.ts'
import type { Sent } from '../src/server/grpc/schema.ts'
import { collect, createOp, openClient, type TestClient } from './support/grpc-client.ts'
import { openGrpc, type TestGrpc } from './support/grpc-server.ts'
import { user } from './support/http-server.ts'
import { top } from './support/package-folder.ts'
import { pick } from './support/pick.ts'

const conv_id = '1234'
const json = (text: string): Buffer => Buffer.from(text)

async function failureOf(call: Promise<unknown>): Promise<ServiceError> {
  try {
    await call
  } catch (error) {
    return error as ServiceError
  }
  throw new Error('it did not fail')
}

/** google.rpc.Status for protobufjs, from a descriptor of its published fields. */
function detailsOf({ metadata }: ServiceError): object {
  const [bytes] = metadata.get('grpc-status-details-bin') as Buffer[]
  const field = (name: string, number: number, type: number, label = 1, type_name = ''): Buffer =>
    message([
      [1, name],
      [3, number],
      [4, label],
      [5, type],
      ...(type_name ? [[6, type_name] as const] : []),
    ])
  const type = (name: string, ...fields: Buffer[]): Buffer =>
    message([[1, name], ...fields.map((one) => [2, one] as const)])
  const status_type = type(
    'Status',
    field('code', 1, 5),
    field('message', 2, 9),
    field('details', 3, 11, 3, '.t.Any'),
  )
  const any_type = type('Any', field('type_url', 1, 9), field('value', 2, 12))
  const info_type = type('Info', field('reason', 1, 9), field('domain', 2, 9))
  const service = message([
    [1, 'S'],
    [
      2,
      message([
        [1, 'status'],
        [2, '.t.Status'],
        [3, '.t.Status'],
      ]),
    ],
    [
      2,
      message([
        [1, 'info'],
        [2, '.t.Info'],
        [3, '.t.Info'],
      ]),
    ],
  ])
  const file = message([
    [1, 't.proto'],
    [2, 't'],
    ...[status_type, any_type, info_type].map((one) => [4, one] as const),
    [6, service],
    [12, 'proto3'],
  ])
  const loaded = loadFileDescriptorSetFromBuffer(message([[1, file]]), { keepCase: true })
  const methods = loaded['t.S'] as unknown as Record<
    'status' | 'info',
    { requestDeserialize(bytes: Buffer): object }
  >
  const read = methods.status.requestDeserialize(bytes as Buffer) as {
    code: number
    message: string
    details: { type_url: string; value: Buffer }[]
  }
  const [any] = read.details
  const info = methods.info.requestDeserialize(any?.value as Buffer)
  return { code: read.code, message: read.message, type_url: any?.type_url, ...info }
}

function message(fields: readonly (readonly [number, string | number | Buffer])[]): Buffer {
  const parts = fields.flatMap(([number, value]) => {
    if (typeof value === 'number') return [Buffer.from([number << 3, value])]
    const bytes = Buffer.from(value as string)
    const length = [(bytes.length & 0x7f) | (bytes.length > 0x7f ? 0x80 : 0)]
    if (bytes.length > 0x7f) length.push(bytes.length >> 7)
    return [Buffer.from([(number << 3) | 2, ...length]), bytes]
  })
  return Buffer.concat(parts)
}

describe('calls', () => {
  let server: TestGrpc
  let client: TestClient
  before(async () => {
    server = await openGrpc()
    client = server.connect()
  })
  after(async () => {
    await server.close()
    assert.deepEqual(server.bugs, [])
  })

  test('a task made, shown, finished and shown again', async () => {
    const data_json = json('{"amount":1.10,"big":12345678901234567890}')
    const { obj_id, ref } = await client.call('CreateTask', { conv_id, ref: 'r', data_json })
    assert.match(obj_id, /^[0-9a-f]{24}$/)
    assert.equal(ref, 'r')
    const { task } = await client.call('GetTask', { conv_id, ref: 'r' })
    const stored = await server.engine.task({ conv_id, obj_id })
    const wanted = {
      obj_id,
      conv_id,
      ref: 'r',
      _ref: 'ref',
      status: 'delayed',
      user_id: '',
      create_time_ms: String(stored?.create_time_ms),
      change_time_ms: String(stored?.change_time_ms),
      node_id: 'wait',
      node_prev_id: 'start',
      data_json,
      status_details: null,
      history: [],
    }
    assert.deepEqual({ ...task }, wanted)
    const again = await client.call('CreateTask', { conv_id, ref: 'r', data_json })
    assert.equal(again.obj_id, obj_id)
    const modified = await client.call('ModifyTask', { conv_id, ref: 'r', is_sync: true })
    assert.deepEqual({ ...modified }, { ref: 'r', _ref: 'ref', obj_id })
    const ended = await client.call('GetTask', { conv_id, obj_id })
    assert.equal(ended.task?.status, 'processed')
  })

  test('a task without a ref has none in any answer', async () => {
    const made = await client.call('CreateTask', { conv_id })
    assert.deepEqual(Object.keys(made), ['obj_id'])
    const { task } = await client.call('GetTask', { conv_id, obj_id: made.obj_id })
    assert.equal(task?.ref, undefined)
    assert.equal(task?.data_json.toString(), '{}')
  })

  type Row = readonly [string, 'CreateTask' | 'ModifyTask' | 'GetTask', object, string, string]
  const broken = json('{broken')
  const failures: readonly Row[] = [
    ['no conv_id', 'CreateTask', {}, 'INVALID_ARGUMENT', "error: Key 'conv_id' is required"],
    [
      'broken data',
      'CreateTask',
      { conv_id, data_json: broken },
      'INVALID_ARGUMENT',
      'error: Value is not valid. data: not JSON: a key in quotes was expected, line 1 column 2',
    ],
    [
      'data that is a list',
      'CreateTask',
      { conv_id, data_json: json('[]') },
      'INVALID_ARGUMENT',
      'error: Value is not valid. data: data is not a JSON object',
    ],
    [
      'data that is no UTF-8',
      'CreateTask',
      { conv_id, data_json: Buffer.from([0x7b, 0xff]) },
      'INVALID_ARGUMENT',
      'error: Value is not valid. data: it is not UTF-8',
    ],
    [
      'an empty ref',
      'CreateTask',
      { conv_id, ref: '' },
      'INVALID_ARGUMENT',
      'error: Value is not valid. ref: ""',
    ],
    [
      'an empty ref and broken data: the ref comes first',
      'CreateTask',
      { conv_id, ref: '', data_json: broken },
      'INVALID_ARGUMENT',
      'error: Value is not valid. ref: ""',
    ],
    ['no target', 'ModifyTask', { conv_id }, 'INVALID_ARGUMENT', "error: Key 'ref' is required"],
    [
      'an empty obj_id',
      'GetTask',
      { conv_id, obj_id: '' },
      'INVALID_ARGUMENT',
      'error: Value is not valid. obj_id: ""',
    ],
    ['no target', 'GetTask', { conv_id }, 'INVALID_ARGUMENT', "error: Key 'ref' is required"],
    [
      'no such task',
      'GetTask',
      { conv_id, ref: 'none' },
      'NOT_FOUND',
      'not_found_task: not found task',
    ],
    [
      'no such process',
      'GetTask',
      { conv_id: '9', ref: 'none' },
      'NOT_FOUND',
      'conv_not_found: Object conv with id 9 does not exist',
    ],
    [
      'a name that is no ASCII',
      'GetTask',
      { conv_id: 'Київ %41\u{1f600}', ref: 'none' },
      'NOT_FOUND',
      'conv_not_found: Object conv with id Київ %41\u{1f600} does not exist',
    ],
    [
      'a wait elsewhere',
      'ModifyTask',
      { conv_id, ref: 'held', node_id: 'end' },
      'FAILED_PRECONDITION',
      'no_api_callback_in_node_with_task: no api callback logic in node with task',
    ],
    [
      'a ref held by another',
      'CreateTask',
      { conv_id, ref: 'held', data_json: json('{"x":1}') },
      'ALREADY_EXISTS',
      'not_unical_ref: not unical reference',
    ],
    [
      'too much data',
      'CreateTask',
      { conv_id, data_json: json(JSON.stringify({ x: 'x'.repeat(131_072) })) },
      'RESOURCE_EXHAUSTED',
      'task_size_overflow_limit: Your task size: 131080 bytes, Max available task size: 131072 bytes',
    ],
  ]
  for (const [name, method, request, wanted, details] of failures) {
    test(`${method}, ${name}: ${wanted}`, async () => {
      await client.call('CreateTask', { conv_id, ref: 'held' })
      const error = await failureOf(client.call(method, request))
      assert.equal(status[error.code], wanted)
      assert.equal(error.details, details)
      assert.deepEqual(detailsOf(error), {
        code: error.code,
        message: details,
        type_url: 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: details.slice(0, details.indexOf(':')).toUpperCase(),
        domain: 'conveyor',
      })
    })
  }

  test('a batch: each op succeeds or fails on its own, in order', async () => {
    const ops: Sent<Op>[] = [
      { id: '1', ...createOp('b') },
      { id: '2' },
      { modify: { conv_id, ref: 'b', data_json: json('{"x":1}') } },
      { create: { conv_id, ref: 'b2', data_json: broken } },
      { id: '5', show: { conv_id, ref: 'b' } },
      { modify: { conv_id, obj_id: 'x' } },
    ]
    const { results } = await client.apply(ops)
    const received = results.map(({ id, ref, proc, description }) => [id, ref, proc, description])
    assert.deepEqual(received, [
      ['1', 'b', 'ok', ''],
      ['2', undefined, 'error', 'bad type'],
      ['', 'b', 'ok', ''],
      [
        '',
        'b2',
        'error',
        'Value is not valid. data: not JSON: a key in quotes was expected, line 1 column 2',
      ],
      ['5', 'b', 'ok', ''],
      ['', undefined, 'error', 'Value is not valid. obj_id: "x"'],
    ])
  })

  /** [what, the batch, the code of the whole fault] */
  const batches: readonly (readonly [string, object, WholeFaultCode])[] = [
    ['no op', {}, 'format_error'],
    ['too many ops', { ops: Array.from({ length: 1001 }, () => ({})) }, 'too_many_ops'],
    ['a long key', { ops: [createOp('k')], request_key: 'k'.repeat(256) }, 'format_error'],
    ['a key in an op', { ops: [{ create: { request_key: 'k' } }] }, 'format_error'],
  ]
  for (const [name, batch, code] of batches) {
    test(`a batch with ${name} is refused whole`, async () => {
      const error = await failureOf(client.call('ApplyOps', batch))
      assert.equal(status[error.code], wholeFaults[code].grpc)
      assert.match(error.details, new RegExp(`^${code}: `))
    })
  }

  test('values are bounded over the whole batch', async () => {
    await using small = await openGrpc({ limits: { body_values_max: 9 } })
    const data = { x: [1, 2, 3] }
    const { results } = await small.connect().apply([createOp('a', data), createOp('b', data)])
    assert.deepEqual(pick(results, 'proc'), ['ok', 'error'])
  })

  test('an unknown rpc', async () => {
    const error = await new Promise<ServiceError | null>((resolve) => {
      const path = '/conveyor.v1.TaskService/Nothing'
      const same = (bytes: Buffer): Buffer => bytes
      client.client.makeUnaryRequest(path, same, same, Buffer.alloc(0), (failure) =>
        resolve(failure),
      )
    })
    assert.equal(error?.code, status.UNIMPLEMENTED)
  })

  test('a malformed message', async () => {
    const error = await new Promise<ServiceError | null>((resolve) => {
      const same = (bytes: Buffer): Buffer => bytes
      const path = '/conveyor.v1.TaskService/CreateTask'
      client.client.makeUnaryRequest(path, same, same, Buffer.from('\x0a\xff'), (failure) =>
        resolve(failure),
      )
    })
    assert.equal(error?.code, status.INTERNAL)
  })

  test('grants apply as over HTTP', async () => {
    const name = 'uri:conveyor:test'
    await server.engine.users.bind(user, name)
    await server.engine.processes.unshare(conv_id, user)
    const error = await failureOf(client.call('CreateTask', { conv_id }))
    assert.equal(error.details, `access_denied: user: ${user}, conv_id: ${conv_id}`)
    await server.engine.users.bindAll(name)
  })
})

describe('whole faults of the engine', () => {
  const codes = ['store_failed', 'overloaded', 'no_space', 'rate_limited', 'shutting_down'] as const
  for (const code of codes) {
    test(code, async () => {
      const submit = () => Promise.reject(fault(code, 'as told'))
      const server = await openGrpc({}, { submit })
      const error = await failureOf(server.connect().call('CreateTask', { conv_id }))
      assert.equal(status[error.code], wholeFaults[code].grpc)
      assert.equal(error.details, `${code}: as told`)
      await server.close()
      assert.deepEqual(server.bugs, [])
    })
  }

  test('a sentence that names a file is not for the caller', async () => {
    const refusal = fault('store_failed', '/data was removed', { outside: 'it has failed' })
    await using server = await openGrpc({}, { submit: () => Promise.reject(refusal) })
    const error = await failureOf(server.connect().call('CreateTask', { conv_id }))
    assert.equal(error.details, 'store_failed: it has failed')
  })

  test('a bug is reported to the embedder and not to the caller', async () => {
    const bug = new Error('a secret')
    const server = await openGrpc({}, { submit: () => Promise.reject(bug) })
    const error = await failureOf(server.connect().call('CreateTask', { conv_id }))
    assert.equal(error.details, 'internal_error: internal error')
    await server.close()
    assert.deepEqual(server.bugs, [bug])
  })
})

describe('health and reflection', () => {
  type Check = { check: (...args: unknown[]) => void; watch: (...args: unknown[]) => never }
  const Health = loadPackageDefinition({ h: healthService }) as unknown as {
    h: new (...args: unknown[]) => Check
  }
  const check = async (health: Check, service: string): Promise<string> =>
    new Promise((resolve) =>
      health.check({ service }, (error: ServiceError | null, answer: { status: string }) =>
        resolve(error ? status[error.code] : answer.status),
      ),
    )

  test('health follows the engine, for certificates that may not call too', async () => {
    let health: 'ok' | WholeFaultCode = 'ok'
    const ready = async () => ({ ok: health === 'ok' }) as Readiness
    await using server = await openGrpc({ strict: true }, { ready })
    const client = server.connect()
    assert.equal(await client.statusOf('CreateTask', { conv_id }), 'PERMISSION_DENIED')
    const asked = new Health.h(
      server.grpc.address,
      {},
      { channelOverride: client.client.getChannel() },
    )
    assert.equal(await check(asked, ''), 'SERVING')
    assert.equal(await check(asked, 'conveyor.v1.TaskService'), 'SERVING')
    assert.equal(await check(asked, 'other'), 'NOT_FOUND')
    health = 'store_failed'
    assert.equal(await check(asked, ''), 'NOT_SERVING')
  })

  test('a watch gets the drain and does not delay it', async () => {
    const server = await openGrpc({ limits: { drain_ms_max: 60_000 } })
    const { client } = server.connect()
    const asked = new Health.h(server.grpc.address, {}, { channelOverride: client.getChannel() })
    const watch = (
      asked.watch as (
        request: object,
      ) => import('@grpc/grpc-js').ClientReadableStream<{ status: string }>
    )({ service: '' })
    const received: string[] = []
    watch.on('data', (answer) => received.push(answer.status))
    watch.on('error', () => {})
    await once(watch, 'data')
    await server.close()
    assert.deepEqual(received, ['SERVING', 'NOT_SERVING'])
  })

  for (const reflection of [true, false]) {
    test(`reflection ${reflection ? 'lists the services' : 'is off by default'}`, async () => {
      await using server = await openGrpc({ reflection })
      const { client } = server.connect()
      const folder = join(top, 'node_modules/@grpc/reflection/build/proto')
      const loaded = loadSync('grpc/reflection/v1/reflection.proto', {
        includeDirs: [folder],
        oneofs: true,
        keepCase: true,
      })
      const service = loadPackageDefinition(loaded) as never as {
        grpc: { reflection: { v1: { ServerReflection: new (...args: unknown[]) => never } } }
      }
      const asked = new service.grpc.reflection.v1.ServerReflection(
        server.grpc.address,
        {},
        { channelOverride: client.getChannel() },
      ) as { ServerReflectionInfo(): import('@grpc/grpc-js').ClientDuplexStream<object, object> }
      const call = asked.ServerReflectionInfo()
      const answers: string[] = []
      call.on('data', (answer) => answers.push(JSON.stringify(answer)))
      const ended = new Promise<number>((resolve) => call.on('status', ({ code }) => resolve(code)))
      call.on('error', () => {})
      call.write({ list_services: '*' })
      call.write({ file_containing_symbol: 'conveyor.v1.TaskService' })
      call.end()
      assert.equal(await ended, reflection ? status.OK : status.UNIMPLEMENTED)
      assert.equal(answers.length, reflection ? 2 : 0)
      if (reflection) assert.match(answers[0] as string, /conveyor\.v1\.TaskService/)
    })
  }
})

describe('drain', () => {
  test('calls under way are answered, new ones are refused, the port is free', async () => {
    let release = (): void => {}
    const held_back = new Promise<void>((resolve) => {
      release = resolve
    })
    const server = await openGrpc({ limits: { drain_ms_max: 60_000 } })
    let submitted = 0
    const submit: ServedEngine['submit'] = async (...args) => {
      submitted++
      await held_back
      return server.engine.submit(...args)
    }
    const served: ServedEngine = { ...server.engine, submit }
    const held = await serveGrpc(served, { port: 0, plain: true, limits: { drain_ms_max: 60_000 } })
    const client = openClient(held.address)
    const call = client.call('CreateTask', { conv_id })
    const stream = client.stream()
    const collected = collect(stream)
    stream.write({ seq: 1, ops: [createOp('s')] })
    while (submitted < 2) await sleep_ms(5)
    const drained = held.drain()
    assert.equal(held.drain(), drained)
    await sleep_ms(20)
    assert.equal(await client.statusOf('CreateTask', { conv_id }), 'UNAVAILABLE')
    release()
    assert.match((await call).obj_id, /^[0-9a-f]{24}$/)
    const { answers, status: ended, details } = await collected
    assert.deepEqual(pick(answers, 'seq', 'proc'), [['1', 'ok']])
    assert.equal(ended, 'UNAVAILABLE')
    assert.equal(details, 'shutting_down: shutting down')
    await drained
    const port = Number(held.address.split(':')[1])
    const again = await serveGrpc(server.engine, { port, plain: true })
    await again.drain()
    client.close()
    await server.close()
  })

  test('waits at most drain_ms_max', async () => {
    await using server = await openGrpc(
      { limits: { drain_ms_max: 50 } },
      { submit: () => new Promise(() => {}) },
    )
    const failed = failureOf(server.connect().call('CreateTask', { conv_id }))
    await sleep_ms(50)
    await server.grpc.drain()
    assert.notEqual((await failed).code, status.OK)
  })
})

describe('serveGrpc', () => {
  /** [what, the options, what it rejects with] */
  const senseless: readonly (readonly [string, object, object])[] = [
    ['neither tls nor plain', { port: 0 }, RangeError],
    ['both', { port: 0, plain: true, tls: { folder: '/' } }, RangeError],
    ['plain beyond loopback', { port: 0, plain: true, host: '0.0.0.0' }, RangeError],
    ['a bad limit', { port: 0, plain: true, limits: { ops_max: -1 } }, RangeError],
    ['a taken port', { plain: true }, { code: 'EADDRINUSE' }],
  ]
  for (const [name, options, error] of senseless) {
    test(`rejects ${name}`, async () => {
      await using server = await openGrpc({ plain: true })
      const port = Number(server.grpc.address.split(':')[1])
      await assert.rejects(serveGrpc(server.engine, { port, ...options }), error)
    })
  }

  test('with plain every loopback caller may use every process', async () => {
    await using server = await openGrpc({ plain: true })
    assert.equal(await server.connect().statusOf('CreateTask', { conv_id }), 'OK')
  })

  test('metadata of the caller has no effect', async () => {
    await using server = await openGrpc()
    const metadata = new Metadata()
    metadata.set('authorization', 'anything')
    await server.connect().call('CreateTask', { conv_id }, metadata)
  })
})
