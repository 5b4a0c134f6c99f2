/**
 * Nodes over one PostgreSQL: what becomes of calls, data and names where the owner hands over, is
 * killed, stops for longer than its lease, or loses its database.
 */
import assert from 'node:assert/strict'
import { copyFile, rm } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { signatureOf } from '../src/codec/signature.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { serveGrpc } from '../src/grpc.ts'
import { serveHttp } from '../src/http.ts'
import { killed, openNode, startChildNode, waiting } from './support/cluster-nodes.ts'
import { sharedAuthority } from './support/grpc-certs.ts'
import { openClient } from './support/grpc-client.ts'
import { user } from './support/http-server.ts'
import { no_postgres, type Postgres, startPostgres } from './support/postgres.ts'
import { initPartition } from './support/postgres-open.ts'
import { startRelay } from './support/relay.ts'
import { quickFolder } from './support/store-folder.ts'
import { type EventLine, withEvents } from './support/told-events.ts'

const conv_id = waiting.obj_id
const create = (engine: Engine, ref: string) => engine.create({ conv_id, ref, data: {} })
const changes_read = 5
const long_lease_ms = 60_000
const codeOf = (error: { readonly code: string }): string => error.code

describe('a cluster', { skip: no_postgres ?? false }, () => {
  let postgres: Postgres
  let folder: string
  before(async () => {
    postgres = await startPostgres()
    folder = await quickFolder('conveyor-nodes-')
  })
  after(async () => {
    await postgres.remove()
    await rm(folder, { recursive: true, force: true })
  })

  /** A database with a cluster of its own, and where its nodes have their files. */
  async function newCluster() {
    const url = await postgres.createDatabase()
    await initPartition(url, 0)
    return { url, place: await quickFolder('nodes-') }
  }

  test('a hand-over under load loses nothing and doubles nothing', async () => {
    const { url, place } = await newCluster()
    const names = ['a', 'b'] as const
    let node = openNode(place, { url, node: 'a' })
    let owner = await node.opened
    await owner.processes.put(waiting, { conv_id })
    await owner.users.add({ id: '1', name: 'u' })
    await copyFile(`${place}/a.lmdb.key`, `${place}/b.lmdb.key`)
    const positions = async (): Promise<string[]> => {
      const found: string[] = []
      for await (const { position } of owner.changes({ from: 'start' })) {
        found.push(position)
        if (found.length === changes_read) break
      }
      return found
    }
    for (let n = 0; n < changes_read; n++) await create(owner, `first${n}`)
    const read_first = await positions()
    const answered: string[] = []
    const unknown: string[] = []
    let count = 0
    let is_over = false
    async function load(): Promise<void> {
      while (!is_over) {
        const ref = `r${count++}`
        try {
          const { proc } = await create(owner, ref)
          if (proc === 'ok') answered.push(ref)
        } catch {
          unknown.push(ref)
        }
        await sleep(2)
      }
    }
    const loads = Array.from({ length: 4 }, load)
    for (let round = 1; round <= 4; round++) {
      const next = openNode(place, { url, node: names[round % 2] as string })
      await next.role('standby')
      const closing = owner.close()
      owner = await next.opened
      await closing
      node = next
    }
    is_over = true
    await Promise.all(loads)
    for (const ref of answered) assert.ok(await owner.task({ conv_id, ref }), ref)
    const { total } = await owner.tasks.count({ conv_id })
    assert.ok(
      total >= answered.length && total <= count + changes_read,
      `${answered.length}, ${total}, ${count}`,
    )
    assert.deepEqual((await owner.check()).breaches, [])
    assert.equal(node.log.status().epoch, 5)
    assert.equal((await owner.users.list()).length, 1)
    assert.deepEqual(await positions(), read_first, 'the feed goes on at the next owner')
    await owner.close()
    await rm(place, { recursive: true })
  })

  test('an owner that is to hand over merges what its data file lacks while it still answers', async () => {
    const { url, place } = await newCluster()
    const told: string[] = []
    const keep = (fields: object): void => void told.push((fields as EventLine).event)
    const logger = { debug: keep, info: keep, warn: keep, error: keep }
    const { log, opened } = openNode(place, { url, node: 'a', lease_ms: 1_000 }, { logger })
    const owner = await opened
    await owner.processes.put(waiting, { conv_id })
    const asked = new Promise<void>((resolve) => void log.onHandOver(resolve))
    assert.equal(told.includes('checkpoint'), false)
    const database = new URL(url).pathname.slice(1)
    await postgres.sql(`UPDATE conveyor.owner SET hand_over_to = '*'`, [], database)
    await asked
    assert.ok(told.includes('checkpoint'))
    assert.equal((await create(owner, 'x')).proc, 'ok')
    await owner.close()
    await rm(place, { recursive: true })
  })

  test('a stopped owner answers nothing once another has taken over, nor does a killed one', async () => {
    const { url, place } = await newCluster()
    const first = startChildNode(place, url, 'a')
    assert.equal((await first.line()).role, 'owner')
    const standby = openNode(place, { url, node: 'b', lease_ms: long_lease_ms })
    await standby.role('standby')
    first.child.kill('SIGSTOP')
    // They are in its pipe when it wakes up, before any timer of it has rung.
    for (const ref of ['x1', 'x2']) first.ask(`show ${ref}`)
    for (const ref of ['y1', 'y2']) first.ask(`create ${ref}`)
    const stopped_ms = performance.now()
    const owner = await standby.opened
    const took_ms = performance.now() - stopped_ms
    assert.ok(took_ms < long_lease_ms, `it waits for the lease of the owner alone: ${took_ms} ms`)
    await owner.processes.put(waiting, { conv_id })
    assert.equal((await create(owner, 'x1')).proc, 'ok')
    first.child.kill('SIGCONT')
    for (let n = 0; n < 4; n++) {
      const { code } = await first.line()
      assert.match(String(code), /^(?:overloaded|store_failed)$/)
    }
    assert.equal((await owner.tasks.count({ conv_id })).total, 1)
    await owner.close()
    const { role } = await first.line()
    assert.equal(role, 'owner', 'the node that was stopped has become a standby')
    let shown: Record<string, unknown> = {}
    do {
      first.ask('show x1')
      shown = await first.line()
    } while (shown.code === 'overloaded')
    assert.equal(shown.answer, 'found')

    const next = openNode(place, { url, node: 'b', lease_ms: long_lease_ms })
    await next.role('standby')
    await killed(first.child)
    const last = await next.opened
    assert.equal((await last.tasks.count({ conv_id })).total, 1)
    await last.close()
    await rm(place, { recursive: true })
  })

  test('two nodes that start at once on an empty partition are one owner and one standby', async () => {
    const { url, place } = await newCluster()
    const nodes = ['a', 'b'].map((node) => openNode(place, { url, node }))
    const first = await Promise.race(nodes.map(({ opened }) => opened))
    await first.processes.put(waiting, { conv_id })
    const standby = nodes.find(({ log }) => log.status().role !== 'owner')
    await standby?.role('standby')
    assert.equal(nodes.filter(({ log }) => log.status().role === 'owner').length, 1)
    standby?.log.leave()
    await assert.rejects(standby?.opened as Promise<Engine>, { code: 'shutting_down' })
    await first.close()
    await rm(place, { recursive: true })
  })

  test('a database that has lost what was committed is not gone on with', async () => {
    const { url, place } = await newCluster()
    const database = new URL(url).pathname.slice(1)
    const [, events] = await withEvents(async () => {
      const node = openNode(place, { url, node: 'a' })
      const owner = await node.opened
      const standby = openNode(place, { url, node: 'b' })
      await owner.processes.put(waiting, { conv_id })
      for (const ref of ['x', 'y']) await create(owner, ref)
      const { seq } = node.log.status()
      while (standby.log.status().seq < seq) await sleep(20)
      await postgres.sql('DELETE FROM conveyor.log WHERE seq = $1', [seq], database)
      await breakOff(postgres, database)
      await assert.rejects(create(owner, 'z'), (error: Error & { code: string }) => {
        assert.equal(error.code, 'store_failed')
        assert.match(
          error.message,
          /the database has lost what was committed after position \d+, .*: keep this file/,
        )
        return true
      })
      await assert.rejects(standby.opened, { code: 'not_possible', message: /keep this file/ })
      await owner.close()
    })
    assert.ok(events.some(({ event }: EventLine) => event === 'log_set_back'))
    await rm(place, { recursive: true })
  })

  test('names and files of others are refused, and leases that are too short', async () => {
    const { url, place } = await newCluster()
    const other = await newCluster()
    const node = openNode(place, { url, node: 'a' })
    const owner = await node.opened
    const rows: readonly (readonly [RegExp, () => Promise<unknown>])[] = [
      [
        /^another node is named a and runs at a:1: give each node a name/,
        () => openNode(other.place, { url, node: 'a' }).opened,
      ],
      [/an engine has the commit log of node a already/, () => node.log.open({} as never)],
      [
        /takes \d+ ms to answer, too long for a lease of 150 ms: set one of at least \d+ ms/,
        async () => {
          const to = { host: postgres.host, port: postgres.port }
          const relay = await startRelay(to, { there_ms: 40, back_ms: 40 })
          const slow = new URL(url)
          slow.port = String(relay.port)
          await openNode(other.place, { url: slow.href, node: 'c', lease_ms: 150 }).opened.finally(
            () => relay.close(),
          )
        },
      ],
    ]
    for (const [message, open] of rows)
      await assert.rejects(open, { code: 'not_possible', message })
    await owner.close()
    await copyFile(`${place}/a.lmdb`, `${place}/d.lmdb`)
    await assert.rejects(openNode(place, { url: other.url, node: 'd' }).opened, {
      ...{ code: 'not_possible', message: /is the copy of a node of another cluster or partition/ },
    })
    for (const one of [place, other.place]) await rm(one, { recursive: true })
  })

  test('a node without the key of the others is refused, or waits for it', async () => {
    const { url, place } = await newCluster()
    const node = openNode(place, { url, node: 'a' })
    const owner = await node.opened
    const standby = openNode(place, { url, node: 'b' })
    await standby.role('standby')
    await owner.users.add({ id: '1', name: 'u' })
    while (standby.log.status().unfit === undefined) await sleep(20)
    assert.match(String(standby.log.status().unfit), /b\.lmdb\.key is missing: give each node the/)
    await assert.rejects(openNode(place, { url, node: 'c' }).opened, { code: 'key_missing' })
    await owner.close()
    await copyFile(`${place}/a.lmdb.key`, `${place}/b.lmdb.key`)
    const next = await standby.opened
    assert.equal((await next.users.list()).length, 1)
    await next.close()
    await rm(place, { recursive: true })
  })

  test('while the database is away nothing is answered, and what was admitted is afterwards', async () => {
    const { url, place } = await newCluster()
    const options = { url, node: 'a', lease_ms: 2_000 }
    const node = openNode(place, options, { limits: { drain_ms_max: 500 } })
    const owner = await node.opened
    await owner.processes.put(waiting, { conv_id })
    assert.equal((await create(owner, 'x')).proc, 'ok')
    const { secret } = await owner.users.add({ id: user })
    await owner.processes.share(conv_id, user)
    const http = await serveHttp(owner, { port: 0 })
    const certificates = await sharedAuthority()
    const grpc = await serveGrpc(owner, { port: 0, tls: { folder: certificates.folder } })
    const client = openClient(grpc.address, certificates)
    const gone = postgres.kill()
    const admitted = create(owner, 'y')
    await gone
    while (node.log.status().has_lease) await sleep(20)
    for (const call of [create(owner, 'z'), owner.task({ conv_id, ref: 'x' })]) {
      assert.equal(await call.then(() => 'answered', codeOf), 'overloaded')
    }
    for (const type of ['create', 'show']) {
      const body = JSON.stringify({ ops: [{ type, obj: 'task', conv_id, ref: 'x', data: {} }] })
      const at_s = String(Math.floor(Date.now() / 1000))
      const path = `/api/1/json/${user}/${at_s}/${signatureOf(at_s, secret, body)}`
      const response = await fetch(`${http.url}${path}`, { method: 'POST', body })
      assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '1'])
      const op = { [type]: { conv_id, ref: 'x', data: {} } }
      assert.equal(await client.statusOf('ApplyOps', { ops: [op] }), 'UNAVAILABLE')
    }
    await postgres.start()
    assert.equal((await admitted).proc, 'ok')
    while (!node.log.status().has_lease) await sleep(20)
    assert.ok(await owner.task({ conv_id, ref: 'y' }))
    client.close()
    await Promise.all([http.drain(), grpc.drain()])
    const gone_again = postgres.kill()
    const lost = create(owner, 'z').then(({ proc }) => proc, codeOf)
    await gone_again
    const began_ms = performance.now()
    await owner.close()
    assert.equal(await lost, 'store_failed')
    assert.ok(performance.now() - began_ms < 10_000)
    await rm(place, { recursive: true })
  })
})

async function breakOff(postgres: Postgres, database: string): Promise<void> {
  await postgres.sql(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1',
    [database],
    'postgres',
  )
}
