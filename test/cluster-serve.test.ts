/**
 * `serve --commit-log` as two processes over one database: who listens where in which role, what
 * probes are told, and how the ownership goes from one to the other and back; and the flags that it
 * refuses.
 */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { version } from '../src/core/version.ts'
import { run, tempFolder } from './support/cli-run.ts'
import { node_args } from './support/cli-serve.ts'
import { type NodeProcess, startNode } from './support/cluster-serve.ts'
import { no_postgres, type Postgres, startPostgres } from './support/postgres.ts'
import { eventually } from './support/waits.ts'

const runFile = promisify(execFile)
const log_url = 'postgres://conveyor@127.0.0.1:1/conveyor'

const cluster_rows = ['database', 'durable', 'database clock', 'owner', 'members', 'snapshot']

const refused: readonly [string, RegExp][] = [
  ['--commit-log URL --http fd:3', /cannot be handed in \(fd\): the kernel would take connections/],
  ['--commit-log URL --demo', /--demo is for a data file of its own/],
  ['--node a', /--node is for --commit-log URL/],
  ['--lease-ms 5000', /--lease-ms is for --commit-log URL/],
  ['--commit-log URL --node a/b', /the name of the node cannot be: use 1 to 60 letters/],
  ['--commit-log URL --lease-ms 20', /a lease is a whole number of ms, at least 100/],
  ['--commit-log URL --lease-ms 1s', /--lease-ms takes a whole number/],
  ['--commit-log URL --address here', /--address takes HOST:PORT/],
  ['--commit-log URL --address here:0', /--address takes HOST:PORT/],
  ['--stale-reads', /--stale-reads is for --commit-log URL/],
  ['--commit-log URL --stale-reads-max-age 9', /--stale-reads-max-age is for --stale-reads/],
  ['--commit-log URL --stale-reads --stale-reads-max-age 1s', /-max-age takes a whole number/],
  ['--commit-log mysql://a/b', /is not one of PostgreSQL: write postgres:/],
  ['--commit-log postgres://a:secret@b/c', /must not hold a password: set PGPASSWORD/],
]

for (const [flags, says] of refused) {
  test(`serve ${flags} is refused`, async () => {
    const words = flags.replace('URL', log_url).split(' ')
    const { exit, err } = await run(['serve', '--http', '127.0.0.1:0', '--db', 'none', ...words])
    assert.equal(exit, 2)
    assert.match(err, says)
    assert.ok(!err.includes('secret'))
  })
}

describe('two nodes', { skip: no_postgres ?? false }, () => {
  const folder = tempFolder()
  let postgres: Postgres
  let [a, b] = [] as unknown as [NodeProcess, NodeProcess]

  before(async () => {
    postgres = await startPostgres()
    for (const wanted of ['is there now', 'was there already']) {
      const { out } = await cluster('init')
      assert.equal(out, `the cluster ${wanted}\n`)
    }
    a = await startNode(postgres.url(), folder.path, 'a')
    await a.role('owner')
    b = await startNode(postgres.url(), folder.path, 'b', ['--stale-reads'])
    await b.role('standby')
  })
  after(async () => {
    for (const { child } of [a, b]) child.kill('SIGKILL')
    await postgres.remove()
    folder.remove()
  })

  const cluster = (words: string) =>
    run(['cluster', ...words.split(' '), '--commit-log', postgres.url()])

  const isOpen = async ({ url }: NodeProcess): Promise<boolean> =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )

  async function judge(owner: NodeProcess, standby: NodeProcess): Promise<void> {
    const [named, address] = [owner.line.node, owner.line.address]
    for (const node of [owner, standby]) assert.equal((await node.ask('/healthz')).status, 200)
    const ready = await owner.ask('/readyz')
    assert.deepEqual(ready.body.checks, {
      ...{ open: { ok: true }, commit: { ok: true }, disk: { ok: true }, key: { ok: true } },
      ...{ queue: { ok: true }, background: { ok: true }, commit_log: { ok: true } },
    })
    assert.deepEqual([ready.status, ready.body.role, ready.body.lag_s], [200, 'owner', 0])
    // A standby looks each 50 ms who the owner is.
    const seen = async () => (await standby.ask('/readyz')).body.epoch
    while ((await seen()) !== ready.body.epoch) await sleep(10)
    const { status, body } = await standby.ask('/readyz')
    assert.deepEqual([status, body.ok, body.role], [503, false, 'standby'])
    assert.deepEqual(body.owner, { node: named, address })
    assert.equal(typeof body.lag_s, 'number')
    const reason = `the node ${standby.line.node} is a standby; the owner is ${named} at ${address}`
    assert.deepEqual(body.checks, { open: { ok: false, reason }, commit_log: { ok: true } })
    const feed = await standby.ask('/changes')
    assert.deepEqual([feed.status, feed.body.description], [503, reason])
    assert.deepEqual([await isOpen(owner), await isOpen(standby)], [true, false])
  }

  test('the owner alone listens and is ready; a standby names it', async () => {
    assert.equal(a.line.address, new URL(a.url).host)
    await judge(a, b)
  })

  test('a standby with --stale-reads answers where it will be the owner, and is ready for reads', async () => {
    const stale = () => b.ask('/readyz?stale')
    while ((await stale()).status !== 200) await sleep(10)
    const { body } = await stale()
    assert.deepEqual([body.ok, body.role, body.checks], [true, 'standby', { reads: { ok: true } }])
    const health = await fetch(`${b.url}/healthz`)
    assert.deepEqual([health.status, health.headers.get('conveyor-role')], [503, 'standby'])
    // The position may go on between the two.
    const position = Number(health.headers.get('conveyor-position'))
    assert.ok(position >= 1 && position <= Number((await stale()).body.position))
    const owner = await a.ask('/readyz?stale')
    assert.deepEqual([owner.status, owner.body.role], [200, 'owner'])
  })

  test('metrics: those of a node in every role, those of its engine at the owner', async () => {
    const [owner, standby] = await Promise.all(
      [a, b].map(async (node) => String((await node.ask('/metrics')).body.text)),
    )
    assert.match(owner ?? '', /^conveyor_node_role\{role="owner"\} 1$/m)
    assert.match(owner ?? '', /^conveyor_node_lease 1$/m)
    assert.match(owner ?? '', /^conveyor_ready_check\{check="commit"\} 1$/m)
    assert.match(standby ?? '', /^conveyor_node_role\{role="standby"\} 1$/m)
    assert.match(standby ?? '', /^conveyor_database_away_seconds 0$/m)
    assert.doesNotMatch(standby ?? '', /^conveyor_ready /m)
  })

  test('a hand-over makes the standby the owner and the owner a standby, in one process', async () => {
    const had = b.roles().length
    // From now on, so that it is no standby while it closes its data after a hand-over.
    const of_owner = `SELECT 1 FROM conveyor.replica WHERE node = 'a' AND unfit LIKE 'it owned the %'`
    await eventually(async () => (await postgres.sql(of_owner)).length === 1)
    // In a process of its own, which has nothing but its clock to wait for.
    const words = ['cluster', 'hand-over', '--json', '--commit-log', postgres.url()]
    const taken = 'SELECT 1 FROM conveyor.owner WHERE epoch = 2'
    const first = runFile(process.execPath, [...node_args, ...words])
    await eventually(async () => (await postgres.sql(taken)).length === 1)
    const { from, to, epoch } = JSON.parse((await first).stdout) as Record<string, unknown>
    assert.deepEqual([from, to, epoch], ['a', 'b', 2])
    await b.role('owner', had)
    await a.role('standby', a.roles().indexOf('owner') + 1)
    await judge(b, a)
    assert.equal((await fetch(`${b.url}/healthz`)).headers.get('conveyor-role'), null)
    assert.equal((await a.ask('/readyz?stale')).status, 503, 'it was not asked to answer reads')
    const wanted = ['joining', 'standby', 'owner', 'ended', 'joining', 'standby']
    assert.deepEqual(a.roles(), wanted)
    assert.deepEqual(a.logged(), wanted, 'one line of the log for each change')
  })

  test('cluster status tells the owner, the members and what is durable where', async () => {
    // What a takeover would go on from, as of its last beat, also where no checkpoint has it yet.
    await eventually(async () => !/"lag":[^0]/.test((await cluster('status --json')).out))
    const { exit, out } = await cluster('status --json')
    const status = JSON.parse(out) as Record<string, unknown>
    const { owner, epoch, members, durable, warnings } = status
    assert.deepEqual([exit, epoch, durable], [0, 2, 'on the disk of this database'])
    const { since, ...is } = owner as Record<string, unknown>
    assert.ok(Date.parse(String(since)) > 0)
    const of_owner = { node: 'b', address: b.line.address, version, lease_ms: 1000 }
    assert.deepEqual(is, { ...of_owner, is_alive: true })
    const roles = (members as Record<string, unknown>[]).map(({ node, role }) => [node, role])
    assert.deepEqual(roles, [
      ['a', 'standby'],
      ['b', 'owner'],
    ])
    assert.deepEqual(warnings, [])
    const places = (members as Record<string, unknown>[]).map((one) => [one.position, one.lag])
    assert.deepEqual(
      places,
      [0, 1].map(() => [status.position, 0]),
    )
    assert.match((await cluster('status')).out, /^owner +b at 127\.0\.0\.1:\d+, since 20/)
  })

  test('user rekey at the owner says that each node needs the key', async () => {
    await run(['user', 'add', '--db', b.db])
    const { out } = await run(['user', 'rekey', '--db', b.db])
    assert.match(
      out,
      /\neach node of the cluster needs this key, or .*: copy the file beside the data/,
    )
    const { out: json } = await run(['user', 'rekey', '--json', '--db', b.db])
    assert.equal((JSON.parse(json) as Record<string, unknown>).for_all_nodes, true)
    const status = async (): Promise<string> => (await cluster('status --json')).out
    await eventually(async () =>
      (await status()).includes('a could not be the owner: the key file'),
    )
    const { unfit, checks } = (await a.ask('/readyz')).body
    assert.deepEqual((checks as Record<string, unknown>).key, { ok: false, reason: unfit })
    const refused = await cluster('hand-over')
    assert.match(refused.err, /a could not be the owner: .* give each node the same key/)
    copyFileSync(`${b.db}.key`, `${a.db}.key`)
    await eventually(async () => (await status()).includes('"warnings":[]'))
  })

  test('a standby that is dead since its last beat is handed nothing, and can be removed', async () => {
    await postgres.sql(`INSERT INTO conveyor.replica (partition, node, instance, address)
      VALUES (0, 'dead', 'file/boot/x', '')`)
    const { exit, err } = await cluster('hand-over --to dead')
    assert.equal(exit, 1)
    assert.match(err, /no standby gives a sign \(dead\): look at its log, or start it/)
    assert.equal((await cluster('remove dead')).out, 'dead is removed\n')
  })

  test('cluster init says what it has granted', async () => {
    await postgres.sql('CREATE ROLE "no de"')
    const words = ['cluster', 'init', '--role', 'no de', '--commit-log', postgres.url()]
    const { out } = await run(words)
    assert.equal(out, 'the cluster was there already, and no de has the rights of a node\n')
    assert.equal(JSON.parse((await run([...words, '--json'])).out).granted_to, 'no de')
  })

  const refusals: readonly [string, RegExp][] = [
    ['hand-over --to x', /x is no standby: name one of a$/m],
    ['hand-over --to b', /b is the owner already/],
    ['remove b', /b is the owner: run `conveyor cluster hand-over` first/],
    ['remove a', /a runs: stop it first/],
    ['remove x', /no node x is known: name one of a, b/],
    ['status --partition 7', /no partition 7: run `conveyor cluster init --partition 7`/],
    ['init --role nobody', /the database has no role nobody/],
  ]
  for (const [words, says] of refusals) {
    test(`cluster ${words} is refused`, async () => {
      const { exit, err } = await cluster(words)
      assert.equal(exit, 1)
      assert.match(err, says)
    })
  }

  test('verbs at a standby: backup works, the others name the owner', async () => {
    const path = join(folder.path, 'copy.lmdb')
    const made = await run(['backup', path, '--json', '--db', a.db])
    assert.equal(made.exit, 0, made.err)
    const counted = await run(['process', 'list', '--db', path])
    assert.equal(counted.exit, 0, counted.err)
    const says = new RegExp(
      'the node a is a standby; the owner is b: run it on the machine of b ' +
        `\\(its callers ask ${b.line.address}\\)`,
    )
    for (const words of [
      ['task', 'count'],
      ['user', 'list'],
      ['check'],
      ['process', 'pause', '1'],
      ['console', 'link'],
    ]) {
      const { exit, err } = await run([...words, '--db', a.db])
      assert.equal(exit, 1, words.join(' '))
      assert.match(err, says)
    }
    assert.equal((await run(['task', 'count', '--db', b.db])).exit, 0)
  })

  test('the doctor looks at the database and the nodes, at the owner and at a standby', async () => {
    for (const [{ db }, says] of [
      [a, /the node a is a standby; the owner is b/],
      [b, /is served by process/],
    ] as const) {
      const words = ['doctor', '--json', '--db', db, '--commit-log', postgres.url()]
      const { out, err } = await run(words)
      const { checks } = JSON.parse(out || err) as { checks: Record<string, string>[] }
      const rows = checks.filter(({ name }) => cluster_rows.includes(String(name)))
      const names = rows.map(({ name, level }) => [name, level])
      assert.deepEqual(
        names,
        cluster_rows.map((name) => [name, 'ok']),
      )
      assert.match(String(checks.find(({ name }) => name === 'file')?.says), says)
    }
    const down = ['doctor', '--json', '--db', a.db, '--commit-log', log_url]
    const { checks } = JSON.parse((await run(down)).out) as { checks: Record<string, string>[] }
    const found = checks.find(({ name }) => name === 'database')
    assert.equal(found?.level, 'bad')
    assert.match(String(found?.says), /the database at 127\.0\.0\.1:1 does not answer/)
  })

  test('an owner whose row another has taken goes back to being a standby', async () => {
    const [had_a, had_b] = [a.roles().length, b.roles().length]
    await postgres.sql(`update conveyor.owner set epoch = epoch + 1, node = 'x', file_id = ''`)
    await b.role('ended', had_b)
    await b.role('standby', had_b)
    const owner = await Promise.race([
      a.role('owner', had_a).then(() => a),
      b.role('owner', had_b).then(() => b),
    ])
    await judge(owner, owner === a ? b : a)
  })

  test('SIGTERM ends a standby at once and an owner after its hand-over, with 0', async () => {
    const is_a = a.roles().at(-1) === 'owner'
    const [owner, standby] = is_a ? [a, b] : [b, a]
    assert.equal(await standby.stop(), 0)
    assert.equal(await owner.stop(), 0)
    const rows = await postgres.sql<{ released: boolean }>('select released from conveyor.owner')
    assert.deepEqual(rows, [{ released: true }])
  })
})
