/**
 * Tasks in one SQLite table, by hand. A create refuses a ref that exists; a modify finds its task by
 * ref, merges the top level of the data, and moves the task between two nodes.
 */
import type { SqliteName } from './cells.ts'
import { openDatabase } from './sqlite-package.ts'
import { type BenchOp, conv_id } from './workload.ts'

export interface Table {
  /** All ops in one durable transaction; throws if one is refused. */
  apply(ops: readonly BenchOp[]): void
  /** The parsed data of a task. */
  read(ref: string): unknown
  count(): number
  close(): void
}

const schema = `
  CREATE TABLE IF NOT EXISTS tasks (
    id INTEGER PRIMARY KEY, conv INTEGER NOT NULL, ref TEXT NOT NULL, node TEXT NOT NULL,
    status TEXT NOT NULL, data TEXT NOT NULL, create_ms INTEGER NOT NULL, change_ms INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX IF NOT EXISTS tasks_by_ref ON tasks (conv, ref);`

const by_node = 'CREATE INDEX IF NOT EXISTS tasks_by_node ON tasks (conv, node, id);'

/** A page cache of 64 MiB. */
const usual = ['cache_size = -65536']
/** The settings that measured best with 10^6 tasks. */
const tuned = ['cache_size = -262144', 'mmap_size = 4294967296', 'wal_autocheckpoint = 10000']

const forms: Readonly<Record<SqliteName, { pragmas: readonly string[]; schema: string }>> = {
  sqlite: { pragmas: usual, schema },
  'sqlite-nodes': { pragmas: usual, schema: schema + by_node },
  'sqlite-tuned': { pragmas: tuned, schema },
}

interface Row {
  readonly id: number
  readonly node: string
  readonly data: string
}

export function openTable(path: string, form: SqliteName): Table {
  const { pragmas, schema } = forms[form]
  const db = openDatabase(path)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  for (const pragma of pragmas) db.pragma(pragma)
  db.exec(schema)
  const conv = Number(conv_id)
  const insert = db.prepare(
    `INSERT INTO tasks (conv, ref, node, status, data, create_ms, change_ms)
     VALUES (?, ?, 'wait', 'processed', ?, ?, ?) ON CONFLICT (conv, ref) DO NOTHING`,
  )
  const find = db.prepare('SELECT id, node, data FROM tasks WHERE conv = ? AND ref = ?')
  const move = db.prepare('UPDATE tasks SET node = ?, data = ?, change_ms = ? WHERE id = ?')
  const count = db.prepare('SELECT count(*) AS tasks FROM tasks')

  const create = ({ ref, data }: BenchOp, now_ms: number): void => {
    const { changes } = insert.run(conv, ref, JSON.stringify(data), now_ms, now_ms)
    if (changes !== 1) throw new Error(`${ref} exists already`)
  }
  const modify = ({ ref, data }: BenchOp, now_ms: number): void => {
    const row = find.get(conv, ref) as Row | undefined
    if (row === undefined) throw new Error(`${ref} does not exist`)
    const merged = Object.assign(JSON.parse(row.data) as object, data)
    move.run(row.node === 'wait' ? 'again' : 'wait', JSON.stringify(merged), now_ms, row.id)
  }
  const apply = db.transaction((ops: readonly BenchOp[]) => {
    const now_ms = Date.now()
    for (const op of ops) (op.type === 'create' ? create : modify)(op, now_ms)
  })
  return {
    apply,
    read: (ref) => {
      const row = find.get(conv, ref) as Row | undefined
      return row === undefined ? undefined : JSON.parse(row.data)
    },
    count: () => (count.get() as { tasks: number }).tasks,
    close: () => db.close(),
  }
}

/** Group commit by hand: all ops of one turn of the event loop are applied together. */
export function groupCommit(
  applyAll: (ops: readonly BenchOp[]) => void,
): (ops: readonly BenchOp[]) => Promise<void> {
  let group: BenchOp[] = []
  let callers: (() => void)[] = []
  const commit = (): void => {
    const answered = callers
    const ops = group
    group = []
    callers = []
    applyAll(ops)
    for (const answer of answered) answer()
  }
  return (ops) =>
    new Promise((resolve) => {
      if (callers.length === 0) setImmediate(commit)
      callers.push(resolve)
      group = group.length === 0 ? [...ops] : group.concat(ops)
    })
}
