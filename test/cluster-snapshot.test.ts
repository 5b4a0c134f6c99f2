/**
 * An owner writes snapshots beside its work, and the log before them goes; a new node, and one
 * whose file is behind the beginning of the log, load one and follow.
 */
import { eventually } from './support/waits.ts'
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEngine } from '../src/open.ts'
import { postgresLog } from '../src/postgres.ts'
import { openReadOnly } from '../src/store/read-only.ts'
import { list_id as conv_id, list_process } from './support/cluster/list-process.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { initPartition } from './support/postgres-open.ts'
import { quick_place, quickPaths } from './support/store-folder.ts'

const postgres = await postgresOrSkip({ parent: quick_place })
const newPath = quickPaths('conveyor-cluster-snapshot-')

async function dump(path: string): Promise<unknown[]> {
  const file = await openReadOnly(path)
  const entries = file.scan({ from: '', to: '\xff', limit: 1e6 })
  await file.close()
  return entries
}

function newNode(node: string, partition = 0, onTold = (_event: string): void => {}) {
  const snapshot = { log_bytes_min: 50_000, check_ms: 10, chunk_bytes: 5_000 }
  const log = postgresLog({ url: postgres?.url() ?? '', node, snapshot, partition })
  const path = newPath()
  const seen = new Map<string, number>()
  const note = (fields: object): void => {
    const { event, seq = 0 } = fields as { event: string; seq?: number }
    seen.set(event, seq)
    onTold(event)
  }
  const logger = { debug() {}, info: note, warn: note, error: note }
  return { log, path, seen, open: () => openEngine(path, { commit_log: log, logger }) }
}

test('nodes join by snapshots', { skip: no_postgres ?? false }, async () => {
  assert.ok(postgres !== undefined)
  const { sql } = postgres
  await initPartition(postgres.url(), 0)
  const [one, other] = [newNode('a'), newNode('b')]
  const owner = await one.open()
  await owner.processes.put(list_process)
  const filler = 'f'.repeat(2_000)
  for (let n = 0; n < 30; n++) await owner.create({ conv_id, ref: `r${n}`, data: { filler } })

  /** The log grows and the state does not, until a snapshot is there and the log before it gone. */
  async function untilSnapshot(): Promise<number> {
    one.seen.delete('snapshot')
    for (let n = 0; !one.seen.has('snapshot'); n++) {
      const answer = await owner.modify({ conv_id, ref: `r${n % 30}`, data: { value: '' } })
      assert.equal(answer.proc, 'ok')
    }
    assert.equal(one.seen.has('snapshot_failed'), false)
    const seq = one.seen.get('snapshot') ?? 0
    await eventually(async () => {
      const [row] = await sql<{ min: string }>('SELECT min(seq) FROM conveyor.log')
      return Number(row?.min) >= seq
    })
    return seq
  }

  async function isSame(): Promise<void> {
    await eventually(() => other.log.status().seq === one.log.status().seq)
    const made = await Promise.all(
      [one, other].map(async ({ log }) => {
        const path = newPath()
        await log.backup(path)
        return dump(path)
      }),
    )
    assert.deepEqual(made[1], made[0])
  }

  const first = await untilSnapshot()
  const joining = other.open().catch(({ code }) => code)
  await eventually(() => other.log.status().role === 'standby')
  // A later one may be there by then.
  assert.ok((other.seen.get('snapshot_loaded') ?? 0) >= first)
  await isSame()
  other.log.leave()
  assert.equal(await joining, 'shutting_down')

  // Away for so long that the log has gone on without it.
  other.seen.clear()
  const { seq: left_seq } = other.log.status()
  let later = 0
  // One that was begun before it left may have no more than it has.
  while (later <= left_seq) later = await untilSnapshot()
  assert.ok(later > first)
  const again = other.open()
  await eventually(() => other.log.status().role === 'standby')
  assert.ok((other.seen.get('snapshot_loaded') ?? 0) >= later)
  await isSame()
  await owner.close()
  const next = await again
  assert.deepEqual((await next.check()).breaches, [])
  assert.equal((await next.tasks.count({ conv_id })).total, 30)
  await next.close()
})

test('a snapshot and its log go while a node loads it', {
  skip: no_postgres ?? false,
}, async (t) => {
  assert.ok(postgres !== undefined)
  const { sql } = postgres
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, then: string, expected: number | RegExp])[] = [
    ['for a later one', 'UPDATE conveyor.log SET seq = 6; UPDATE conveyor.snapshot SET seq = 6', 6],
    ['for none', 'UPDATE conveyor.log SET seq = 6', /there is no snapshot before it: restore/],
  ]
  for (const [at, [what, then, expected]] of rows.entries()) {
    await t.test(what, async () => {
      const partition = at + 1
      await initPartition(postgres.url(), partition)
      await sql(`INSERT INTO conveyor.log (partition, seq, epoch, frame)
          VALUES (${partition}, 5, 0, '\\x0000000000000001');
        INSERT INTO conveyor.snapshot (partition, id, epoch, seq, last_crc, chunks)
          VALUES (${partition}, '\\x0102030405060708', 0, 5, 1, 0)`)
      let is_done = false
      const node = newNode('c', partition, (event) => {
        if (event !== 'snapshot_loaded' || is_done) return
        is_done = true
        postgres.sqlNow(then.replaceAll(/ = 6/g, ` = 6 WHERE partition = ${partition}`))
      })
      if (typeof expected !== 'number') {
        return assert.rejects(node.open(), { code: 'not_possible', message: expected })
      }
      const engine = await node.open()
      assert.equal(node.seen.get('snapshot_loaded'), expected)
      await engine.close()
    })
  }
})
