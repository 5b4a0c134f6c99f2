/**
 * Snapshots in the database: a state comes back as it was, and one that was cut off, damaged, or
 * completed by a former owner is never taken for one.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { beginSnapshot, newestSnapshot } from '../src/cluster/snapshots/rows.ts'
import { truncate } from '../src/cluster/snapshots/truncation.ts'
import { chunkIn, chunksOf } from '../src/store/snapshots/chunk.ts'
import { connectionTo } from './support/database-cluster.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { is_slow } from './support/short-run.ts'
import * as setup from './support/snapshot-setup.ts'
import { quick_place, quickPaths } from './support/store-folder.ts'

const { asState, entriesOf, load, newDraft, openTree, stateOf, write } = setup
const postgres = await postgresOrSkip({ parent: quick_place })
const skip = no_postgres ?? false
const newPath = quickPaths('conveyor-snapshot-')
const connection = postgres && connectionTo(postgres.url())
after(() => connection?.close())

const id = Buffer.from('12345678')
const another = Buffer.from('87654321')

test('a chunk is taken as what it is alone', () => {
  const large = { key: '\x08large', value: Buffer.alloc(5_000, 'l') }
  const entries = [...entriesOf(100, 'chunk'), large, { key: '\x09', value: Buffer.alloc(0) }]
  const chunks = [...chunksOf(entries, id, 2_000)]
  const frames = chunks.map((bytes, n) => chunkIn(bytes, id, n + 1))
  assert.equal(
    frames.reduce((sum, frame) => sum + (frame?.count ?? 0), 0),
    entries.length,
  )
  assert.ok(chunks.every((bytes) => bytes.length <= 2_064 || bytes.includes('large')))
  assert.deepEqual([...chunksOf([], id)], [])
  const [first = id, second = id] = chunks
  const flipped = (at: number): Buffer => {
    const bytes = Buffer.from(first)
    bytes[at] = (bytes[at] as number) ^ 1
    return bytes
  }
  const rows: readonly (readonly [Buffer, Buffer, number, boolean])[] = [
    [first, id, 1, true],
    [first, id, 2, false],
    [second, id, 1, false],
    [first, another, 1, false],
    [flipped(10), id, 1, false],
    [flipped(first.length - 1), id, 1, false],
    [first.subarray(0, -64), id, 1, false],
    [Buffer.concat([first, first]), id, 1, false],
    [Buffer.alloc(0), id, 1, false],
  ]
  for (const [bytes, of, number, is_taken] of rows) {
    assert.equal(chunkIn(bytes, of, number) !== undefined, is_taken)
  }
})

interface Harness extends AsyncDisposable {
  readonly partition: number
  readonly connection: NonNullable<typeof connection>
  sql(text: string, values?: readonly unknown[]): Promise<unknown>
}

async function newHarness(): Promise<Harness> {
  assert.ok(postgres !== undefined && connection !== undefined)
  const partition = await setup.ownedPartition(postgres.url(), connection)
  const sql = (text: string, values: readonly unknown[] = []) =>
    connection.query({ text, values: [partition, ...values] })
  return { partition, connection, sql, async [Symbol.asyncDispose]() {} }
}

const breaks = (at: number, error = new Error('cut off')): (() => void) => {
  let count = 0
  return () => {
    if (++count === at) throw error
  }
}

test('what was cut off while it was written is no snapshot, and goes', { skip }, async () => {
  const { partition, connection, sql } = await newHarness()
  const before = newDraft(partition, 5)
  await write(connection, before, entriesOf(60, 'before'))
  const entries = entriesOf(120, 'cut off')
  const { length } = [...chunksOf(entries, id, setup.chunk_bytes)]
  assert.ok(length > 2)
  for (let at = 1; at <= length; at++) {
    await assert.rejects(write(connection, newDraft(partition, 9), entries, breaks(at)), /cut off/)
    assert.deepEqual((await newestSnapshot(connection, partition))?.id, before.id)
  }
  // Begun alone, and a former owner's chunk that came late.
  await beginSnapshot(connection, newDraft(partition, 9))
  await sql(`INSERT INTO conveyor.snapshot_chunk VALUES ($1, 'late', 1, '')`)
  const step = async (): Promise<void> => {}
  await truncate({ connection, partition, epoch: 0, behind_bytes_max: 0, step })
  const stored = async () => {
    const { rows } = await connection.query<{ snapshot: Buffer; count: number }>({
      text: `SELECT snapshot, count(*)::int FROM conveyor.snapshot_chunk
        WHERE partition = $1 GROUP BY 1`,
      values: [partition],
    })
    return rows
  }
  assert.ok((await stored()).length > length, 'epoch 0 removes nothing')
  await truncate({ connection, partition, epoch: 1, behind_bytes_max: 0, step })
  const count = [...chunksOf(entriesOf(60, 'before'), id, setup.chunk_bytes)].length
  assert.deepEqual(await stored(), [{ snapshot: before.id, count }])
})

test('a former owner completes no snapshot, and removes none', { skip }, async () => {
  const { partition, connection, sql } = await newHarness()
  const takeOver = async (): Promise<void> => {
    await sql('UPDATE conveyor.owner SET epoch = 2 WHERE partition = $1')
  }
  const entries = entriesOf(20, 'fenced')
  await assert.rejects(write(connection, newDraft(partition, 5), entries, takeOver), {
    code: 'store_failed',
  })
  assert.equal(await newestSnapshot(connection, partition), undefined)
  await write(connection, newDraft(partition, 7, 2), entries)
  await assert.rejects(beginSnapshot(connection, newDraft(partition, 9, 1)), {
    code: 'store_failed',
  })
  assert.equal((await newestSnapshot(connection, partition))?.seq, 7)
})

test('a state is loaded as it was, whatever cut the loading off before', { skip }, async () => {
  const { partition, connection } = await newHarness()
  const entries = entriesOf(200, 'loaded')
  await write(connection, newDraft(partition, 5), entries)
  const path = newPath()
  const tree = await openTree(path)
  // What is in the file before is of an earlier time.
  await setup.fileOf(tree, connection, partition)
  tree.commit((writer) => {
    for (const { key, value } of entriesOf(300, 'old')) writer.put(key, value)
  })
  const cuts = [
    { onBegin: () => Promise.reject(new Error('cut off')) },
    { onLoaded: breaks(1) },
    { onLoaded: breaks(2) },
  ]
  for (const cut of cuts) {
    await assert.rejects(load(tree, connection, partition, cut), /cut off/)
    const { mark, manifest } = await setup.fileOf(tree, connection, partition)
    assert.deepEqual([mark.is_loading, manifest.seq], [true, 0])
  }
  const seen: number[] = []
  const loaded = await load(tree, connection, partition, {
    onLoaded: ({ bytes, of_bytes }) => seen.push(bytes / of_bytes),
  })
  assert.deepEqual([seen[0], seen.at(-1)], [0, 1])
  assert.deepEqual(await setup.fileOf(tree, connection, partition), loaded)
  assert.deepEqual([loaded.mark.is_loading, loaded.manifest.seq], [false, 5])
  assert.equal(loaded.manifest.last_crc, 5)
  assert.deepEqual(stateOf(tree), asState(entries))
  await tree.close()
})

test('a snapshot that is damaged is refused, and one that has gone is left', { skip }, async () => {
  const damages: readonly (readonly [string, RegExp])[] = [
    ['UPDATE conveyor.snapshot_chunk SET data = substring(data from 65)', /chunk 2 .* is damaged/],
    [`UPDATE conveyor.snapshot_chunk SET data = set_byte(data, 90, 1)`, /chunk 2 .* is damaged/],
    ['DELETE FROM conveyor.snapshot_chunk', /chunk 2 .* is missing/],
    [
      `UPDATE conveyor.snapshot_chunk SET data = (SELECT data FROM conveyor.snapshot_chunk AS other
        WHERE other.partition = $1 AND chunk = 2 AND other.snapshot <> $2)`,
      /chunk 2 .* is damaged/,
    ],
  ]
  for (const [damage, says] of damages) {
    const { partition, connection, sql } = await newHarness()
    const entries = entriesOf(60, 'whole')
    await write(connection, newDraft(partition, 3), entriesOf(60, 'other'))
    const draft = newDraft(partition, 5)
    await write(connection, draft, entries)
    const spoil = () =>
      sql(`${damage} WHERE partition = $1 AND snapshot = $2 AND chunk = 2`, [draft.id])
    await spoil()
    const tree = await openTree(newPath())
    const refused = { code: 'not_a_database', message: says }
    await assert.rejects(load(tree, connection, partition), refused)
    // The next one takes its place meanwhile.
    let begun = 0
    const next = entriesOf(80, 'next')
    const loaded = await load(tree, connection, partition, {
      async onBegin() {
        if (++begun === 1) await write(connection, newDraft(partition, 9), next)
      },
    })
    assert.deepEqual([begun, loaded.manifest.seq], [2, 9])
    assert.deepEqual(stateOf(tree), asState(next))
    await tree.close()
  }
})

test('the log before a snapshot goes, but for what members need', { skip }, async () => {
  // [members at a position, seen so many minutes ago; bytes to keep at most; the first kept]
  const rows: readonly (readonly [readonly (readonly [number, number])[], number, number])[] = [
    [[], 0, 60],
    [[[60, 0]], 0, 60],
    [[[80, 0]], 0, 60],
    [[[20, 0]], 100_000, 20],
    [[[20, 59]], 100_000, 20],
    [[[20, 61]], 100_000, 60],
    [[[20, 0]], 39_999, 60],
    [[[20, 0]], 40_000, 20],
    [
      [
        [20, 0],
        [40, 0],
      ],
      39_999,
      40,
    ],
    [[[0, 0]], 100_000, 60],
  ]
  for (const [members, behind_bytes_max, first] of rows) {
    const { partition, connection, sql } = await newHarness()
    await sql(`INSERT INTO conveyor.log (partition, seq, epoch, frame) SELECT $1, n, 1,
      convert_to(repeat('f', 1000), 'UTF8') FROM generate_series(1, 100) AS n`)
    for (const [seq, minutes] of members) {
      await sql(
        `INSERT INTO conveyor.replica (partition, node, seq, seen_at)
          VALUES ($1, $2::int8::text, $2::int8, now() - make_interval(mins => $3))`,
        [seq, minutes],
      )
    }
    await write(connection, newDraft(partition, 60), entriesOf(10, 'log'))
    const step = async (): Promise<void> => {}
    await truncate({ connection, partition, epoch: 1, behind_bytes_max, step })
    const { rows } = await connection.query({
      text: 'SELECT min(seq), count(*) FROM conveyor.log WHERE partition = $1',
      values: [partition],
    })
    assert.deepEqual(rows, [{ min: String(first), count: String(101 - first) }])
  }
})

const kills = is_slow ? 12 : 1

test('a kill at any step leaves the snapshot before, or the new one', { skip }, async () => {
  for (let n = 0; n < kills; n++) {
    const { partition, connection } = await newHarness()
    const before = entriesOf(100, 'before')
    await write(connection, newDraft(partition, 5), before)
    const path = newPath()
    await runKilled('write', partition, path, n)
    const written = (await newestSnapshot(connection, partition))?.seq
    assert.ok(written === 5 || written === 9)
    await runKilled('load', partition, path, n)
    const tree = await openTree(path)
    const loaded = await load(tree, connection, partition)
    assert.equal(loaded.manifest.seq, written)
    const entries = written === 5 ? before : entriesOf(2_000, 'killed')
    assert.deepEqual(stateOf(tree), asState(entries))
    await tree.close()
  }
})

/** Kills it at a step that is later with each `n`. */
async function runKilled(role: string, partition: number, path: string, n: number): Promise<void> {
  const script = join(import.meta.dirname, `support/snapshot-child${extname(import.meta.filename)}`)
  const args = [...process.execArgv, script, role, postgres?.url() ?? '', String(partition), path]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  const at = 5 * n + 2
  let steps = 0
  for await (const _ of createInterface({ input: child.stdout })) {
    if (steps++ === at) child.kill('SIGKILL')
  }
  const [exit, signal] = await closed
  assert.ok(signal === 'SIGKILL' || exit === 0)
}
