/**
 * Appends without an answer: whatever happens on the way to the database, and to the database
 * itself, each frame is there exactly once and in its order, and none counts that only a server
 * without its synchronous standby has.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import type { Connection } from '../src/cluster/database/connection.ts'
import type { PostgresLogPort } from '../src/cluster/ownership/postgres-log.ts'
import { systemChance } from '../src/core/clock.ts'
import { type CommitLogWriter, writerOver } from '../src/store/commit-log/writer.ts'
import { changesNamed, written } from './support/commit-log-suite.ts'
import {
  connectionTo,
  type DatabaseCluster,
  log_id,
  logOver,
  newCluster,
} from './support/database-cluster.ts'
import { type Mishap, startProxy } from './support/database-proxy.ts'
import { fakeChance } from './support/fake-clock.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { runs } from './support/short-run.ts'

const postgres = await postgresOrSkip()
/** Short, because each mishap that nobody tells of takes so long. */
const answer_ms_max = 300

type Step = readonly [statement: string, mishap: Mishap | 'none']

const rows: [what: string, steps: readonly Step[]][] = [
  ['an append that never arrives', [['append', 'cut before']]],
  ['an append whose caller has gone', [['append', 'cut at once']]],
  ['an append whose answer is lost', [['append', 'cut after']]],
  ['an append that arrives much later', [['append', 'hold']]],
  ...(['cut before', 'cut at once', 'cut after', 'hold'] as const).map(
    (mishap): [string, Step[]] => [
      `a look-up that is lost as well: ${mishap}`,
      [
        ['append', 'cut after'],
        ['look-up', mishap],
      ],
    ],
  ),
  [
    'an append that is lost twice',
    [
      ['append', 'cut before'],
      ['look-up', 'none'],
      ['append', 'cut after'],
      ['look-up', 'cut after'],
    ],
  ],
  [
    'an append that arrives after the one that was sent in its place',
    [
      ['append', 'hold'],
      ['look-up', 'none'],
      ['append', 'cut after'],
    ],
  ],
]

function writerTo(
  connection: Connection,
  seq = 0,
  port: Partial<PostgresLogPort> = {},
): CommitLogWriter {
  return writerOver(logOver(connection, port), { id: log_id, seq, is_open: true })
}

/** What is told of appends without an answer. */
function newReasons(): {
  readonly reasons: string[]
  onAway(reason: unknown): void
  untilTold(count: number): Promise<void>
} {
  const reasons: string[] = []
  const told = new EventEmitter()
  return {
    reasons,
    onAway(reason) {
      reasons.push(String(reason))
      told.emit('away')
    },
    async untilTold(count) {
      while (reasons.length < count) await once(told, 'away')
    },
  }
}

/** Ends the waits for a synchronous standby; how many there were. */
async function cancelWaits(cluster: DatabaseCluster): Promise<number> {
  const waits = await cluster.sql(
    `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
  )
  return waits.length
}

/** The processes of a server read its settings one after the other. */
async function untilCommitsWait(cluster: DatabaseCluster): Promise<void> {
  for (let waits = 0; waits === 0; ) {
    let is_over = false
    const commit = cluster.sql('UPDATE conveyor.owner SET epoch = epoch').finally(() => {
      is_over = true
    })
    while (!is_over && waits === 0) waits = await cancelWaits(cluster)
    await commit
  }
}

async function assertFrames(cluster: DatabaseCluster, frames: readonly Buffer[]): Promise<void> {
  const found = await cluster.frames()
  assert.equal(found.length, frames.length)
  assert.ok(found.every((frame, at) => frame.equals(frames[at] as Buffer)))
}

test('appends without an answer', { skip: no_postgres ?? false }, async (t) => {
  assert.ok(postgres !== undefined)
  const proxy = await startProxy({ host: postgres.host, port: postgres.port })
  t.after(proxy.close)
  const through = (url: string): string => url.replace(/:\d+\//, `:${proxy.port}/`)

  await t.test('are there once', async (t) => {
    const cluster = await newCluster(postgres)
    const connection = connectionTo(through(cluster.url), answer_ms_max)
    const writer = writerTo(connection)
    const frames: Buffer[] = []
    for (const [what, steps] of rows) {
      await t.test(what, async () => {
        frames.push(await written(writer, changesNamed('before')))
        proxy.plan(steps)
        frames.push(await written(writer, changesNamed(what)))
        assert.equal(proxy.left(), 0)
        proxy.release()
        frames.push(await written(writer, changesNamed('after')))
        await assertFrames(cluster, frames)
      })
    }
    await writer.close()
  })

  await t.test('are there once after any rounds of mishaps', async (t) => {
    const seed = process.env.CONVEYOR_SEED ?? systemChance.bytes(4).toString('hex')
    t.diagnostic(`seed ${seed}`)
    const chance = fakeChance(seed)
    const cluster = await newCluster(postgres)
    const writer = writerTo(connectionTo(through(cluster.url), answer_ms_max))
    const frames: Buffer[] = []
    const mishaps = ['none', 'cut before', 'cut at once', 'cut after', 'cut after', 'hold'] as const
    const pick = <T>(from: readonly T[]): T =>
      from[Math.floor(chance.fraction() * from.length)] as T
    for (let round = 0; round < runs(36); round++) {
      const steps = Array.from({ length: Math.floor(chance.fraction() * 4) }, (_, at): Step => {
        const mishap = pick(mishaps)
        return [at === 0 ? 'append' : pick(['append', 'look-up']), mishap]
      })
      proxy.plan(steps)
      frames.push(await written(writer, changesNamed(`round ${round}`, round * 50)))
      if (chance.fraction() < 0.5) proxy.release()
    }
    proxy.plan([])
    proxy.release()
    frames.push(await written(writer, changesNamed('last')))
    await writer.close()
    await assertFrames(cluster, frames)
  })

  await t.test('are there once after the database was killed at each step', async () => {
    const cluster = await newCluster(postgres)
    const writer = writerTo(connectionTo(through(cluster.url), 2_000))
    const frames: Buffer[] = []
    const kills: Step[][] = [
      [['append', 'cut at once']],
      [
        ['append', 'cut after'],
        ['look-up', 'cut at once'],
      ],
    ]
    for (const steps of kills) {
      frames.push(await written(writer, changesNamed('before')))
      let started: Promise<void> | undefined
      proxy.onMishap = () => {
        if (proxy.left() > 0) return
        // After the bytes have gone, or before: the server decides.
        started = new Promise((done) => setImmediate(done)).then(async () => {
          await postgres.kill()
          await postgres.start()
        })
      }
      proxy.plan(steps)
      frames.push(await written(writer, changesNamed('during')))
      await started
      proxy.onMishap = () => {}
    }
    await writer.close()
    await assertFrames(cluster, frames)
  })

  await t.test('wait for a standby that is away, and keep few connections', async () => {
    const cluster = await newCluster(postgres)
    const { onAway, untilTold } = newReasons()
    const writer = writerTo(connectionTo(cluster.url, answer_ms_max), 0, { onAway })
    const frames = [await written(writer, changesNamed('before'))]
    await setStandbys('nobody')
    await untilCommitsWait(cluster)
    let is_durable = false
    const writing = written(writer, changesNamed('waits')).then((frame) => {
      is_durable = true
      return frame
    })
    await untilTold(1)
    // The wait of the first append is cut off: its row is there, and at this server alone.
    await cancelWaits(cluster)
    await untilTold(6)
    assert.equal(is_durable, false)
    const [{ open } = {}] = await cluster.sql<{ open: number }>(
      `SELECT count(*)::int AS open FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'conveyor%'`,
    )
    assert.ok(Number(open) <= 3, `${open} connections`)
    await setStandbys('')
    frames.push(await writing, await written(writer, changesNamed('after')))
    await writer.close()
    await assertFrames(cluster, frames)
  })

  await t.test('do not count where the wait was cut off, before a later commit', async () => {
    const cluster = await newCluster(postgres)
    const { reasons, onAway, untilTold } = newReasons()
    const writer = writerTo(connectionTo(cluster.url), 0, { onAway })
    const frames = [await written(writer, changesNamed('before'))]
    await setStandbys('nobody')
    await untilCommitsWait(cluster)
    const writing = written(writer, changesNamed('waits'))
    while ((await cancelWaits(cluster)) === 0) {}
    await untilTold(1)
    assert.match(reasons[0] ?? '', /warns: canceling wait for synchronous replication/)
    await setStandbys('')
    frames.push(await writing)
    await writer.close()
    await assertFrames(cluster, frames)
  })

  await t.test('are looked up where the count of rows is not told', async () => {
    const cluster = await newCluster(postgres)
    const connection = connectionTo(cluster.url)
    const frames: Buffer[] = []
    /** Of the next append: whether it gets to the database, which does not say what it did. */
    let next: 'lost' | 'done' | undefined
    const silent: Connection = {
      ...connection,
      async query(query) {
        const is_next = query.name === 'append' ? next : undefined
        if (is_next === undefined) return connection.query(query)
        next = undefined
        if (is_next === 'done') await connection.query(query)
        return { rows: [], rowCount: null } as never
      },
    }
    const writer = writerTo(silent)
    for (const outcome of ['lost', 'done'] as const) {
      next = outcome
      frames.push(await written(writer, changesNamed(outcome)))
    }
    await writer.close()
    await assertFrames(cluster, frames)
  })

  await t.test('fail at once where they could never succeed', async () => {
    const cluster = await newCluster(postgres)
    const writer = writerTo(connectionTo(cluster.url))
    await cluster.sql('ALTER TABLE conveyor.log RENAME COLUMN frame TO other')
    await assert.rejects(written(writer, changesNamed('a')), { code: '42703' })
    await writer.close()
  })

  async function setStandbys(names: string): Promise<void> {
    await postgres?.sql(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
    await postgres?.sql('SELECT pg_reload_conf()')
    for (;;) {
      const [row] = (await postgres?.sql('SHOW synchronous_standby_names')) ?? []
      if (row?.synchronous_standby_names === names) return
    }
  }
})
