/**
 * A node that is held up while it takes the ownership over, as by an event loop that stands still,
 * and an owner that another one has followed by then: it answers nothing and is a standby again.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { isOwnershipLost } from '../src/cluster/ownership/owner-row.ts'
import { type Clock, pause, steadyClock, systemChance } from '../src/core/clock.ts'
import { emitNothing } from '../src/core/events.ts'
import { format, format_key } from '../src/engine/file/format.ts'
import { openEngine } from '../src/open.ts'
import { postgresLog } from '../src/postgres.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import type { Tree } from '../src/store/tree.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { initPartition } from './support/postgres-open.ts'
import { quick_place, quickPaths } from './support/store-folder.ts'

const postgres = await postgresOrSkip({ parent: quick_place })
const newPath = quickPaths('conveyor-takeover-')
/** So long that a busy machine does not let it run out. */
const lease_ms = 6_000
const formatChange = (of: number) => changesOf([[format_key, Buffer.from(String(of))]])
let partition = 0

interface Points {
  /** Before the takeover is sent. */
  decides?(): Promise<void> | void
  /** It has the row, and writes its first state next. */
  writes?(): void
  /** It has said that it is the owner. */
  says?(): void
}

/** A node that is the first on a partition of its own. */
async function newNode(points: Points) {
  partition++
  const [url, path] = [postgres?.url() ?? '', newPath()]
  await initPartition(url, partition)
  let ahead_ms = 0
  const clock: Clock = {
    now_ms: () => steadyClock.now_ms() + ahead_ms,
    wake_at: (at_ms, fn) => steadyClock.wake_at(at_ms - ahead_ms, fn),
  }
  const log = postgresLog({ url, node: 'a', partition, lease_ms, clock })
  log.onRole(({ role }) => void (role === 'owner' && points.says?.()))
  const below = await openInProcess(path)
  const owned = log.open({
    ...{
      tree: below,
      path,
      emit: emitNothing,
      reserve_bytes: 0,
      checkpoint_bytes: 0,
      bytes: systemChance.bytes,
    },
    claim(found) {
      if (log.status().owner?.node === 'a') points.writes?.()
      return found.get(format_key) === undefined ? formatChange(format) : undefined
    },
    checkKey: async () => points.decides?.(),
  })
  return {
    ...{ log, owned },
    goAhead(ms: number) {
      ahead_ms += ms
    },
    async close(tree: Tree) {
      await tree.close()
      await below.close()
    },
  }
}

const sql = (text: string) => (postgres as NonNullable<typeof postgres>).sql(text)

/** Another node takes over, and gives the ownership up again at once. */
const steal = (): void =>
  postgres?.sqlNow(`UPDATE conveyor.owner SET epoch = epoch + 1, renewal = renewal + 1, node = 'x',
    file_id = 'x', released = true WHERE partition = ${partition}`)

test('a node that is held up while it takes over', { skip: no_postgres ?? false }, async (t) => {
  for (const point of ['decides', 'writes'] as const) {
    await t.test(`loses the ownership where it ${point}, and takes it anew`, async () => {
      let is_done = false
      const node = await newNode({
        [point]: () => {
          if (!is_done) steal()
          is_done = true
        },
      })
      const tree = await node.owned
      assert.equal(node.log.status().epoch, point === 'decides' ? 2 : 3)
      assert.ok(tree.get(format_key))
      await node.close(tree)
    })
  }
  await t.test('loses the ownership once it says that it has it', async () => {
    let lost: unknown
    const node = await newNode({ says: steal })
    const tree = await node.owned
    tree.onBroken?.((cause) => {
      lost = cause
    })
    await assert.rejects(tree.commit(changesOf([['second', Buffer.from('2')]])), isOwnershipLost)
    assert.ok(isOwnershipLost(lost))
    assert.match(String(tree.unavailable?.()?.message), /try again$/)
    await node.close(tree)
    const [row] = await sql(`SELECT epoch::int FROM conveyor.owner WHERE partition = ${partition}`)
    assert.deepEqual(row, { epoch: 2 })
  })
  await t.test('does not answer before it has a lease, which the takeover outlasted', async () => {
    const other = new pg.Client({ connectionString: postgres?.url() })
    await other.connect()
    const row = `conveyor.owner WHERE partition = ${partition + 1}`
    const node = await newNode({
      async decides() {
        await other.query(`BEGIN; SELECT FROM ${row} FOR UPDATE`)
      },
    })
    const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`
    while ((await other.query(waits)).rowCount === 0) await pause(steadyClock, 5)
    node.goAhead(2 * lease_ms)
    await other.query('COMMIT')
    await other.end()
    const tree = await node.owned
    assert.equal(tree.unavailable?.(), undefined)
    node.goAhead(2 * lease_ms)
    assert.equal(tree.unavailable?.()?.code, 'overloaded')
    await node.close(tree)
  })
})

test('an owner that is owner no more', { skip: no_postgres ?? false }, async (t) => {
  // biome-ignore format: a table
  const rows: readonly (readonly [
    what: string, text: string, message: RegExp, is_released?: true,
  ])[] = [
    [
      'the database was set back, and another node has the same epoch since',
      `UPDATE conveyor.owner SET node = 'x', file_id = 'x'`,
      /^another node owns the data now$/,
    ],
    [
      'the database was set back to an earlier epoch',
      `UPDATE conveyor.owner SET epoch = 0, node = '', file_id = '', released = true`,
      /^another node owns the data now$/,
    ],
    [
      'another instance has its name',
      `UPDATE conveyor.replica SET instance = 'x', beat = beat + 1, address = 'x:1'`,
      /^another node is named a and runs at x:1: give each node a name/,
      true,
    ],
  ]
  for (const [what, text, message, is_released] of rows) {
    await t.test(what, async () => {
      const node = await newNode({})
      const tree = await node.owned
      const lost = new Promise<Error>((resolve) => {
        tree.onBroken?.((cause) => resolve(cause as Error))
      })
      await sql(`${text} WHERE partition = ${partition}`)
      await sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name LIKE 'conveyor a %'`)
      assert.match((await lost).message, message)
      const released = `SELECT FROM conveyor.owner WHERE released AND partition = ${partition}`
      while (is_released && (await sql(released)).length === 0) await pause(steadyClock, 5)
      await node.close(tree)
    })
  }
})

test('a standby that could not read what a newer owner has made of the data is refused', {
  skip: no_postgres ?? false,
}, async () => {
  const node = await newNode({})
  const tree = await node.owned
  const log = postgresLog({ url: postgres?.url() ?? '', node: 'b', partition })
  const opened = openEngine(newPath(), { commit_log: log })
  const refused = assert.rejects(opened, {
    ...{ code: 'newer_format', message: /was written by a newer conveyor; use that one$/ },
  })
  while (log.status().role !== 'standby') await pause(steadyClock, 5)
  await tree.commit(formatChange(format + 1))
  await refused
  await node.close(tree)
})
