/**
 * Traces as an SDK gets them: what begins with a request is one trace until the task has ended,
 * hours and restarts later; spans come once, of what was committed; and none has data, a ref, a
 * secret or a signature.
 */
import { go } from './support/processes.ts'
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Metadata } from '@grpc/grpc-js'
import { context, SpanKind, trace } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { docOfText } from '../src/codec/json.ts'
import { taskKey } from '../src/codec/keys.ts'
import { signatureOf } from '../src/codec/signature.ts'
import { encodeTask } from '../src/codec/task-bytes.ts'
import { parseTraceparent } from '../src/core/tracing.ts'
import type { Engine, EngineOptions } from '../src/engine/api/engine-api.ts'
import { loadTask } from '../src/engine/tasks/task-store.ts'
import { serveGrpc } from '../src/grpc.ts'
import { createHandler, type HttpOptions, serveHttp } from '../src/http.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { openTelemetryTracing } from '../src/tracing.ts'
import { callServer } from './support/call-server.ts'
import { collect, openClient } from './support/grpc-client.ts'
import { engineOn, fileHarness, memoryHarness, settled } from './support/model-setup.ts'
import {
  own_tracer,
  takeSpans as takeEnded,
  traceIdsOf,
  tracing,
  treeOf,
} from './support/span-setup.ts'

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
const span_id = '00f067aa0ba902b7'
const sampled = `00-${trace_id}-${span_id}-01`
const given = { trace_id, span_id, flags: 1 }
const marks = ['mark-data', 'mark-ref', 'mark-query', 'mark-path']
const large_heads = { header_bytes_max: 32_768 }
const hours_3 = 3 * 3_600_000

function node(id: string, obj_type: number, logics: object[], semaphors: object[] = []): object {
  const options = { save_task: true }
  return { id, obj_type, title: `title ${id}`, options, condition: { logics, semaphors } }
}

/** Waits for a callback at most three hours, then calls the endpoint. */
function caller(url: string): object {
  const late = { type: 'time', value: 3, dimension: 'hour', to_node_id: 'call' }
  const call = { type: 'api', method: 'POST', url, err_node_id: 'bad', extra: { d: '{{d}}' } }
  return {
    obj_id: 7,
    scheme: {
      nodes: [
        node('start', 1, [go('wait')]),
        node('wait', 0, [{ type: 'api_callback' }, go('call')], [late]),
        node('call', 0, [call, go('done')]),
        node('done', 2, []),
        node('bad', 2, []),
      ],
    },
  }
}

/** Posts ops signed; resolves with the results. */
async function post(
  url: string,
  secret: string,
  ops: readonly object[],
  headers: Record<string, string> | [string, string][] = {},
): Promise<{ request_proc: string; ops: { obj_id: string; proc: string }[] }> {
  const body = JSON.stringify({ ops })
  const time = '1700000000'
  const signed = `${url}/api/1/json/13000/${time}/${signatureOf(time, secret, body)}`
  return (await (await fetch(signed, { method: 'POST', body, headers })).json()) as never
}

const createOp = (ref: string, data: object = {}) => ({
  ...{ type: 'create', obj: 'task', conv_id: 7, ref, data },
})

interface Served {
  readonly engine: Engine
  readonly url: string
  readonly secret: string
}

async function served(
  engine: Engine,
  run: (served: Served) => Promise<void>,
  options: HttpOptions = {},
): Promise<void> {
  const { secret } = await engine.users.add({ id: '13000' })
  await engine.processes.share(7, '13000')
  const limits = { window_ms: 0, ...large_heads }
  const http = await serveHttp(engine, { port: 0, limits, ...options })
  try {
    await run({ engine, url: http.url, secret })
  } finally {
    await http.drain()
  }
}

const with_traces: EngineOptions = { tracing, limits: { window_ms: 0 } }

/** The table of spans: the name of a span → its attributes. */
const page = readFileSync(new URL('../src/tracing/README.md', import.meta.url), 'utf8')
const [, table = ''] = /<!-- table: spans -->\n((?:\|.*\n)+)/.exec(page) ?? []
const rows = new Map(
  table
    .trim()
    .split('\n')
    .slice(2)
    .map((row) => {
      const [, name = '', , , attributes = ''] = row.split('|')
      return [name.trim(), new Set(Array.from(attributes.matchAll(/`([^`]+)`/g), ([, one]) => one))]
    }),
)

/** The row of the table that tells of a span. */
function rowOf({ name, kind }: ReadableSpan): string {
  if (kind === SpanKind.CLIENT && !rows.has(`\`${name}\``)) return 'the method of a call'
  if (name.startsWith('POST ')) return '`POST` and the route'
  if (name.includes('/')) return '`conveyor.v1.TaskService/…`'
  return rows.has(`\`${name}\``) ? `\`${name}\`` : '`conveyor.create` …'
}

/** Each attribute seen, behind the row of its span. */
const attributes_seen = new Set<string>()

function takeSpans(): ReadableSpan[] {
  const spans = takeEnded()
  for (const span of spans) {
    if (span.instrumentationScope.name === 'test') continue
    const names = [span, ...span.events].flatMap((one) => Object.keys(one.attributes ?? {}))
    for (const name of names) attributes_seen.add(`${rowOf(span)} ${name}`)
  }
  return spans
}

/** Everything in a span that is text. */
const textOf = ({ name, attributes, events, links, status }: ReadableSpan): string =>
  JSON.stringify([name, attributes, events, links, status])

test('an HTTP create, hours of waiting, a restart and a call are one trace', async () => {
  const endpoint = await callServer((_asked, _request, response) => response.end('{"ok":1}'))
  const harness = await fileHarness({ ...with_traces, allow_hosts: [endpoint.host] })
  const first = await harness.open()
  await first.processes.put(caller(`${endpoint.url}/mark-path/{{d}}?q=mark-query`))
  let obj_id = ''
  let secret = ''
  await served(first, async (server) => {
    secret = server.secret
    const op = createOp('mark-ref', { d: 'mark-data' })
    const { ops } = await post(server.url, secret, [op], { traceparent: sampled })
    obj_id = ops[0]?.obj_id as string
  })
  assert.equal((await first.task({ conv_id: 7, obj_id }))?.trace_id, trace_id)
  await first.close()

  const second = await harness.open()
  harness.clock.advance(hours_3)
  const { status, trace_id: of_task } = await second.result({ conv_id: 7, obj_id })
  assert.deepEqual([status, of_task], ['processed', trace_id])
  assert.deepEqual((await second.check()).breaches, [])
  await second.close()

  const spans = takeSpans()
  assert.deepEqual(traceIdsOf(spans), [trace_id])
  assert.deepEqual(treeOf(spans), [
    'POST /api/{version}/json/{user}/{timestamp}/{signature}',
    '  conveyor.create',
    '    conveyor.run start wait',
    '    conveyor.commit',
    '    conveyor.run call',
    '    POST',
    '      conveyor.run done',
  ])
  const [request] = spans.filter(({ kind }) => kind === 1)
  assert.equal(request?.parentSpanContext?.spanId, span_id)
  const call = spans.find(({ name }) => name === 'POST') as ReadableSpan
  assert.equal(call.attributes['http.response.status_code'], 200)
  assert.equal(call.attributes['server.port'], endpoint.port)
  const sent = parseTraceparent(endpoint.asked[0]?.headers.traceparent as string)
  assert.deepEqual(sent, { trace_id, span_id: call.spanContext().spanId, flags: 1 })
  const all = spans.map(textOf).join()
  for (const mark of [...marks, secret, '13000/1700000000']) assert.ok(!all.includes(mark), mark)
  await harness.remove()
  await endpoint.close()
})

/** [what came as traceparent, whether the trace is the one that came] */
// biome-ignore format: a table
const given_contexts: readonly (readonly [string, readonly string[], boolean])[] = [
  ['a good one',          [sampled],                                     true],
  ['none',                [],                                            false],
  ['two of them',         [sampled, sampled],                            false],
  ['zeros',               [`00-${'0'.repeat(32)}-${span_id}-01`],        false],
  ['10 kB',               [`cc-${trace_id}-${span_id}-01-${'x'.repeat(10_000)}`], false],
]

test('a trace context that is malformed, sent twice or 10 kB begins a trace, at both servers', async () => {
  const harness = memoryHarness(with_traces)
  const engine = await harness.open()
  await engine.processes.put(caller('http://127.0.0.1:1/'))
  const grpc = await serveGrpc(engine, { port: 0, plain: true, limits: large_heads })
  const client = openClient(grpc.address)
  await served(engine, async ({ url, secret }) => {
    for (const [name, contexts, is_kept] of given_contexts) {
      const sent: [string, string][] = contexts.map((one) => ['traceparent', one])
      const answer = await post(url, secret, [createOp(`http ${name}`)], sent)
      assert.equal(answer.request_proc, 'ok', name)
      const metadata = new Metadata()
      for (const one of contexts) metadata.add('traceparent', one)
      await client.call('CreateTask', { conv_id: '7', ref: `grpc ${name}` }, metadata)
      const ids = traceIdsOf(takeSpans())
      assert.deepEqual(
        ids.map((id) => id === trace_id),
        is_kept ? [true] : [false, false],
        name,
      )
    }
  })
  client.close()
  await grpc.drain()
  await engine.close()
})

test('over gRPC the call is the first span, and a batch of a stream has one of its own', async () => {
  const harness = memoryHarness(with_traces)
  const engine = await harness.open()
  await engine.processes.put(caller('http://127.0.0.1:1/'))
  const grpc = await serveGrpc(engine, { port: 0, plain: true })
  const client = openClient(grpc.address)
  const metadata = new Metadata()
  metadata.set('traceparent', sampled)
  await client.call('CreateTask', { conv_id: '7', ref: 'a' }, metadata)
  const created = takeSpans()
  assert.deepEqual(traceIdsOf(created), [trace_id])
  assert.deepEqual(treeOf(created), [
    'conveyor.v1.TaskService/CreateTask',
    '  conveyor.create',
    '    conveyor.run start wait',
    '    conveyor.commit',
  ])
  await assert.rejects(client.call('ModifyTask', { conv_id: '7', ref: 'none' }))
  assert.deepEqual(treeOf(takeSpans()), [
    'conveyor.v1.TaskService/ModifyTask (not_found_task)',
    '  conveyor.modify (not_found_task)',
    '    conveyor.commit',
  ])
  const stream = client.stream()
  const over = collect(stream)
  const ops = ['b', 'c'].map((ref) => ({ create: { conv_id: '7', ref } }))
  stream.write({ ops })
  stream.end()
  assert.equal((await over).status, 'OK')
  assert.deepEqual(treeOf(takeSpans()), [
    'conveyor.v1.TaskService/StreamOps',
    '  conveyor.commit',
    '  conveyor.create',
    '    conveyor.run start wait',
    '  conveyor.create',
    '    conveyor.run start wait',
  ])
  client.close()
  await grpc.drain()
  await engine.close()
})

test('the library makes spans under the active one, and none without', async () => {
  const harness = memoryHarness(with_traces)
  const engine = await harness.open()
  await engine.processes.put(caller('http://127.0.0.1:1/'))
  const create = (ref: string) => engine.create({ conv_id: 7, ref, data: {} })
  await create('none')
  assert.deepEqual(takeSpans(), [])
  const spans = ['a', 'b'].map((name) => own_tracer.startSpan(name))
  // In one turn of the event loop, so in one transaction.
  await Promise.all(
    spans.map((span, at) =>
      context.with(trace.setSpan(context.active(), span), () => create(`ref ${at}`)),
    ),
  )
  for (const span of spans) span.end()
  const made = takeSpans()
  assert.equal(traceIdsOf(made).length, 2)
  for (const [at, name] of ['a', 'b'].entries()) {
    const id = spans[at]?.spanContext().traceId
    const own = made.filter((span) => span.spanContext().traceId === id)
    assert.deepEqual(treeOf(own), [
      name,
      '  conveyor.create',
      '    conveyor.run start wait',
      '    conveyor.commit',
    ])
    const task = await engine.task({ conv_id: 7, ref: `ref ${at}` })
    assert.equal(task?.trace_id, id)
  }
  await engine.close()
})

test('a modify with a trace of its own: the task goes on in its trace, and the spans are linked', async () => {
  const endpoint = await callServer((_asked, _request, response) => response.end('{}'))
  const harness = memoryHarness({ ...with_traces, allow_hosts: [endpoint.host] })
  const engine = await harness.open()
  await engine.processes.put(caller(endpoint.url))
  const own = (flags: number, n: number) => ({ trace_id: `${n}`.repeat(32), span_id, flags })
  await engine.create({ conv_id: 7, ref: 'a', data: {} }, { trace: own(1, 1) })
  const { obj_id } = await engine.create({ conv_id: 7, ref: 'b', data: {} })
  takeSpans()
  await engine.modify({ conv_id: 7, ref: 'a', data: {} }, { trace: own(1, 2) })
  await engine.modify({ conv_id: 7, ref: 'b', data: {} }, { trace: own(1, 3) })
  assert.equal(
    (await engine.result({ conv_id: 7, obj_id: obj_id as string })).trace_id,
    '3'.repeat(32),
  )
  await settled(harness.clock)
  const spans = takeSpans()
  const in_trace = (n: number) =>
    treeOf(spans.filter((span) => span.spanContext().traceId === `${n}`.repeat(32)))
  assert.deepEqual(in_trace(1), ['conveyor.run call', 'POST', '  conveyor.run done'])
  assert.deepEqual(in_trace(2), ['conveyor.modify', '  conveyor.commit'])
  assert.deepEqual(in_trace(3), [
    'conveyor.modify',
    '  conveyor.run call',
    '  conveyor.commit',
    '  POST',
    '    conveyor.run done',
  ])
  const linksOf = (name: string, n: number) =>
    spans
      .filter((one) => one.name === name && one.spanContext().traceId === `${n}`.repeat(32))
      .flatMap(({ links }) => links.map((link) => link.context.traceId))
  assert.deepEqual(linksOf('conveyor.run', 1), ['2'.repeat(32)])
  assert.deepEqual(linksOf('conveyor.modify', 2), ['1'.repeat(32)])
  await engine.close()
  await endpoint.close()
})

/** Start, then what `logics` say, then done; `bad` where they fail. */
function oneNode(obj_id: number, title: string, logics: object[]): object {
  const middle = { ...node('middle', 0, [...logics, go('done')]), title }
  const nodes = [node('start', 1, [go('middle')]), middle, node('done', 2, []), node('bad', 2, [])]
  return { obj_id, scheme: { nodes } }
}

const callback_logic = { type: 'api_callback' }
const code_logic = { type: 'api_code', lang: 'js', src: 'data.n = 1', err_node_id: 'bad' }
const bad_code = { ...code_logic, src: 'throw 1' }
const copy = {
  ...{ type: 'api_copy', conv_id: 12, ref: 'copied', mode: 'create', err_node_id: 'bad' },
  ...{ data: {}, data_type: {}, group: 'all' },
}
const rpc = { type: 'api_rpc', conv_id: 12, extra: {}, extra_type: {}, err_node_id: 'bad' }
const rpc_reply = { type: 'api_rpc_reply', mode: 'key_value', res_data: {}, res_data_type: {} }

const run_to_wait = 'run start middle'
/** [what a task does, its process, the tree below its create] */
// biome-ignore format: a table
const works: readonly (readonly [string, object, readonly string[]])[] = [
  ['runs code',       oneNode(10, 'm', [code_logic]),
    [run_to_wait, 'commit', 'code', '  run done']],
  ['fails in code',   oneNode(10, 'm', [bad_code]),
    [run_to_wait, 'commit', 'code (code_executing_error)', '  run bad']],
  ['is handled',      oneNode(10, 'work', [callback_logic]),
    [run_to_wait, 'commit', 'handler', '  inner', '  create', '    run start middle done', '    commit', '  run done']],
  ['is refused',      oneNode(10, 'fail', [callback_logic]),
    [run_to_wait, 'commit', 'handler (handler_error)', '  run (handler_error)']],
  ['calls in vain',   oneNode(10, 'm', [{ type: 'api', method: 'GET', url: 'http://127.0.0.1:1/', err_node_id: 'bad' }]),
    [run_to_wait, 'commit', 'GET (api_bad_answer)', '  run bad']],
  ['copies itself',   oneNode(10, 'm', [copy]),
    ['run start middle done', 'run middle done', 'commit']],
  ['calls a process', oneNode(10, 'm', [rpc]),
    [run_to_wait, 'run middle done', 'run done', 'commit']],
]

test('what tasks do goes on in their trace', async () => {
  const engine = await memoryHarness(with_traces).open()
  await engine.processes.put(oneNode(12, 'm', [rpc_reply]))
  engine.handle('work', async () => {
    own_tracer.startSpan('inner').end()
    await engine.create({ conv_id: 12, data: {} })
  })
  engine.handle('fail', () => 'no object')
  for (const [what, process, expected] of works) {
    await engine.processes.put(process)
    const { obj_id } = await engine.create({ conv_id: 10, data: {} }, { trace: given })
    await engine.result({ conv_id: 10, obj_id: obj_id as string })
    const spans = takeSpans()
    assert.deepEqual(traceIdsOf(spans), [trace_id], what)
    const [first, ...below] = treeOf(spans).map((line) => line.replace('conveyor.', ''))
    assert.equal(first, 'create')
    assert.deepEqual(
      below,
      expected.map((line) => `  ${line}`),
      what,
    )
  }
  await engine.close()
})

test('a synchronous request, the call that answers it and the answer are one trace', async () => {
  const engine = await memoryHarness(with_traces).open()
  const call = { type: 'api', method: 'POST', url: '{{__callback_url}}', err_node_id: 'bad' }
  await engine.processes.put({ ...oneNode(7, 'm', [{ ...call, extra: { n: '1' } }]) })
  await served(
    engine,
    async ({ url, secret }) => {
      await post(url, secret, [createOp('a')], { traceparent: sampled })
      await engine.result({ conv_id: 7, ref: 'a' })
    },
    { sync: true },
  )
  const spans = takeSpans()
  assert.deepEqual(traceIdsOf(spans), [trace_id])
  assert.deepEqual(
    treeOf(spans).sort(),
    [
      '    POST',
      '      POST /api/sync/{token}',
      '      conveyor.run done',
      '    conveyor.commit',
      '    conveyor.run start middle',
      '  conveyor.create',
      'POST /api/{version}/json/{user}/{timestamp}/{signature}',
    ].sort(),
  )
  await engine.close()
})

test('a request within a span of the embedder’s server belongs to that', async () => {
  const engine = await memoryHarness(with_traces).open()
  await engine.processes.put(caller('http://127.0.0.1:1/'))
  const { secret } = await engine.users.add({ id: '13000' })
  await engine.processes.share(7, '13000')
  const handler = createHandler(engine, { limits: { window_ms: 0 } })
  const server = createServer((request, response) => {
    own_tracer.startActiveSpan('own', (span) => {
      response.once('finish', () => span.end())
      handler(request, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await post(`http://127.0.0.1:${port}`, secret, [createOp('a')], { traceparent: sampled })
  await handler.drain()
  server.close()
  assert.deepEqual(treeOf(takeSpans()), [
    'own',
    '  POST /api/{version}/json/{user}/{timestamp}/{signature}',
    '    conveyor.create',
    '      conveyor.run start wait',
    '      conveyor.commit',
  ])
  await engine.close()
})

test('lines of the log have the trace of their task', async () => {
  const told: Record<string, unknown>[] = []
  const line = (fields: object) => void told.push({ ...fields })
  const logger = { debug: line, info: line, warn: line, error: line }
  const engine = await memoryHarness({ ...with_traces, logger }).open()
  await engine.processes.put(oneNode(10, 'fail', [callback_logic]))
  engine.handle('fail', () => 'no object')
  for (const trace of [given, undefined]) {
    const { obj_id } = await engine.create({ conv_id: 10, data: {} }, { trace })
    await engine.result({ conv_id: 10, obj_id: obj_id as string })
  }
  const failed = told.filter(({ event }) => event === 'task_failed')
  assert.deepEqual(
    failed.map((one) => one.trace_id),
    [trace_id, undefined],
  )
  takeSpans()
  await engine.close()
})

test('a handler runs under the span of its own task, or under none', async () => {
  const engine = await memoryHarness(with_traces).open()
  await engine.processes.put(oneNode(10, 'work', [callback_logic]))
  const active: (string | undefined)[] = []
  engine.handle('work', () => void active.push(trace.getActiveSpan()?.spanContext().traceId))
  const span = own_tracer.startSpan('of another task')
  // In one turn: the first has the turn begin in its context.
  const [one, other] = await Promise.all([
    context.with(trace.setSpan(context.active(), span), () =>
      engine.create({ conv_id: 10, data: {} }),
    ),
    engine.create({ conv_id: 10, data: {} }),
  ])
  for (const { obj_id } of [one, other]) {
    await engine.result({ conv_id: 10, obj_id: obj_id as string })
  }
  assert.deepEqual(active, [span.spanContext().traceId, undefined])
  takeSpans()
  await engine.close()
})

test('a query of a database is a span of the trace, with what it failed by', async () => {
  const nobody = { driver: 'postgres', host: '127.0.0.1', port: 9, database: 'd', user: 'u' }
  const databases = { stock: nobody as never }
  const engine = await memoryHarness({ ...with_traces, databases }).open()
  const query = { type: 'db_call', instance_id: 'stock', query: 'select 1' }
  await engine.processes.put(oneNode(10, 'work', [query]))
  const { obj_id = '' } = await engine.create({ conv_id: 10, data: {} }, { trace: given })
  await engine.result({ conv_id: 10, obj_id })
  const span = takeSpans().find(({ name }) => name === 'conveyor.query')
  assert.equal(span?.kind, SpanKind.CLIENT)
  assert.equal(span?.attributes['conveyor.instance'], 'stock')
  assert.equal(span?.attributes['error.type'], 'db_call_connection_error')
  await engine.close()
})

test('a trace that is not recorded has no spans, and is remembered and handed on as that', async () => {
  const endpoint = await callServer((_asked, _request, response) => response.end('{}'))
  const harness = memoryHarness({ ...with_traces, allow_hosts: [endpoint.host] })
  const engine = await harness.open()
  await engine.processes.put(caller(endpoint.url))
  await served(engine, async ({ url, secret }) => {
    await post(url, secret, [createOp('a')], { traceparent: sampled.replace(/1$/, '0') })
  })
  await engine.create({ conv_id: 7, ref: 'b', data: {} }, { trace: { ...given, flags: 0 } })
  harness.clock.advance(hours_3)
  for (const ref of ['a', 'b']) {
    assert.equal((await engine.result({ conv_id: 7, ref })).trace_id, trace_id)
  }
  for (const { headers } of endpoint.asked) {
    assert.match(String(headers.traceparent), new RegExp(`^00-${trace_id}-[0-9a-f]{16}-00$`))
  }
  assert.equal(endpoint.asked.length, 2)
  assert.deepEqual(takeSpans(), [])
  await engine.close()
  await endpoint.close()
})

test('of a transaction that is rolled back and runs again each span comes once', async () => {
  const tree = memoryTree()
  const engine = await engineOn(tree, with_traces)
  await engine.processes.put(caller('http://127.0.0.1:1/'))
  const { obj_id = '' } = await engine.create({ conv_id: 7, ref: 'bad', data: {} })
  const draft = await storeOf(tree).view((view) => loadTask(view, obj_id))
  assert.ok(draft !== undefined && draft !== 'damaged')
  const broken = encodeTask({ ...draft.task, doc: docOfText('{"a":') })
  await tree.commit(changesOf([[taskKey(obj_id), broken]]))
  // A bug in the second request, in one transaction with the others.
  const all = await Promise.allSettled([
    engine.create({ conv_id: 7, ref: 'one', data: {} }, { trace: given }),
    engine.modify({ conv_id: 7, ref: 'bad', data: { b: 1 } }, { trace: given }),
    engine.create({ conv_id: 7, ref: 'two', data: {} }, { trace: given }),
  ])
  assert.deepEqual(
    all.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  const created = ['conveyor.create', '  conveyor.run start wait', '  conveyor.commit']
  assert.deepEqual(treeOf(takeSpans()).sort(), [
    ...[...created, ...created].sort(),
    'conveyor.modify (internal_error)',
  ])
  await engine.close()
})

const throws = (): never => {
  throw new Error('broken SDK')
}
const zero = { traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 1 }
const sdk_context = { traceId: trace_id, spanId: span_id, traceFlags: 1 }
const ofSpan = (spanContext: () => unknown, more: object = {}) => ({
  ...{ setAttribute: throws, setAttributes: throws, addEvent: throws, addLink: throws },
  ...{ setStatus: throws, end: throws, isRecording: () => true, spanContext, ...more },
})
let spans = 0

/** What a broken SDK makes of a span. */
const broken_sdks: Readonly<Record<string, () => unknown>> = {
  'makes no span': throws,
  'makes nothing of it': () => undefined,
  'takes nothing': () => ofSpan(() => sdk_context),
  'knows no context': () => ofSpan(throws),
  'has a context of zeros': () => ofSpan(() => zero),
  'loses the context of each third span': () =>
    ofSpan(() => undefined, { isRecording: () => ++spans % 3 !== 0 }),
  'has no context in each third span': () => ofSpan(() => (++spans % 3 ? sdk_context : undefined)),
  'cannot tell whether it records': () => ofSpan(() => sdk_context, { isRecording: throws }),
}

for (const [name, startSpan] of Object.entries(broken_sdks)) {
  test(`an SDK that ${name} costs the spans alone`, async () => {
    const tracer = { startSpan: startSpan as never, startActiveSpan: throws }
    const broken = openTelemetryTracing({ tracerProvider: { getTracer: () => tracer } })
    const told: string[] = []
    const emit = (line: object): void => void told.push(JSON.stringify(line))
    const logger = { debug: emit, info: emit, error: emit, warn: emit }
    const engine = await memoryHarness({ tracing: broken, logger }).open()
    await engine.processes.put(oneNode(10, 'work', [callback_logic]))
    engine.handle('work', () => ({ n: 1 }))
    for (let n = 0; n < 3; n++) {
      const caller = { trace: given }
      const { obj_id } = await engine.create({ conv_id: 10, data: {} }, caller)
      const ended = await engine.result({ conv_id: 10, obj_id: obj_id as string })
      assert.equal(ended.status, 'processed')
    }
    assert.doesNotMatch(told.join(), /"event":"bug"/)
    if (startSpan === throws) assert.match(told.join(), /"event":"traces_without_sdk"/)
    await engine.close()
  })
}

test('a request refused before its caller is known joins no trace; later ones have their code', async () => {
  const engine = await memoryHarness(with_traces).open()
  await engine.processes.put(caller('http://127.0.0.1:1/'))
  await served(engine, async ({ url, secret }) => {
    await post(url, 'wrong', [createOp('a')], { traceparent: sampled })
    await post(url, secret, [], { traceparent: sampled })
  })
  const [outside, inside] = takeSpans()
  assert.deepEqual(treeOf([outside as ReadableSpan]), ['HTTP (bad_signature)'])
  assert.notEqual(outside?.spanContext().traceId, trace_id)
  assert.equal(inside?.attributes['error.type'], 'format_error')
  assert.equal(inside?.spanContext().traceId, trace_id)
  await engine.close()
})

test('the table of spans has each attribute that was seen, and no other', () => {
  const told = [...rows].flatMap(([row, names]) => [...names].map((name) => `${row} ${name}`))
  assert.deepEqual([...attributes_seen].sort(), told.sort())
})
