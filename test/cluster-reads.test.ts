/**
 * Reads of a standby (`EngineOptions.stale_reads`): two nodes over a PostgreSQL of the test. What
 * the owner commits is found at the standby from its position on, what an engine keeps in memory
 * included; whatever would change something is refused; and no read goes back, also while the
 * ownership goes from one node to the other.
 */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { connect } from '../src/client.ts'
import { signatureOf } from '../src/codec/signature.ts'
import type { Engine, EngineOptions } from '../src/engine/api/engine-api.ts'
import { type ServedEngine, servedEngine } from '../src/engine/served-engine.ts'
import { type GrpcServer, serveGrpc } from '../src/grpc.ts'
import { type HttpServer, serveHttp } from '../src/http.ts'
import { openEngine } from '../src/open.ts'
import { type PostgresLog, postgresLog } from '../src/postgres.ts'
import { loadSchema } from '../src/server/grpc/schema.ts'
import { serveNodeOperator } from '../src/server/operator/server.ts'
import { tempFolder } from './support/cli-run.ts'
import { newCluster } from './support/database-cluster.ts'
import { freePort } from './support/free-port.ts'
import { openClient } from './support/grpc-client.ts'
import { process_definition } from './support/http-server.ts'
import { no_postgres, type Postgres, startPostgres } from './support/postgres.ts'
import { secretsOf } from './support/secrets-of.ts'
import { eventually } from './support/waits.ts'

const conv_id = '1234'
const user = '13000'
const options = { secret_key: 'ab'.repeat(32) }

interface Node {
  readonly log: PostgresLog
  readonly engine: Promise<Engine>
  /** The newest one; resolves while this node is a standby. */
  reader(): Promise<ServedEngine>
}

/** So long that a busy machine does not let it run out. */
const lease_ms = 5_000

describe('reads of a standby', { skip: no_postgres ?? false }, () => {
  const folder = tempFolder()
  let postgres: Postgres
  let url: string
  let [a, b] = [] as unknown as [Node, Node]
  let owner: Engine
  let reader: ServedEngine
  let http: HttpServer | undefined
  let grpc: GrpcServer | undefined
  let [http_port, grpc_port] = [0, 0]
  let secret: string

  function openNode(
    name: string,
    more: EngineOptions['stale_reads'] & object = { use() {} },
  ): Node {
    const log = postgresLog({ url, node: name, address: `${name}.local:1`, lease_ms })
    let now: Engine | undefined
    const stale_reads: EngineOptions['stale_reads'] = {
      ...more,
      use(opened) {
        now = opened
        return more.use(opened)
      },
    }
    const path = join(folder.path, `${name}.lmdb`)
    const engine = openEngine(path, { ...options, commit_log: log, stale_reads })
    return {
      ...{ log, engine },
      async reader() {
        await eventually(() => now !== undefined)
        return servedEngine(now as Engine)
      },
    }
  }

  before(async () => {
    postgres = await startPostgres()
    const cluster = await newCluster(postgres)
    url = cluster.url
    await cluster.sql("UPDATE conveyor.owner SET node = '', released = true")
    a = openNode('a')
    owner = await a.engine
    await owner.processes.put(process_definition)
    secret = (await owner.users.add({ id: user })).secret
    await owner.processes.share(conv_id, user)
    http_port = await freePort()
    grpc_port = await freePort()
    b = openNode('b', { use: serve })
    b.engine.catch(() => {})
    reader = await b.reader()
    await eventually(() => grpc !== undefined)
  })
  after(async () => {
    for (const { log } of [a, b]) log?.leave()
    await serve(undefined)
    for (const { engine } of [a, b]) await engine?.then((opened) => opened.close()).catch(() => {})
    await postgres.remove()
    folder.remove()
  })

  /** At the same ports, whoever answers. */
  async function serve(engine: Engine | undefined): Promise<void> {
    await Promise.all([http?.drain(), grpc?.drain()])
    grpc = undefined
    http = engine && (await serveHttp(engine, { port: http_port }))
    grpc = engine && (await serveGrpc(engine, { port: grpc_port, plain: true }))
  }

  /** Waits for what the owner has committed. */
  const followed = async (): Promise<void> => {
    const { seq } = a.log.status()
    await eventually(() => (reader.staleness?.().seq ?? 0) >= seq)
  }

  async function post(ops: readonly object[], how: { secret?: string; role?: string } = {}) {
    const body = JSON.stringify({ ops })
    const time = String(Math.floor(Date.now() / 1_000))
    const signature = signatureOf(time, how.secret ?? secret, body)
    const response = await fetch(
      `http://127.0.0.1:${http_port}/api/2/json/${user}/${time}/${signature}`,
      {
        ...{ method: 'POST', body },
        headers: how.role === undefined ? {} : { 'Conveyor-Role': how.role },
      },
    )
    const read = (await response.json()) as { request_proc: string; description?: string } & {
      ops: readonly { proc: string; status?: string; data?: { n?: number } }[]
    }
    const says = read.request_proc === 'ok' ? read.ops.map(({ proc }) => proc) : read.request_proc
    return { status: response.status, headers: response.headers, says: String(says), ...read }
  }

  const show = (ref: string) => ({ type: 'show', obj: 'task', conv_id, ref })
  const create = (ref: string) => ({ type: 'create', obj: 'task', conv_id, ref, data: {} })

  test('an answer says from which position it is, and how old it may be', async () => {
    await owner.create({ conv_id, ref: 'one', data: { n: 1 } })
    await followed()
    const { status, headers, says } = await post([show('one')])
    assert.deepEqual([status, says], [200, 'ok'])
    assert.equal(headers.get('conveyor-role'), 'standby')
    assert.equal(Number(headers.get('conveyor-position')), a.log.status().seq)
    const age_ms = Number(headers.get('conveyor-age-ms'))
    assert.ok(age_ms >= 0 && age_ms < 10_000, `${age_ms}`)
  })

  test('what the owner changes is so at the standby from the position of its frame on', async (t) => {
    let other = ''
    const rows: readonly [string, () => Promise<unknown>, () => Promise<unknown>, unknown][] = [
      [
        'a new secret of a user',
        async () => {
          other = (await owner.users.rotate(user)).secret
        },
        async () => [(await post([show('one')], { secret: other })).says, (await post([])).says],
        ['ok', 'bad_signature'],
      ],
      [
        'a right that was taken away',
        () => owner.processes.unshare(conv_id, user),
        async () => (await post([show('one')], { secret: other })).says,
        'access_denied',
      ],
      [
        'a right that was given',
        () => owner.processes.share(conv_id, user),
        async () => (await post([show('one')], { secret: other })).says,
        'ok',
      ],
      [
        'which signature a user may use',
        () => owner.users.sign(user, 'hmac'),
        async () => (await post([show('one')], { secret: other })).says,
        'bad_signature',
      ],
      [
        'a certificate that is bound',
        () => owner.users.bind(user, 'cn:shop'),
        async () => reader.callerOf(['cn:shop'], true),
        { user },
      ],
      [
        'a certificate that is refused',
        () => owner.users.unbind('cn:shop'),
        async () => reader.callerOf(['cn:shop'], false),
        undefined,
      ],
      [
        'a user who was removed',
        () => owner.users.remove(user),
        async () => [(await reader.users.list()).length, secretsOf(reader, user)],
        [0, []],
      ],
      [
        'a user who was added',
        async () => {
          secret = (await owner.users.add({ id: user })).secret
          await owner.processes.share(conv_id, user)
        },
        async () => (await post([show('one')])).says,
        'ok',
      ],
      [
        'a process that is paused',
        () => owner.processes.pause(conv_id),
        async () => (await reader.processes.show(conv_id)).status,
        'paused',
      ],
      [
        'a new version of a process',
        () => owner.processes.put({ ...process_definition, title: 'renamed' }),
        async () => (await reader.processes.list()).map(({ title, version }) => [title, version]),
        [['renamed', 2]],
      ],
      [
        'an alias',
        () => owner.processes.setAlias('orders', conv_id),
        async () => (await reader.processes.aliases()).length,
        1,
      ],
      [
        'how many tasks there are',
        async () => {
          await owner.processes.resume(conv_id)
          await owner.create({ conv_id, ref: 'two', data: {} })
        },
        async () => {
          const { tasks } = await reader.tasks.list({ conv_id })
          const { by_status } = await reader.tasks.count({ conv_id })
          const task = await reader.task({ conv_id, ref: 'two' })
          return [tasks.map(({ ref }) => ref), by_status.delayed, task?.history?.length]
        },
        [['one', 'two'], 2, 2],
      ],
    ]
    for (const [what, change, found, wanted] of rows) {
      await t.test(what, async () => {
        await change()
        await followed()
        assert.deepEqual(await found(), wanted)
      })
    }
  })

  test('the operator’s page may be looked at there, and changes nothing', async () => {
    const { id, secret: own } = await owner.users.add()
    await owner.users.console(id, 'administer')
    const obj_id = (await owner.create({ conv_id, ref: 'seen', data: {} })).obj_id as string
    await followed()
    const source = { emit: reader.emit, limits: reader.limits }
    const operator = await serveNodeOperator(b.log, source, { port: 0 })
    operator.read(reader)
    let headers: Record<string, string> = { 'Content-Type': 'application/json' }
    const call = async (name: string, body: object): Promise<string> => {
      const url = `${operator.page}api/${name}`
      const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
      const [cookie] = answer.headers.get('set-cookie')?.split(';') ?? []
      if (cookie !== undefined) headers = { ...headers, cookie }
      return `${answer.status} ${await answer.text()}`
    }
    const signed_in = await call('sign_in', { user: id, secret: own })
    assert.match(signed_in, /^200 .*"right":"administer"/)
    headers['X-Conveyor-Token'] = JSON.parse(signed_in.slice(4)).token
    const rows: readonly (readonly [name: string, body: object, says: RegExp])[] = [
      ['tasks', { conv_id }, /^200 .*"ref":"seen"/],
      ['task', { obj_id }, /^200 .*"status":"delayed"/],
      ['process', { conv_id }, /^200 .*"drawing"/],
      ['frame', { view: 'overview' }, /^200 .*"processes":\[\{/],
      ['frame', { view: 'process', conv_id }, /^200 .*"nodes":\[\{/],
      ['cancel', { conv_id, obj_id }, /^503 .*"overloaded"/],
      ['modify', { conv_id, obj_id, data_text: '{}' }, /^503 .*"overloaded"/],
      ['pause', { conv_id }, /^503 .*"overloaded"/],
    ]
    for (const [name, body, says] of rows) assert.match(await call(name, body), says, name)
    operator.read(undefined)
    assert.match(await call('tasks', {}), /^503 .*"overloaded","description":"[^"]*\ba\b/)
    await operator.drain()
  })

  test('a request that would change something is refused as a whole, and not applied', async () => {
    const { seq } = a.log.status()
    const refused = [503, 'overloaded', 'this node is a standby: it answers reads only', '1']
    for (const ops of [[create('new')], [show('one'), { ...create('one'), type: 'modify' }]]) {
      const { status, says, description, headers } = await post(ops)
      assert.deepEqual([status, says, description, headers.get('retry-after')], refused)
      assert.equal(headers.get('conveyor-role'), 'standby')
    }
    for (const path of [`public/${conv_id}`, `callback/${conv_id}/wait`]) {
      const at = `http://127.0.0.1:${http_port}/api/1/json/${path}/${'a'.repeat(40)}`
      const response = await fetch(at, { method: 'POST', body: '{}' })
      const { request_proc } = (await response.json()) as { request_proc: string }
      assert.equal(request_proc, 'overloaded', `${path}: an address that may be new`)
    }
    const says = /^the node b is a standby; the owner is a at a\.local:1; it answers reads only$/
    const calls: readonly (() => unknown)[] = [
      () => reader.create({ conv_id, ref: 'new', data: {} }),
      () => reader.apply([show('one'), create('new')]),
      () => reader.tasks.cancel({ conv_id, ref: 'one' }),
      () => reader.users.rotate(user),
      () => reader.users.rekey(),
      () => reader.processes.pause(conv_id),
      () => reader.processes.put(process_definition),
      () => reader.result({ conv_id, ref: 'one' }),
      () => reader.changes(),
      () => reader.backup(join(folder.path, 'copy')),
    ]
    for (const call of calls) {
      await assert.rejects(async () => call(), { code: 'overloaded', message: says })
    }
    assert.equal(a.log.status().seq, seq, 'nothing was committed')
  })

  test('over gRPC: positions in the metadata, refusals as UNAVAILABLE', async () => {
    const { client, ...calls } = openClient(`127.0.0.1:${grpc_port}`)
    const { GetTask } = loadSchema().service
    const ask = (role?: string): Promise<readonly [Metadata | undefined, ServiceError | null]> =>
      new Promise((resolve) => {
        let told: Metadata | undefined
        const metadata = new Metadata()
        if (role !== undefined) metadata.set('conveyor-role', role)
        const { path, requestSerialize, responseDeserialize } = GetTask
        const call = client.makeUnaryRequest(
          ...([path, requestSerialize, responseDeserialize] as const),
          ...([{ conv_id, ref: 'one' }, metadata] as const),
          (error: ServiceError | null) => resolve([told, error]),
        )
        call.on('metadata', (received: Metadata) => {
          told = received
        })
      })
    const [told, error] = await ask()
    assert.equal(error, null)
    const { 'conveyor-role': role, 'conveyor-position': position } = told?.getMap() ?? {}
    assert.deepEqual([role, position], ['standby', String(a.log.status().seq)])
    assert.ok(Number(told?.get('conveyor-age-ms')[0]) >= 0)
    const [, for_owner] = await ask('owner')
    assert.equal(for_owner?.code, status.UNAVAILABLE)
    assert.match(for_owner?.details ?? '', /^shutting_down: this node is a standby/)
    const target = { conv_id, ref: 'one' }
    assert.deepEqual(
      [
        await calls.statusOf('ListTasks', {}),
        await calls.statusOf('CreateTask', { conv_id, ref: 'new', data: '{}' } as never),
        await calls.statusOf('CancelTask', target),
        await calls.statusOf('WaitTask', target),
      ],
      ['OK', 'UNAVAILABLE', 'UNAVAILABLE', 'UNAVAILABLE'],
    )
    const stream = calls.stream()
    const answer = new Promise((resolve) => stream.once('data', resolve))
    stream.write({ seq: 1, ops: [{ create: { conv_id, ref: 'new' } }] } as never)
    assert.equal(((await answer) as { proc: string }).proc, 'overloaded')
    stream.end()
    calls.close()
  })

  test('a client of several addresses does not take a standby for the owner', async () => {
    const at_owner = await serveHttp(owner, { port: 0 })
    const standby_url = `http://127.0.0.1:${http_port}`
    const client = await connect({ url: [standby_url, at_owner.url], user, secret })
    const { proc } = await client.create({ conv_id, ref: 'three', data: {} })
    assert.equal(proc, 'ok')
    assert.equal((await client.apply([show('three') as never]))[0]?.proc, 'ok')
    await client.close()
    await at_owner.drain()
    const health = await fetch(`${standby_url}/healthz`)
    assert.deepEqual([health.status, health.headers.get('conveyor-role')], [503, 'standby'])
    assert.equal((await post([show('one')], { role: 'owner' })).says, 'shutting_down')
  })

  test('no read goes back while the ownership goes over to the one that was read', async () => {
    const refs = Array.from({ length: 60 }, (_, n) => `c${n}`)
    let acknowledged = 0
    let seen = 0
    let position = 0
    const roles = new Set<string | null>()
    const read = async (): Promise<void> => {
      const before = acknowledged
      const answer = await post(refs.map(show)).catch(() => undefined)
      if (answer?.status !== 200) return
      const procs = answer.ops.map(({ proc }) => proc)
      const found = procs.filter((proc) => proc === 'ok').length
      assert.ok(!procs.slice(0, found).includes('not_found_task'), 'each with all before it')
      assert.ok(found >= seen, `${found} after ${seen}`)
      seen = found
      const role = answer.headers.get('conveyor-role')
      roles.add(role)
      if (role === null) assert.ok(found >= before, 'an owner answers with all')
      else {
        const at = Number(answer.headers.get('conveyor-position'))
        assert.ok(at >= position, `${at} after ${position}`)
        position = at
      }
    }
    const write = async (): Promise<void> => {
      for (const ref of refs.slice(0, 30)) {
        await owner.create({ conv_id, ref, data: {} })
        acknowledged++
      }
      await eventually(() => seen > 0)
      await owner.close()
      owner = await b.engine
      await serve(owner)
      for (const ref of refs.slice(30)) {
        await owner.create({ conv_id, ref, data: {} })
        acknowledged++
      }
    }
    const written = write()
    await eventually(async () => {
      await read()
      return seen === refs.length
    })
    await written
    assert.deepEqual(roles, new Set(['standby', null]))
  })

  test('a standby whose database is away says so, and refuses what is too old', async () => {
    a = openNode('a', { use() {}, age_ms_max: 500 })
    a.engine.catch(() => {})
    const limited = await a.reader()
    const look = () => limited.task({ conv_id, ref: 'c59' })
    assert.equal((await look())?.ref, 'c59')
    await postgres.stop()
    await eventually(() => limited.health() === 'overloaded')
    await assert.rejects(look, { message: /^what this standby has may be [0-9]+ ms old; ask/ })
    assert.ok((limited.staleness?.().age_ms ?? 0) >= 500)
    await postgres.start()
    await eventually(() => limited.health() === 'ok')
    assert.equal((await look())?.ref, 'c59')
  })
})
