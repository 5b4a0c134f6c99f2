/**
 * The incidents of the runbook (deploy/README.md), each played on an engine with a data file: which
 * line of the log it leaves, which metric moves, and what /readyz answers. The
 * runbook's table has the same rows.
 */

import assert from 'node:assert/strict'
import { copyFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect, isClientFault } from '../src/client.ts'
import { type Clock, systemClock } from '../src/core/clock.ts'
import { callback, defineProcess, end, go, after as whenAfter } from '../src/define.ts'
import type { Engine, EngineOptions } from '../src/engine/api/engine-api.ts'
import { serveGrpc } from '../src/grpc.ts'
import { serveHttp } from '../src/http.ts'
import { openEngine } from '../src/open.ts'
import { serveOperator } from '../src/operator.ts'
import { run, tempFolder } from './support/cli-run.ts'
import { fakeClock } from './support/fake-clock.ts'
import { makeClient, sharedAuthority } from './support/grpc-certs.ts'
import { openClient } from './support/grpc-client.ts'
import { linesLogger } from './support/handler-harness.ts'
import { sampled } from './support/metrics-samples.ts'
import { cellsOf, runbookRows, type Traces } from './support/runbook.ts'
import { eventually } from './support/waits.ts'

const folder = tempFolder()
after(() => folder.remove())
const day_ms = 86_400_000
/** Nobody listens there. */
const host_down = '127.0.0.1:1'

interface Played {
  readonly path: string
  readonly engine: Engine
  /** Lines besides those of the engine's log. */
  readonly told: string[]
  /** Closes the engine and opens the file again, with other options. */
  reopen(options: EngineOptions, meanwhile?: () => void): Promise<Engine>
  /** The code of a signed create over HTTP, with the user's secret or another. */
  create(secret?: string): Promise<string>
}

/** Its metric is above 0 then and was not before. */
interface Incident extends Traces {
  readonly options?: EngineOptions
  play(played: Played): Promise<void>
}

/** A clock that is a day ahead of everybody else's. */
const ahead: Clock = {
  now_ms: () => systemClock.now_ms() + day_ms,
  wake_at: (at_ms, fn) => systemClock.wake_at(at_ms - day_ms, fn),
}
/** The clock of an engine that did not run for a day, before it has done anything. */
const late = fakeClock(systemClock.now_ms())

const to = (to_node_id: string) => ({ type: 'go', to_node_id })
const final = { obj_type: 2, options: { save_task: true } }

/** start → work, with these logics → done, or bad. */
const work = (obj_id: number, logics: readonly object[]) => ({
  obj_id,
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [to('work')] } },
      { id: 'work', obj_type: 0, condition: { logics } },
      { id: 'done', ...final },
      { id: 'bad', ...final },
    ],
  },
})

const order = defineProcess({
  id: 1,
  nodes: {
    start: go('wait'),
    wait: [callback(), whenAfter({ hours: 1 }).go('done')],
    done: end({ save: true }),
  },
})

/** Creates a task and waits eventually it goes no further. */
async function finish(engine: Engine, conv_id: number): Promise<void> {
  const { obj_id } = await engine.create({ conv_id, data: {} })
  const target = { conv_id, obj_id: String(obj_id) }
  await eventually(async () => (await engine.task(target))?.status !== 'delayed')
}

const incidents: readonly Incident[] = [
  {
    incident: 'the disk is full',
    line: 'no_space',
    metric: 'conveyor_events_total{event="no_space"}',
    ready: '503 commit disk',
    options: { limits: { disk_free_bytes_min: Number.MAX_SAFE_INTEGER } },
    async play({ create }) {
      assert.equal(await create(), 'no_space')
    },
  },
  {
    incident: 'the key file is gone',
    line: 'key_missing',
    metric: 'conveyor_events_total{event="key_missing"}',
    ready: '503 key',
    async play({ path, create, reopen }) {
      renameSync(`${path}.key`, `${path}.key-away`)
      await reopen({})
      assert.equal(await create(), 'store_failed')
    },
  },
  {
    incident: 'the key file is that of another file',
    line: 'key_missing',
    metric: 'conveyor_events_total{event="key_missing"}',
    ready: '503 key',
    async play({ path, create, reopen }) {
      await reopen({}, () => writeFileSync(`${path}.key`, 'ab'.repeat(32)))
      assert.equal(await create(), 'store_failed')
    },
  },
  {
    incident: 'a certificate has expired',
    line: 'certificate_refused expired',
    metric: 'conveyor_events_total{event="certificate_refused"}',
    ready: '200',
    async play({ engine }) {
      const { ca, folder } = await sharedAuthority()
      const grpc = await serveGrpc(engine, { port: 0, tls: { folder } })
      const expired = await makeClient(ca, { from_days: -3, to_days: -1 })
      const client = openClient(grpc.address, { ca, client: expired })
      assert.equal(await client.statusOf('CreateTask', { conv_id: '1' }), 'UNAVAILABLE')
      client.close()
      await grpc.drain()
    },
  },
  {
    incident: 'a handler hangs',
    line: 'handler_repeats handler_timeout',
    metric: 'conveyor_jobs_total{kind="handler",result="repeated"}',
    ready: '200',
    async play({ engine }) {
      const hang = () => new Promise<never>(() => {})
      engine.handle('1/wait', hang, { time_ms_max: 10, attempts_max: 2, backoff_ms: 10 })
      await finish(engine, 1)
    },
  },
  {
    incident: 'the endpoint of a call is down',
    line: 'call_gave_up api_bad_answer',
    metric: 'conveyor_jobs_total{kind="call",result="gave_up"}',
    ready: '200',
    options: { allow_hosts: [host_down] },
    async play({ engine }) {
      const call = { type: 'api', url: `http://${host_down}`, err_node_id: 'bad' }
      await engine.processes.put(work(2, [call, to('done')]))
      await finish(engine, 2)
    },
  },
  {
    incident: 'many timers are due at once',
    metric: 'conveyor_due_lag_seconds',
    ready: '200',
    async play({ engine, reopen }) {
      const op = { type: 'create', obj: 'task', conv_id: 1, data: {} } as const
      await engine.apply(Array.from({ length: 1_000 }, () => op))
      late.hold()
      late.advance(day_ms)
      await reopen({ clock: late })
    },
  },
  {
    incident: 'a task moves for ever',
    line: 'task_failed loop',
    metric: 'conveyor_tasks_failed_total',
    ready: '200',
    options: { limits: { moves_without_rest_max: 100 } },
    async play({ engine }) {
      await engine.processes.put(work(3, [to('work')]))
      await finish(engine, 3)
    },
  },
  {
    incident: 'the clock of the machine is wrong',
    line: 'request_refused stale_timestamp',
    metric: 'conveyor_requests_total{server="http",code="stale_timestamp"}',
    ready: '200',
    options: { clock: ahead },
    async play({ create }) {
      assert.equal(await create(), 'stale_timestamp')
    },
  },
  {
    incident: 'a client has a wrong secret',
    line: 'request_refused bad_signature',
    metric: 'conveyor_requests_total{server="http",code="bad_signature"}',
    ready: '200',
    async play({ create }) {
      assert.equal(await create('another'), 'bad_signature')
    },
  },
  {
    incident: 'a process is paused',
    line: 'process_paused',
    metric: 'conveyor_ops_total{type="create",code="conveyor_is_not_active"}',
    ready: '200',
    async play({ engine, create }) {
      await engine.processes.pause(1)
      assert.equal(await create(), 'conveyor_is_not_active')
    },
  },
  {
    incident: 'a process makes tasks without end',
    line: 'process_full',
    metric: 'conveyor_events_total{event="process_full"}',
    ready: '200',
    options: { limits: { process_tasks_max: 100 } },
    async play({ engine, create }) {
      await engine.processes.put(
        work(3, [{ type: 'api_copy', mode: 'create', conv_id: 3, data: {} }]),
      )
      await engine.create({ conv_id: 3, data: {} })
      for (;;) {
        const { proc } = await engine.create({ conv_id: 3, data: {} })
        if (proc === 'too_many_tasks') break
      }
      assert.equal(await create(), 'ok')
    },
  },
  {
    incident: 'the disk is slow',
    line: 'slow_commit',
    metric: 'conveyor_events_total{event="slow_commit"}',
    ready: '200',
    options: { limits: { slow_commit_ms: 0 } },
    async play({ create }) {
      assert.equal(await create(), 'ok')
    },
  },
  {
    incident: 'open files run out',
    metric: 'process_open_fds',
    async play() {},
  },
  {
    incident: 'the process was killed, as when memory runs out',
    line: 'recovered',
    metric: 'conveyor_events_total{event="recovered"}',
    ready: '200',
    async play({ path, create, reopen }) {
      assert.equal(await create(), 'ok')
      const ends = ['', '-log-0', '-log-1']
      for (const end of ends) copyFileSync(path + end, `${path}-killed${end}`)
      await reopen({}, () => {
        for (const end of ends) copyFileSync(`${path}-killed${end}`, path + end)
      })
    },
  },
  {
    incident: 'a file was copied without its commit log',
    line: 'was copied without its commit log',
    async play({ path, engine, told }) {
      await engine.create({ conv_id: 1, data: {} })
      copyFileSync(path, `${path}-copy`)
      const { exit, err } = await run(['serve', '--http', 'off', '--db', `${path}-copy`])
      assert.equal(exit, 3)
      told.push(...err.split(/copy | and |,/))
    },
  },
]

for (const [at, { incident, line, metric, ready, options = {}, play }] of incidents.entries()) {
  test(incident, async () => {
    const path = join(folder.path, `${at}.lmdb`)
    const kept = linesLogger()
    const logger = { ...kept, info: (fields: object) => void kept.lines.push(['info', fields]) }
    const open = (given: EngineOptions): Promise<Engine> =>
      openEngine(path, { ...options, ...given, logger })
    const setup = await openEngine(path)
    await setup.processes.put(order)
    const { id: user, secret } = await setup.users.add()
    await setup.processes.share('1', user)
    await setup.close()

    let engine = await open({})
    const create = async (given = secret): Promise<string> => {
      const http = await serveHttp(engine, { port: 0 })
      const client = await connect({ url: http.url, user, secret: given, retries_max: 0 })
      try {
        return (await client.create({ conv_id: 1, data: {} })).proc
      } catch (error) {
        if (isClientFault(error)) return error.code
        throw error
      } finally {
        await client.close()
        await http.drain()
      }
    }
    const reopen = async (given: EngineOptions, meanwhile?: () => void): Promise<Engine> => {
      await engine.close()
      meanwhile?.()
      engine = await open(given)
      return engine
    }
    try {
      const told: string[] = []
      await play({ path, engine, told, reopen, create })
      const lines = logger.lines.map(([, fields]) => {
        const { event, code } = fields as { event: string; code?: string }
        return code === undefined ? event : `${event} ${code}`
      })
      if (line !== undefined)
        assert.ok([...told, ...lines].includes(line), told.concat(lines).join('\n'))
      const operator = await serveOperator(engine, { port: 0 })
      const answer = await fetch(`${operator.url}/readyz`)
      const { checks } = (await answer.json()) as { checks: Record<string, { ok: boolean }> }
      const failing = Object.entries(checks).flatMap(([name, { ok }]) => (ok ? [] : [name]))
      if (ready !== undefined) assert.equal([answer.status, ...failing].join(' '), ready)
      const samples = sampled(await (await fetch(`${operator.url}/metrics`)).text())
      if (metric !== undefined) assert.ok((samples.get(metric) ?? 0) > 0, metric)
      await operator.drain()
    } finally {
      late.release()
      await engine.close()
    }
  })
}

test('the runbook has the same rows', () => {
  assert.deepEqual(runbookRows('incidents'), incidents.map(cellsOf))
})
