/**
 * From a file to a cluster and back: nothing is lost on the way, a node that joins has it, a backup
 * of any node opens alone, and what cannot be imported is refused with a sentence.
 */
import { eventually } from './support/waits.ts'
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { importFile } from '../src/cluster/operator/import-file.ts'
import { openEngine } from '../src/open.ts'
import { type PostgresLog, postgresLog } from '../src/postgres.ts'
import { openReadOnly } from '../src/store/read-only.ts'
import { stateIn } from '../src/store/snapshots/chunk.ts'
import { run } from './support/cli-run.ts'
import { connectionTo } from './support/database-cluster.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { initPartition } from './support/postgres-open.ts'
import { asState } from './support/snapshot-setup.ts'
import { quick_place, quickPaths } from './support/store-folder.ts'

const postgres = await postgresOrSkip({ parent: quick_place })
const skip = no_postgres ?? false
const newPath = quickPaths('conveyor-import-')
const connection = postgres && connectionTo(postgres.url())
after(() => connection?.close())
const url = postgres?.url() ?? ''
const conv_id = '1'
const example = new URL('../src/examples/callback.conv.json', import.meta.url)
const definition = JSON.parse(readFileSync(example, 'utf8'))

async function makeFile(): Promise<string> {
  const path = newPath()
  const engine = await openEngine(path)
  await engine.processes.put(definition, { conv_id })
  await engine.users.add({ id: '7', name: 'sender' })
  for (let n = 0; n < 50; n++) await engine.create({ conv_id, ref: `r${n}`, data: { n } })
  await engine.close()
  return path
}

/** All entries but those that belong to the one file. */
async function dump(path: string): Promise<[string, string][]> {
  const file = await openReadOnly(path)
  const entries = [...stateIn(file.scan({ from: '', to: '\xff', limit: 1e6 }))]
  await file.close()
  return asState(entries)
}

let partitions = 100

async function newPartition(): Promise<number> {
  const partition = ++partitions
  await initPartition(url, partition)
  return partition
}

/** As a node that has the key of the secrets. */
function join(log: PostgresLog, key_path: string) {
  const path = newPath()
  copyFileSync(key_path, `${path}.key`)
  return openEngine(path, { commit_log: log })
}

test('a file goes into a cluster and comes back the same', { skip }, async () => {
  assert.ok(connection !== undefined)
  const path = await makeFile()
  const before = await dump(path)
  const bytes_before = readFileSync(path)
  const partition = await newPartition()
  const check = (): void => {}
  const chunk_bytes = 4_000
  const of = { partition, check, chunk_bytes }
  const made = await importFile(connection, path, of)
  assert.ok(made.chunks > 1)
  assert.deepEqual(readFileSync(path), bytes_before)
  assert.deepEqual(await dump(path), before)
  await assert.rejects(importFile(connection, path, of), /is not empty/)

  const [one, other] = ['a', 'b'].map((node) => postgresLog({ url, node, partition }))
  assert.ok(one !== undefined && other !== undefined)
  const owner = await join(one, `${path}.key`)
  const waiting = join(other, `${path}.key`)
  await eventually(() => other.status().role === 'standby')
  const [of_owner, of_standby] = [newPath(), newPath()]
  await owner.backup(of_owner)
  await eventually(() => other.status().seq === one.status().seq)
  await other.backup(of_standby)
  assert.deepEqual(await dump(of_owner), before)
  assert.deepEqual(await dump(of_standby), before)

  // Under load: what was answered before is in it, and it is whole.
  let is_over = false
  let created = 0
  const load = (async () => {
    while (!is_over) await owner.create({ conv_id, ref: `n${created++}`, data: {} })
  })()
  await eventually(() => created > 20)
  const answered = created - 1
  const in_use = newPath()
  await one.backup(in_use)
  is_over = true
  await load
  await owner.close()
  const next = await waiting
  assert.equal((await next.tasks.count({ conv_id })).total, 50 + created)
  await next.close()
  copyFileSync(`${path}.key`, `${in_use}.key`)
  const alone = await openEngine(in_use)
  const { total } = await alone.tasks.count({ conv_id })
  assert.ok(total >= 50 + answered && total <= 50 + created)
  assert.deepEqual((await alone.check()).breaches, [])
  assert.equal((await alone.users.list()).length, 1)
  await alone.close()

  const again = await newPartition()
  await importFile(connection, of_standby, { partition: again, check })
})

test('the file of a node is refused alone, and the doctor compares its key', { skip }, async () => {
  const path = newPath()
  const log = postgresLog({ url, node: 'k', partition: await newPartition() })
  const owner = await openEngine(path, { commit_log: log })
  await owner.users.add()
  const { for_all_nodes } = await owner.users.rekey()
  assert.equal(for_all_nodes, true)
  await owner.close()
  const says =
    /is the copy of a node, and its commit log is in PostgreSQL; open it with that commit/
  await assert.rejects(openEngine(path), { code: 'not_possible', message: says })
  for (const words of [
    ['task', 'count', '--db', path],
    ['serve', '--http', 'off', '--db', path],
    ['restore', path, '--db', newPath()],
  ]) {
    const { exit, err } = await run(words)
    assert.notEqual(exit, 0, words.join(' '))
    assert.match(err, says)
  }
  const keys: readonly (readonly [string, () => void])[] = [
    ['ok: it is that of the secrets of the cluster', () => {}],
    ['bad: the key file is not the key of the cluster', () => writeKey('ab'.repeat(32))],
    ['bad: the key file is no key', () => writeKey('x')],
    ['bad: the key file is missing', () => rmSync(`${path}.key`)],
  ]
  const writeKey = (text: string): void => writeFileSync(`${path}.key`, text)
  for (const [judged, change] of keys) {
    change()
    const { out } = await run(['doctor', '--json', '--db', path])
    const { checks } = JSON.parse(out) as { checks: Record<string, string>[] }
    const rows = checks.map(({ name, level, says }) => [name, `${level}: ${says}`] as const)
    assert.equal(Object.fromEntries(rows).key?.replace(/: this node.*/, ''), judged)
    assert.match(
      String(Object.fromEntries(rows).file),
      /^ok: .* is the copy of a node, not open, and has all up to position \d+/,
    )
  }
})

test('what cannot be imported is refused by the verb', { skip }, async () => {
  const partition = await newPartition()
  const good = await makeFile()
  const node_file = newPath()
  const log = postgresLog({ url, node: 'a', partition: await newPartition() })
  const node = await openEngine(node_file, { commit_log: log })
  await node.close()
  const held = newPath()
  const holder = await openEngine(held)
  const foreign = newPath()
  writeFileSync(foreign, 'this is no database')
  const damaged = newPath()
  copyFileSync(good, damaged)
  truncateSync(damaged, 12_288)
  const rows: readonly (readonly [string, string | number, RegExp])[] = [
    [newPath(), partition, /is not there/],
    [node_file, partition, /with all that the file has: start the node with it/],
    [held, partition, /is held by a process/],
    [foreign, partition, /is no|not a/],
    [damaged, partition, /ends too early|cut short|damaged|truncated/],
    [good, 99, /has no partition 99/],
  ]
  const importing = (path: string, into: string | number) =>
    run(['cluster', 'import', '--db', path, '--commit-log', url, '--partition', String(into)])
  for (const [path, into, says] of rows) {
    const { exit, err } = await importing(path, into)
    assert.notEqual(exit, 0)
    assert.match(err, says)
  }
  await holder.close()
  const made = await importing(good, partition)
  assert.deepEqual([made.exit, made.err], [0, ''])
  assert.match(
    made.out,
    /^position \d+, \d+ bytes\neach node needs .*\.key as the key of its own data file\n$/,
  )
  const again = await importing(good, partition)
  assert.match(again.err, /not empty: a file is imported before its first node starts/)
})
