/**
 * The incidents of a cluster in the runbook (deploy/README.md), each played on nodes over a database
 * of its own: which line of the log it leaves, which metric tells it, and what /readyz of that node
 * answers. The runbook's table has the same rows.
 */
import { eventually } from './support/waits.ts'
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { limitsWith } from '../src/core/limits.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import type { PostgresLogOptions } from '../src/postgres.ts'
import { serveNodeOperator } from '../src/server/operator/server.ts'
import { run } from './support/cli-run.ts'
import { openNode, type TestNode, waiting } from './support/cluster-nodes.ts'
import { sampled } from './support/metrics-samples.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { initPartition } from './support/postgres-open.ts'
import { startRelay } from './support/relay.ts'
import { cellsOf, runbookRows, type Traces } from './support/runbook.ts'
import { quick_place, quickPaths } from './support/store-folder.ts'

const postgres = await postgresOrSkip({ parent: quick_place })
const newPath = quickPaths('conveyor-incidents-')

interface Played {
  readonly url: string
  sql(text: string, values?: readonly unknown[]): Promise<unknown>
  /** Its lines are looked at, beside those in `told`. */
  node(name: string, options?: Partial<PostgresLogOptions>, folder?: string): TestNode
  readonly told: string[]
  /** The url of the database through a relay, which is closed in the end. */
  relayed(delay_ms: number): Promise<{ readonly url: string; close(): void }>
}

interface Incident extends Traces {
  /** Resolves with the node that is looked at, and its engine where it is or was the owner. */
  play(played: Played): Promise<readonly [TestNode, Engine?]>
}

const conv_id = waiting.obj_id

async function ownerOf({ node }: Played): Promise<readonly [TestNode, Engine]> {
  const one = node('a')
  const owner = await one.opened
  await owner.processes.put(waiting, { conv_id })
  return [one, owner]
}

async function standbyOf({ node }: Played, options = {}): Promise<TestNode> {
  const one = node('b', options)
  await one.role('standby')
  return one
}

const incidents: readonly Incident[] = [
  {
    incident: 'no node owns the data',
    line: 'role',
    metric: 'conveyor_node_lease 0',
    ready: '503 open',
    async play(played) {
      await played.sql(`UPDATE conveyor.owner SET node = 'x', released = false, lease_ms = 600000`)
      return [await standbyOf(played)]
    },
  },
  {
    incident: 'another node has taken over from a living owner',
    line: 'ownership_lost',
    metric: 'conveyor_events_total{event="ownership_lost"}',
    ready: '503 commit',
    async play(played) {
      const [one, owner] = await ownerOf(played)
      await played.sql(`UPDATE conveyor.owner SET node = 'x', epoch = epoch + 1`)
      await assert.rejects(owner.create({ conv_id, data: {} }), { code: 'store_failed' })
      return [one, owner]
    },
  },
  {
    incident: 'the database is away',
    line: 'database_away',
    metric: 'conveyor_database_away_seconds',
    ready: '503 commit commit_log',
    async play({ node, relayed }) {
      const relay = await relayed(0)
      const one = node('a', { url: relay.url, lease_ms: 1_000 })
      const owner = await one.opened
      relay.close()
      await eventually(() => one.log.status().away_since_ms !== undefined)
      await eventually(() => !one.log.status().has_lease)
      return [one, owner]
    },
  },
  {
    incident: 'the database is lost for good',
    line: 'database_away',
    metric: 'conveyor_database_away_seconds',
    ready: '503 open commit_log',
    async play({ node, relayed }) {
      const relay = await relayed(0)
      const { opened, path } = node('a', { url: relay.url, lease_ms: 1_000 })
      const owner = await opened
      await owner.processes.put(waiting, { conv_id })
      await owner.create({ conv_id, data: {} })
      relay.close()
      await owner.close()
      const url = (await postgres?.createDatabase()) ?? ''
      await initPartition(url, 0)
      const rescue = ['check', `backup ${newPath()}`, `cluster import --commit-log ${url}`]
      for (const words of rescue) {
        const { exit, err } = await run([...words.split(' '), '--db', path])
        assert.deepEqual([exit, err], [0, ''], words)
      }
      const next = await node('n', { url }).opened
      assert.equal((await next.tasks.count({ conv_id })).total, 1)
      // One that was started again has nobody to ask.
      const again = node('a', { url: relay.url }, dirname(path))
      await eventually(() => again.log.status().away_since_ms !== undefined)
      return [again]
    },
  },
  {
    incident: 'a standby is behind',
    metric: 'conveyor_node_lag_positions',
    ready: '503 open',
    async play(played) {
      const [, owner] = await ownerOf(played)
      const relay = await played.relayed(50)
      const standby = await standbyOf(played, { url: relay.url })
      while ((standby.log.status().head_seq ?? 0) <= standby.log.status().seq) {
        await owner.create({ conv_id, data: {} })
      }
      return [standby]
    },
  },
  {
    incident: 'there is no standby',
    metric: 'conveyor_node_role{role="standby"} 0',
    ready: '200',
    play: ownerOf,
  },
  {
    incident: 'two nodes have one name',
    line: 'another node is named a and runs at a:1',
    async play(played) {
      const [one, owner] = await ownerOf(played)
      const other = played.node('a')
      await other.opened.catch(({ message }) => played.told.push(...message.split(/: /)))
      return [one, owner]
    },
  },
  {
    incident: 'the key is missing at a node',
    line: 'node_unfit',
    metric: 'conveyor_node_fit 0',
    ready: '503 open key',
    async play(played) {
      const [, owner] = await ownerOf(played)
      const standby = await standbyOf(played)
      await owner.users.add()
      await eventually(() => standby.log.status().unfit !== undefined)
      return [standby]
    },
  },
  {
    incident: 'the database was set back',
    line: 'log_set_back',
    metric: 'conveyor_events_total{event="log_set_back"}',
    ready: '503 commit',
    async play(played) {
      const [one, owner] = await ownerOf(played)
      await played.sql('DELETE FROM conveyor.log WHERE seq = $1', [one.log.status().seq])
      await played.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`)
      await assert.rejects(owner.create({ conv_id, data: {} }), { code: 'store_failed' })
      return [one, owner]
    },
  },
]

for (const { incident, line, metric, ready, play } of incidents) {
  test(incident, { skip: no_postgres ?? false }, async () => {
    assert.ok(postgres !== undefined)
    const { createDatabase, sql, host, port } = postgres
    const url = await createDatabase()
    await initPartition(url, 0)
    const told: string[] = []
    const keep = (fields: object): void => void told.push((fields as { event: string }).event)
    const logger = { debug: keep, info: keep, warn: keep, error: keep }
    const [nodes, relays] = [[] as TestNode[], [] as { close(): void }[]]
    const [one, engine] = await play({
      ...{ url, told },
      sql: (text, values) => sql(text, values, new URL(url).pathname.slice(1)),
      node(name, options, place = newPath()) {
        mkdirSync(place, { recursive: true })
        const limits = { drain_ms_max: 100 }
        const made = openNode(place, { url, node: name, ...options }, { logger, limits })
        nodes.push(made)
        return made
      },
      async relayed(delay_ms) {
        const relay = await startRelay({ host, port }, { there_ms: delay_ms, back_ms: delay_ms })
        relays.push(relay)
        const through = new URL(url)
        through.host = `127.0.0.1:${relay.port}`
        return { url: through.href, close: relay.close }
      },
    })
    const source = { emit() {}, limits: limitsWith({}) }
    const operator = await serveNodeOperator(one.log, source, { port: 0 })
    operator.use(engine)
    try {
      if (line !== undefined) {
        assert.ok(told.includes(line), told.join('\n'))
        assert.equal(told.includes('store_failed'), false, 'no line blames the disk')
      }
      const answer = await fetch(`${operator.url}/readyz`)
      const { checks } = (await answer.json()) as { checks: Record<string, { ok: boolean }> }
      const failing = Object.entries(checks).flatMap(([name, { ok }]) => (ok ? [] : [name]))
      const said = [answer.status, ...failing].join(' ')
      // Where the connection was cut as well, the node may have seen that first.
      const is_cut = line === 'log_set_back' && said === `${ready} commit_log`
      if (ready !== undefined && !is_cut) assert.equal(said, ready)
      const samples = sampled(await (await fetch(`${operator.url}/metrics`)).text())
      const [, name = '', zero] = /^(.+?)( 0)?$/.exec(metric ?? '') ?? []
      const value = samples.get(name) ?? Number.NaN
      if (metric !== undefined) assert.ok(zero ? value === 0 : value > 0, `${metric}: ${value}`)
    } finally {
      await operator.drain()
      for (const { close } of relays) close()
      for (const { log } of nodes) log.leave()
      for (const { opened } of nodes) await opened.then((owner) => owner.close()).catch(() => {})
    }
  })
}

test('the runbook has the same rows', () => {
  assert.deepEqual(runbookRows('incidents of a cluster'), incidents.map(cellsOf))
})
