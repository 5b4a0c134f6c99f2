/**
 * The database of a cluster is lost for good: the data of its nodes, running, stopped and started
 * again, is had by the documented commands, and none of them lets two owners diverge by accident.
 */
import { eventually } from './support/waits.ts'
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync } from 'node:fs'
import { test } from 'node:test'
import type { EngineOptions } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { run } from './support/cli-run.ts'
import { openNode, type TestNode, waiting } from './support/cluster-nodes.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { initPartition } from './support/postgres-open.ts'
import { startRelay } from './support/relay.ts'
import { quick_place, quickPaths } from './support/store-folder.ts'

const postgres = await postgresOrSkip({ parent: quick_place })
const skip = no_postgres ?? false
const newPath = quickPaths('conveyor-rescue-')
const conv_id = waiting.obj_id
const made = 200

/** An owner and a standby that has all, and what cuts both off from their database for good. */
async function newCluster() {
  assert.ok(postgres !== undefined)
  const url = await postgres.createDatabase()
  await initPartition(url, 0)
  const relay = await startRelay({ host: postgres.host, port: postgres.port })
  const through = new URL(url)
  through.host = `127.0.0.1:${relay.port}`
  const place = newPath()
  mkdirSync(place)
  const told: unknown[] = []
  const keep = (fields: object): void => void told.push((fields as { event: unknown }).event)
  const logger = { debug: keep, info: keep, warn: keep, error: keep }
  const limits = { drain_ms_max: 100 }
  const more: EngineOptions = { admin: true, runtime_dir: place, limits, logger }
  const node = (name: string): TestNode =>
    openNode(place, { url: through.href, node: name, lease_ms: 1_000 }, more)
  const a = node('a')
  const owner = await a.opened
  await owner.processes.put(waiting, { conv_id })
  await owner.users.add({ id: '7' })
  copyFileSync(`${a.path}.key`, `${place}/b.lmdb.key`)
  const b = node('b')
  await b.role('standby')
  for (let n = 0; n < made; n++) await owner.create({ conv_id, ref: `r${n}`, data: { n } })
  await eventually(() => b.log.status().seq === a.log.status().seq)
  const lose = async (): Promise<void> => {
    relay.close()
    for (const { log } of [a, b]) await eventually(() => log.status().away_since_ms !== undefined)
  }
  const end = async (): Promise<void> => {
    for (const { log } of [a, b]) log.leave()
    for (const { opened } of [a, b]) await opened.then((one) => one.close()).catch(() => {})
    relay.close()
  }
  const env = { CONVEYOR_RUNTIME_DIR: place }
  const cli = (words: string, stdin = '') => run(words.split(' '), { env, stdin })
  return { told, url, lost_url: through.href, node, a, b, owner, lose, end, cli, place }
}

async function judge(path: string, key_path: string): Promise<void> {
  if (path !== key_path) copyFileSync(`${key_path}.key`, `${path}.key`)
  await using engine = await openEngine(path)
  assert.equal((await engine.tasks.count({ conv_id })).total, made)
  assert.equal((await engine.users.list()).length, 1)
  assert.deepEqual((await engine.check()).breaches, [])
}

test('the database is lost for good: each way to the data of its nodes', { skip }, async () => {
  const cluster = await newCluster()
  const { a, b, owner, cli, lost_url, node, told } = cluster
  const seq = a.log.status().seq
  const has = new RegExp(`all up to position ${seq}, the last change at 20[0-9T:.Z-]+`)
  assert.equal(told.includes('checkpoint'), false)
  const lost = cluster.lose()
  // Nobody knows what becomes of it, and it must not keep the others from the data file.
  const in_doubt = owner.create({ conv_id, ref: 'in doubt', data: {} })
  in_doubt.catch(() => {})
  await lost
  // The data file of the standby has everything, even if the node is killed now.
  await eventually(() => told.includes('checkpoint'))
  await eventually(() => !a.log.status().has_lease)

  // Both run; the owner has a commit that waits, before which nothing else happens.
  const refused = await cli(`backup ${newPath()} --db ${a.path}`)
  assert.equal(refused.exit, 3)
  assert.match(refused.err, /a commit waits for it: stop this node, and take the `conveyor backup/)
  const of_standby = newPath()
  const { exit, err, out } = await cli(`backup ${of_standby} --db ${b.path}`)
  assert.deepEqual([exit, err], [0, ''])
  assert.match(out, has)
  await judge(of_standby, a.path)
  for (const { path } of [a, b]) {
    const examined = await cli(`doctor --db ${path}`)
    assert.equal(examined.exit, 1, examined.out)
    assert.match(examined.out, /BAD +file +.*database.*\n.*take a backup of each node/)
  }

  // Both are stopped.
  await Promise.all([cluster.end(), assert.rejects(in_doubt, { code: 'store_failed' })])
  for (const { path } of [a, b]) {
    const copy = newPath()
    const backup = await cli(`backup ${copy} --db ${path}`)
    assert.deepEqual([backup.exit, backup.err], [0, ''])
    assert.match(backup.out, has)
    assert.match(backup.out, /whose secrets need the key [0-9a-f]+/)
    await judge(copy, a.path)
    assert.deepEqual(await cli(`check --db ${path}`), { exit: 0, out: '', err: '' })
    const examined = await cli(`doctor --full --db ${path}`)
    assert.match(examined.out, has)
    assert.match(examined.out, /ok +invariants +all of them hold/)
    for (const words of [`task count ${conv_id}`, 'serve --http off']) {
      const { exit, err } = await cli(`${words} --db ${path}`)
      assert.equal(exit, 3)
      assert.match(err, has)
      assert.ok(err.includes(`conveyor cluster detach --db ${path} --commit-log URL`), err)
      assert.ok(err.includes(`conveyor backup FILE --db ${path}`), err)
    }
  }

  // One is started again, without the database.
  const again = node('b')
  await again.role('joining')
  await eventually(() => again.log.status().away_since_ms !== undefined)
  assert.equal(again.log.status().seq, seq)
  const copy = newPath()
  const running = await cli(`backup ${copy} --db ${b.path}`)
  assert.deepEqual([running.exit, running.err], [0, ''])
  assert.match(running.out, has)
  await judge(copy, a.path)
  for (const words of ['doctor', `task count ${conv_id}`, 'console link']) {
    const { out, err, exit } = await cli(`${words} --db ${b.path}`)
    assert.notEqual(exit, 0)
    assert.match(out + err, /the node b has no answer of its database for \d+ s \(.*\); it has all/)
    assert.match(out + err, has)
  }
  const status = await cli(`cluster status --commit-log ${lost_url}`)
  assert.equal(status.exit, 3)
  assert.match(status.err, /does not answer .*; `conveyor doctor --db FILE` says what the file of/)
  again.log.leave()
  await again.opened.catch(() => {})

  // Into a new database, from the very file.
  assert.ok(postgres !== undefined)
  const url = await postgres.createDatabase()
  await initPartition(url, 0)
  const imported = await cli(`cluster import --db ${a.path} --commit-log ${url}`)
  assert.deepEqual([imported.exit, imported.err], [0, ''])
  const place = newPath()
  mkdirSync(place)
  copyFileSync(`${a.path}.key`, `${place}/n.lmdb.key`)
  const next = openNode(place, { url, node: 'n' })
  const next_owner = await next.opened
  assert.equal((await next_owner.tasks.count({ conv_id })).total, made)
  await next_owner.close()

  // Alone.
  const detach = `cluster detach --db ${a.path} --commit-log ${lost_url}`
  const wrong = await cli(detach, `${seq + 1}\n`)
  assert.equal(wrong.exit, 1)
  assert.match(
    wrong.err,
    /does not answer[\s\S]*From now on start no other node[\s\S]*nothing was changed/,
  )
  assert.match(wrong.err, has)
  await assert.rejects(openEngine(a.path), { code: 'not_possible' })
  const right = await cli(detach, `${seq}\n`)
  assert.equal(right.exit, 0, right.err)
  await judge(a.path, a.path)
  const twice = await cli(detach)
  assert.match(twice.err, /is no copy of a node: it opens alone as it is/)
  const as_node = openNode(cluster.place, { url: cluster.url, node: 'a' })
  await assert.rejects(as_node.opened, {
    message: /holds data of its own and is no copy of a node/,
  })
})

test('nothing is detached or imported while the database has all of it', { skip }, async () => {
  const { url, a, end, cli } = await newCluster()
  const into = `--db ${a.path} --commit-log ${url}`
  const held = await cli(`cluster detach --yes ${into}`)
  assert.match(held.err, /is held by a process; stop it first/)
  await end()
  assert.ok(postgres !== undefined)
  await initPartition(url, 1)
  const words = ['cluster detach --yes', 'cluster import --partition 1']
  for (const verb of words) {
    const { exit, err } = await cli(`${verb} ${into}`)
    assert.equal(exit, 1)
    assert.match(
      err,
      /with all that the file has: start the node|and all that this file has: start/,
    )
  }
  const wrong_password = url.replace('//', '//nobody@').replace('postgres@', '')
  const unknown = await cli(`cluster detach --yes --db ${a.path} --commit-log ${wrong_password}`)
  assert.match(unknown.err, /\(28000\)|\(28P01\)/)
  // A database that was set back has less.
  await postgres.sql('DELETE FROM conveyor.log WHERE seq > 10', [], new URL(url).pathname.slice(1))
  for (const verb of words.reverse()) {
    const { exit, err } = await cli(`${verb} ${into}`)
    assert.deepEqual([exit, err], [0, ''])
  }
  await judge(a.path, a.path)
})
