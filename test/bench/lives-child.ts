/**
 * The child of whole lives: one side's file with so many tasks that wait for a callback or their
 * timer, and lives on it. A life is a create, and later a callback that sends a task picked at
 * random among the waiting ones to its end, which is kept; so as many wait as before.
 *
 * A slot ends when the file is closed: what was put off until then is paid within it.
 */
import Database from 'better-sqlite3'
import { openEngine } from '../../src/index.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { inTurns } from './sqlite-table.ts'
import { type BenchOp, conv_id, node, opOf, secret_key } from './workload.ts'

export type LivesSide = 'ours' | 'sqlite'

export interface LivesSlot {
  readonly lives_per_s: number
  /** Of requests. */
  readonly p99_ms: number
}

export type LivesCalls = typeof calls

/** What both sides do. Rejects where an op is refused. */
interface Lives {
  apply(ops: readonly BenchOp[]): Promise<void>
  close(): Promise<void> | void
}

const timer_s = 3_600
const timer = { type: 'time', value: timer_s, dimension: 'sec', to_node_id: 'late' }
const definition = {
  ...{ obj_type: 1, obj_id: Number(conv_id), title: 'Lives', conv_type: 'process' },
  ...{ status: 'active', params: [] },
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'done' }], [timer]),
      node('done', 2, []),
      node('late', 2, []),
    ],
  },
}

async function openOurs(path: string): Promise<Lives> {
  const engine = await openEngine(path, { secret_key })
  await engine.putProcess(definition)
  return {
    async apply(ops) {
      const results = await engine.apply(ops)
      for (const { proc, description } of results) {
        if (proc !== 'ok') throw new Error(`${proc}: ${description}`)
      }
    },
    close: () => engine.close(),
  }
}

/** With the indexes of what is asked: a live task by its ref, what is due, who is in a node. */
const schema = `
  CREATE TABLE IF NOT EXISTS tasks (
    id INTEGER PRIMARY KEY, conv INTEGER NOT NULL, ref TEXT NOT NULL, node TEXT NOT NULL,
    is_live INTEGER NOT NULL, due_ms INTEGER, data TEXT NOT NULL,
    create_ms INTEGER NOT NULL, change_ms INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX IF NOT EXISTS tasks_by_ref ON tasks (conv, ref) WHERE is_live = 1;
  CREATE INDEX IF NOT EXISTS tasks_by_due ON tasks (due_ms) WHERE due_ms IS NOT NULL;
  CREATE INDEX IF NOT EXISTS tasks_by_node ON tasks (conv, node, id);`

function openSqlite(path: string): Lives {
  const db = new Database(path)
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
  return { apply: inTurns(apply), close: () => void db.close() }
}

const openSide = (side: LivesSide, path: string): Promise<Lives> | Lives =>
  side === 'ours' ? openOurs(path) : openSqlite(path)

const fill_batch = 1_000

const calls = {
  /** Tasks under the numbers from 0 on. */
  async make({ side, path, tasks }: { side: LivesSide; path: string; tasks: number }) {
    const lives = await openSide(side, path)
    for (let first = 0; first < tasks; first += fill_batch) {
      const count = Math.min(fill_batch, tasks - first)
      await lives.apply(opsOf('create', first, count))
    }
    await lives.close()
  },

  async run(given: {
    readonly side: LivesSide
    readonly path: string
    readonly tasks: number
    /** Lives that begin, and end, in one request. */
    readonly ops: number
    readonly callers: number
    readonly slot_s: number
  }): Promise<LivesSlot> {
    const { side, path, tasks, ops, callers, slot_s } = given
    const lives = await openSide(side, path)
    const waiting = Uint32Array.from({ length: tasks }, (_, n) => n)
    let made = tasks
    let picks = 0
    /** Of each caller in turn: what it creates next, or what it has created and not yet traded. */
    const begun: number[] = []
    const pick = (created: number): number => {
      const at = Math.floor(fraction(picks++) * tasks)
      const picked = waiting[at] as number
      waiting[at] = created
      return picked
    }
    const start_ms = performance.now()
    const slot = await closedLoop({ callers, ops, warmup_s: 0, slot_s }, async () => {
      const first = begun.pop()
      if (first === undefined) {
        const next = made
        made += ops
        await lives.apply(opsOf('create', next, ops))
        begun.push(next)
      } else {
        const picked = Array.from({ length: ops }, (_, n) => pick(first + n))
        await lives.apply(picked.map((n) => opOf('modify', n, 'random')))
      }
    })
    await lives.close()
    const seconds = (performance.now() - start_ms) / 1_000
    return { lives_per_s: slot.whole.ops / 2 / seconds, p99_ms: slot.p99_ms }
  },
}

serveCalls(calls)

function opsOf(verb: 'create' | 'modify', first: number, count: number): BenchOp[] {
  return Array.from({ length: count }, (_, n) => opOf(verb, first + n, 'random'))
}

/** The same picks on both sides: a number in [0, 1) for each whole one, evenly spread. */
function fraction(n: number): number {
  let h = Math.imul(n + 1, 0x9e3779b1)
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b)
  return ((h ^ (h >>> 13)) >>> 0) / 2 ** 32
}
