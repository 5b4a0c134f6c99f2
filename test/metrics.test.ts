/**
 * The metrics: that they are in the format of Prometheus, that their numbers are those of the
 * engine, that nothing a caller sends makes a series, and what a scrape costs.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { type ServedEngine, servedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/index.ts'
import { newHistogram, newProcessCounts } from '../src/metrics/engine-metrics.ts'
import { nodeTable } from '../src/metrics/node-metrics.ts'
import { duration_bounds_s, histogramTable, metricTable } from '../src/metrics/table.ts'
import { engineMetrics } from '../src/metrics.ts'
import { type OperatorServer, serveOperator } from '../src/operator.ts'
import { openGrpc } from './support/grpc-server.ts'
import { conv_id, process_definition } from './support/http-server.ts'
import { sampled } from './support/metrics-samples.ts'
import { tempFolder } from './support/package-folder.ts'

const all = [...metricTable, ...Object.values(histogramTable)]

test('names and labels follow the conventions of Prometheus', () => {
  const labels_known = ['version', 'node', 'type', 'code', 'server', 'kind', 'result', 'status']
  for (const { name, help, labels, ...row } of [...all, ...nodeTable]) {
    assert.match(name, /^conveyor_[a-z]+(_[a-z]+)*$/)
    assert.match(help, /^[A-Z].*\.$/)
    const type = 'type' in row ? row.type : 'histogram'
    assert.equal(name.endsWith('_total'), type === 'counter', name)
    assert.doesNotMatch(name, /_(ms|milliseconds|kb|mb|minutes|days|count|bucket|sum)(_|$)/)
    for (const label of labels) {
      assert.ok(
        [...labels_known, 'conv_id', 'event', 'check', 'state', 'role'].includes(label),
        `${label} of ${name}`,
      )
    }
  }
  assert.equal(new Set(all.map(({ name }) => name)).size, all.length)
})

test('a duration is counted in the first bucket that it fits', () => {
  const histogram = newHistogram()
  for (const ms of [0, 0.05, 0.050001, 1, 10_000, 10_001]) histogram.observe(ms)
  const { up_to, sum_s } = histogram.read()
  const upTo = (bound_s: number): unknown => up_to[duration_bounds_s.indexOf(bound_s)]
  assert.deepEqual(
    [upTo(0.00005), upTo(0.0001), upTo(0.001), upTo(5), upTo(10), up_to.at(-1)],
    [2, 3, 4, 4, 5, 6],
  )
  assert.ok(Math.abs(sum_s - 20.0021) < 0.001)
})

describe('in a register of the embedder', () => {
  test('stand beside its own, until they are closed', async () => {
    const engine = await openEngine(':memory:')
    const register = new Registry()
    const metrics = engineMetrics(engine, { register })
    assert.throws(() => engineMetrics(engine, { register }), /already been registered/)
    await engine.apply([{ type: 'create', obj: 'task', conv_id, data: {} }])
    const samples = sampled(await register.metrics())
    assert.equal(samples.get('conveyor_ops_total{type="create",code="conv_not_found"}'), 1)
    assert.equal(samples.get('conveyor_request_duration_seconds_count{server="library"}'), 1)
    metrics.close()
    assert.equal((await register.metrics()).trim(), '')
    assert.equal(servedEngine(engine).counters.beginRequest(), 0, 'nobody measures any more')
    await engine.close()
  })
})

test('of a file: commits, their durations, its bytes, the disk and whether it is ready', async () => {
  const { path: folder, remove } = tempFolder()
  const engine = await openEngine(join(folder, 'tasks.lmdb'))
  const { register } = engineMetrics(engine)
  await engine.processes.put(process_definition)
  const commits = engine.statistics().store.commits
  for (let n = 0; n < 3; n++) await engine.create({ conv_id, data: {} })
  const samples = sampled(await register.metrics())
  const value = (name: string): number => samples.get(`conveyor_${name}`) ?? Number.NaN
  assert.ok(value('commits_total') >= commits + 3)
  for (const name of ['commit', 'sync']) {
    assert.ok(value(`${name}_duration_seconds_count`) >= 3, name)
    assert.ok(value(`${name}_duration_seconds_sum`) > 0, name)
  }
  for (const name of ['written_bytes_total', 'checkpoint_debt_bytes', 'disk_free_bytes']) {
    assert.ok(value(name) > 0, name)
  }
  assert.ok(value('file_bytes{state="used"}') > 0)
  assert.deepEqual([value('ready'), value('ready_check{check="commit"}')], [1, 1])
  await engine.close()
  assert.equal(sampled(await register.metrics()).get('conveyor_ready'), 0)
  remove()
})

test('until when the certificate of a server is valid', async () => {
  const { engine, folder, close } = await openGrpc()
  const { register } = engineMetrics(engine)
  const { validTo } = new X509Certificate(readFileSync(join(folder, 'server.crt')))
  const name = 'conveyor_certificate_expiry_timestamp_seconds{server="grpc"}'
  assert.equal(sampled(await register.metrics()).get(name), Date.parse(validTo) / 1000)
  await close()
})

describe('tasks by process', () => {
  const processOf = (id: string): object => ({ ...process_definition, obj_id: id })

  test('the largest are told by name, the others as one', async () => {
    const engine = await openEngine(':memory:', { limits: { processes_measured_max: 2 } })
    const sizes = { p1: 1, p2: 4, p3: 2, other: 9, p5: 3 }
    for (const [id, tasks] of Object.entries(sizes)) {
      await engine.processes.put(processOf(id))
      for (let n = 0; n < tasks; n++) await engine.create({ conv_id: id, data: {} })
    }
    const { register } = engineMetrics(engine)
    const samples = sampled(await register.metrics())
    const told = [...samples].filter(([name]) => name.includes('status="delayed"'))
    assert.deepEqual(told, [
      ['conveyor_tasks{conv_id="p2",status="delayed"}', 4],
      ['conveyor_tasks{conv_id="p5",status="delayed"}', 3],
      ['conveyor_tasks{conv_id="other",status="delayed"}', 12],
    ])
    await engine.close()
  })

  test('are read once for all who ask within a second, and what was read stands after the close', async () => {
    const engine = await openEngine(':memory:')
    await engine.processes.put(process_definition)
    await engine.create({ conv_id, data: {} })
    let reads = 0
    const tasks: Engine['tasks'] = {
      ...engine.tasks,
      count: (filter) => {
        reads++
        return engine.tasks.count(filter)
      },
    }
    const counts = newProcessCounts({ ...engine, tasks })
    await Promise.all(Array.from({ length: 50 }, counts))
    assert.equal((await counts())[0]?.by_status.delayed, 1)
    assert.equal(reads, 1)
    await engine.close()
    assert.equal((await counts()).length, 1)
    assert.deepEqual(await newProcessCounts(engine)(), [])
  })
})

describe('GET /metrics', () => {
  let engine: ServedEngine
  let operator: OperatorServer

  before(async () => {
    engine = servedEngine(await openEngine(':memory:'))
    await engine.processes.put(process_definition)
    operator = await serveOperator(engine, {
      port: 0,
      limits: { reader_stalled_ms_max: 200 },
    })
  })
  after(async () => {
    await operator.drain()
    await engine.close()
  })

  const scrape = async (): Promise<string> => (await fetch(`${operator.url}/metrics`)).text()

  test('has each metric of the table, in the format 0.0.4 whatever is accepted', async () => {
    const accept = 'application/openmetrics-text; version=1.0.0'
    const response = await fetch(`${operator.url}/metrics`, { headers: { accept } })
    const type = response.headers.get('content-type')
    assert.equal(type, 'text/plain; version=0.0.4; charset=utf-8')
    const text = await response.text()
    const typed = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name)
    for (const { name } of all) assert.ok(typed.includes(name), name)
    for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds']) {
      assert.ok(typed.includes(name), name)
    }
  })

  test('HEAD has no body, other methods are refused', async () => {
    const ask = (method: string): Promise<Response> => fetch(`${operator.url}/metrics`, { method })
    const head = await ask('HEAD')
    assert.deepEqual([head.status, await head.text()], [200, ''])
    assert.ok(Number(head.headers.get('content-length')) > 1_000)
    assert.equal((await ask('DELETE')).status, 405)
  })

  test('any number at once share one text', async () => {
    const texts = await Promise.all(Array.from({ length: 20 }, scrape))
    const made = new Set(texts.map((text) => /nodejs_heap_size_used_bytes (\d+)/.exec(text)?.[1]))
    assert.ok(made.size <= 2, `${made.size} texts`)
  })

  test('what a caller sends makes no series', async () => {
    const series = (text: string): number => text.split('\n').length
    const before = series(await scrape())
    for (let n = 0; n < 50; n++) {
      const evil = `e${n}"} 1\nevil_total{a="`
      await Promise.all([
        engine.apply([{ type: evil, obj: evil, conv_id: evil, ref: evil, data: {} }]),
        engine.apply([{ type: 'modify', obj: 'task', conv_id, ref: evil, data: {} }], {
          user: evil,
        }),
        fetch(`${operator.url}/${encodeURIComponent(evil)}`),
        fetch(`${operator.url}/metrics?${encodeURIComponent(evil)}`, { method: 'REPORT' }),
      ])
    }
    const text = await newest((samples) => samples.get(refused) === 50)
    assert.doesNotMatch(text, /evil/)
    assert.ok(series(text) - before < 50, `${series(text) - before} more series`)
  })
  const refused = 'conveyor_requests_total{server="operator",code="not_found"}'

  /** The first text for which it holds; a text is made at most once a second. */
  async function newest(holds: (samples: Map<string, number>) => boolean): Promise<string> {
    for (;;) {
      const text = await scrape()
      if (holds(sampled(text))) return text
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  test('one who never reads is ended, and nobody else waits', async () => {
    const socket = connect(operator.address.port, '127.0.0.1')
    await once(socket, 'connect')
    socket.pause()
    // Far more than a connection takes unread.
    const asks = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(2_000)
    socket.write(asks)
    assert.ok((await scrape()).length > 1_000)
    // A paused socket learns of its end by writing.
    socket.on('error', () => {})
    const beat = setInterval(() => socket.write('x'), 20)
    await new Promise((resolve) => socket.once('close', resolve))
    clearInterval(beat)
  })

  test('promtool finds nothing to say of it', async (t) => {
    const { error, status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: await scrape(),
      encoding: 'utf8',
    })
    if (error !== undefined) return t.skip(`promtool is not on this machine (${error.message})`)
    assert.deepEqual([status, stdout, stderr], [0, '', ''])
  })
})
