/**
 * The numbers of `/metrics` are those of what was sent, op for op and request for request: over
 * HTTP, gRPC and the library at once, refused ones too, while others scrape.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { serveOperator } from '../src/operator.ts'
import { serveGrpc } from '../src/server/grpc/server.ts'
import { collect, createOp, openClient } from './support/grpc-client.ts'
import { exchange } from './support/http-raw.ts'
import { conv_id, createBody, openHttp } from './support/http-server.ts'
import { sampled } from './support/metrics-samples.ts'

const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n))

test('what was sent over all servers at once is what a scrape tells', async (t) => {
  const harness = await openHttp({ limits: { window_ms: 300_000 } })
  const { engine } = harness
  const grpc = await serveGrpc(engine, { port: 0, plain: true })
  const operator = await serveOperator(engine, { port: 0 })
  const client = openClient(grpc.address, undefined)
  const scrape = async (): Promise<string> => (await fetch(`${operator.url}/metrics`)).text()
  await scrape()

  const create = (ref: string) => ({ type: 'create', obj: 'task', conv_id, ref, data: {} })
  const missed = { ...create('none'), type: 'modify' }
  const missing = { conv_id, ref: 'none', data_json: Buffer.from('{}') }
  const two = (n: number): string => JSON.stringify({ ops: [create(`h${n}`), missed] })
  const sent = [
    ...times(20, (n) => harness.send(two(n))),
    ...times(10, (n) => harness.send(createBody(`b${n}`), { secret: 'wrong' })),
    ...times(5, (n) => harness.send(createBody(`s${n}`), { timestamp: '1000000000' })),
    ...times(5, () => harness.send('{')),
    ...times(5, () => exchange(harness.port, 'GET /a HTTP/1.1\r\nHost: x\r\n\r\n')),
    ...times(5, () => exchange(harness.port, 'no HTTP\r\n\r\n')),
    ...times(20, (n) => client.call('CreateTask', createOp(`g${n}`).create ?? {})),
    ...times(10, () => client.statusOf('ModifyTask', missing)),
    ...times(5, (n) => client.apply(times(3, (at) => createOp(`a${n}-${at}`)))),
    ...times(5, () => client.statusOf('ListTasks', { page_token: 'x' })),
    ...times(30, (n) => engine.create({ conv_id: n % 2 === 0 ? conv_id : '77', data: {} })),
    ...times(3, () => engine.apply([]).catch(() => {})),
    ...times(10, scrape),
  ]
  const stream = client.stream()
  for (const n of [0, 1, 2, 3]) stream.write({ seq: n, ops: [createOp(`t${n}`)] })
  stream.end()
  await Promise.all([...sent, collect(stream)])
  await client.client.close()

  const wanted = {
    'conveyor_ops_total{type="create",code="ok"}': 20 + 20 + 15 + 15 + 4,
    'conveyor_ops_total{type="create",code="conv_not_found"}': 15,
    'conveyor_ops_total{type="modify",code="ok"}': 0,
    'conveyor_ops_total{type="modify",code="not_found_task"}': 20 + 10,
    'conveyor_ops_total{type="show",code="ok"}': 0,
    'conveyor_requests_total{server="http",code="ok"}': 20,
    'conveyor_requests_total{server="http",code="bad_signature"}': 10,
    'conveyor_requests_total{server="http",code="stale_timestamp"}': 5,
    'conveyor_requests_total{server="http",code="format_error"}': 5,
    'conveyor_requests_total{server="http",code="not_found"}': 5,
    'conveyor_requests_total{server="http",code="bad_request"}': 5,
    'conveyor_requests_total{server="grpc",code="ok"}': 20 + 5 + 4,
    'conveyor_requests_total{server="grpc",code="not_found_task"}': 10,
    'conveyor_requests_total{server="grpc",code="bad_cursor"}': 5,
    'conveyor_requests_total{server="library",code="ok"}': 30,
    'conveyor_requests_total{server="library",code="format_error"}': 3,
    'conveyor_requests_total{server="http_sync",code="ok"}': 0,
    'conveyor_requests_total{server="admin",code="ok"}': 0,
    conveyor_tasks_created_total: 74,
    'conveyor_tasks{conv_id="1234",status="delayed"}': 74,
    'conveyor_request_duration_seconds_count{server="http"}': 45,
    'conveyor_request_duration_seconds_count{server="library"}': 33,
    conveyor_queue_ops: 0,
  }
  let samples = new Map<string, number>()
  let text = ''
  // A text is a second old at most.
  while (samples.get('conveyor_tasks{conv_id="1234",status="delayed"}') !== 74) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    text = await scrape()
    samples = sampled(text)
  }
  const told = Object.keys(wanted).map((name) => [name, samples.get(name)])
  assert.deepEqual(Object.fromEntries(told), wanted)
  const counted = [...samples.keys()].filter((name) =>
    /^conveyor_(ops|requests)_total.*(http|grpc|library|type=)/.test(name),
  )
  assert.deepEqual(
    counted.filter((name) => !Object.hasOwn(wanted, name)),
    [],
    'no other series',
  )

  const { error, status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    ...{ input: text, encoding: 'utf8' },
  })
  if (error === undefined) assert.deepEqual([status, stdout, stderr], [0, '', ''])
  else t.diagnostic(`promtool is not on this machine (${error.message})`)
  await operator.drain()
  await grpc.drain()
  await harness.close()
})
