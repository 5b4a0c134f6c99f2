/**
 * The child of the cells of whole lives. A life of a task is a create, a wait for a callback or a
 * timer, and a callback that sends a waiting task to its end, which is kept. So the number of waiting
 * tasks stays the same. Callbacks come in random order, or in order of creation.
 *
 * A slot includes the close of the file, and with it all deferred work. The CPU time of an op is that
 * of this process, which makes the load too, and of the checkpoint process.
 */
import { openEngine } from '../../src/index.ts'
import type { Refs } from './cells.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { type CallbackOrder, lifeOrder } from './life-order.ts'
import { type ProbeMode, probeCalls } from './probe.ts'
import { bytesOnDisk, cpuSeconds, watchMemory } from './resource-usage.ts'
import { openDatabase } from './sqlite-package.ts'
import { groupCommit } from './sqlite-table.ts'
import { scrape, watch } from './watches.ts'
import {
  assertOk,
  type BenchOp,
  conv_id,
  lives_definition,
  opOf,
  secret_key,
  switched_off,
  timer_s,
} from './workload.ts'

/**
 * `off`: ours without the history of tasks and the feed of changes. `watched`: with these, lines of the
 * log and scraped metrics.
 */
export type LivesSide = 'ours' | 'off' | 'watched' | 'sqlite'

/** For each task of a closed file, waiting or ended: of the data file, and with all beside it. */
export interface TaskBytes {
  readonly file_bytes: number
  readonly disk_bytes: number
}

export interface LivesSlot extends TaskBytes {
  readonly lives_per_s: number
  /** Of requests, as the worst. */
  readonly p99_ms: number
  readonly worst_ms: number
  /** A life is two ops. */
  readonly cpu_us_per_op: number
  /** At its highest, without mapped files. */
  readonly memory_bytes: number
}

export type LivesCalls = typeof calls

interface LivesStore {
  /** All ops in one durable transaction; rejects if one is refused. */
  apply(ops: readonly BenchOp[]): Promise<void>
  close(): Promise<void> | void
}

async function openOurs(side: LivesSide, path: string): Promise<LivesStore> {
  const watches = side === 'watched' ? (['logs', 'metrics'] as const) : []
  const limits = side === 'off' ? switched_off : {}
  const engine = await openEngine(path, { secret_key, limits, ...watch(watches).options })
  await engine.processes.put(lives_definition)
  const stopScrapes = scrape(engine, watches)
  return {
    async apply(ops) {
      assertOk(await engine.apply(ops))
    },
    close() {
      stopScrapes()
      return engine.close()
    },
  }
}

/** Indexes: live tasks by ref, tasks by due time, tasks by node. */
const schema = `
  CREATE TABLE IF NOT EXISTS tasks (
    id INTEGER PRIMARY KEY, conv INTEGER NOT NULL, ref TEXT NOT NULL, node TEXT NOT NULL,
    is_live INTEGER NOT NULL, due_ms INTEGER, data TEXT NOT NULL,
    create_ms INTEGER NOT NULL, change_ms INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX IF NOT EXISTS tasks_by_ref ON tasks (conv, ref) WHERE is_live = 1;
  CREATE INDEX IF NOT EXISTS tasks_by_due ON tasks (due_ms) WHERE due_ms IS NOT NULL;
  CREATE INDEX IF NOT EXISTS tasks_by_node ON tasks (conv, node, id);`

function openSqlite(path: string): LivesStore {
  const db = openDatabase(path)
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'cache_size = -65536']) {
    db.pragma(pragma)
  }
  db.exec(schema)
  const insert = db.prepare(
    `INSERT INTO tasks (conv, ref, node, is_live, due_ms, data, create_ms, change_ms)
     VALUES (?, ?, 'wait', 1, ?, ?, ?, ?)`,
  )
  const find = db.prepare(
    "SELECT id, data FROM tasks WHERE conv = ? AND ref = ? AND is_live = 1 AND node = 'wait'",
  )
  const end = db.prepare(
    "UPDATE tasks SET node = 'done', is_live = 0, due_ms = NULL, data = ?, change_ms = ? WHERE id = ?",
  )
  const conv = Number(conv_id)
  const apply = db.transaction((ops: readonly BenchOp[]) => {
    const now_ms = Date.now()
    for (const { type, ref, data } of ops) {
      if (type === 'create') {
        insert.run(conv, ref, now_ms + timer_s * 1_000, JSON.stringify(data), now_ms, now_ms)
        continue
      }
      const { id, data: text } = find.get(conv, ref) as { id: number; data: string }
      end.run(JSON.stringify(Object.assign(JSON.parse(text) as object, data)), now_ms, id)
    }
  })
  return { apply: groupCommit(apply), close: () => void db.close() }
}

const openStore = (side: LivesSide, path: string): Promise<LivesStore> | LivesStore =>
  side === 'sqlite' ? openSqlite(path) : openOurs(side, path)

const fill_batch = 1_000

const calls = {
  ...probeCalls,

  /** Creates a file with waiting tasks, under the numbers from 0 on; returns its bytes for each. */
  async make(given: {
    readonly side: LivesSide
    readonly path: string
    readonly tasks: number
    readonly refs?: Refs
  }) {
    const { side, path, tasks, refs = 'random' } = given
    const store = await openStore(side, path)
    for (let first = 0; first < tasks; first += fill_batch) {
      const count = Math.min(fill_batch, tasks - first)
      await store.apply(Array.from({ length: count }, (_, n) => opOf('create', first + n, refs)))
    }
    await store.close()
    return await bytesEach(path, tasks)
  },

  async run(given: {
    readonly side: LivesSide
    readonly path: string
    readonly tasks: number
    readonly order?: CallbackOrder
    readonly refs?: Refs
    /** Creates in one request, and callbacks in another. */
    readonly ops: number
    readonly callers: number
    readonly slot_s: number
    /** The slot ends after so many lives if that is sooner. */
    readonly lives_max?: number | undefined
    /** What is measured besides, until `stopProbe` returns it. */
    readonly probe?: ProbeMode | undefined
  }): Promise<LivesSlot> {
    const { side, path, tasks, ops, callers, slot_s, lives_max, refs = 'random' } = given
    const store = await openStore(side, path)
    const order = lifeOrder(tasks, ops, given.order)
    let made = tasks
    const requests_max = lives_max === undefined ? undefined : (2 * lives_max) / ops
    const load = { callers, ops, warmup_s: 0, slot_s, ...(requests_max && { requests_max }) }
    const request = async (): Promise<void> => {
      const [verb, numbers] = order.take()
      await store.apply(numbers.map((n) => opOf(verb, n, refs)))
      if (verb === 'modify') return
      order.created(numbers)
      made += ops
    }
    globalThis.gc?.()
    await probeCalls.startProbe(given.probe)
    const before_s = cpuSeconds()
    const highestMemory = watchMemory()
    let [close_s, cpu_s] = [0, 0]
    const slot = await closedLoop(load, request, async () => {
      const end_ms = performance.now()
      await store.close()
      await probeCalls.stopProbe()
      close_s = (performance.now() - end_ms) / 1_000
      cpu_s = cpuSeconds() - before_s
    })
    const { whole, p99_ms, worst_ms } = slot
    return {
      ...{ lives_per_s: whole.ops / 2 / (whole.seconds + close_s), p99_ms, worst_ms },
      ...{ cpu_us_per_op: (cpu_s * 1e6) / whole.ops, memory_bytes: highestMemory() },
      ...(await bytesEach(path, made)),
    }
  },
}

serveCalls(calls)

async function bytesEach(path: string, tasks: number): Promise<TaskBytes> {
  const { file_bytes, beside_bytes } = await bytesOnDisk(path)
  return { file_bytes: file_bytes / tasks, disk_bytes: (file_bytes + beside_bytes) / tasks }
}
