/**
 * Judges what a shop has left, from its data file, its feed file and the ledger of its bank: a
 * sentence for each order, charge, change or due time that is not as it must be.
 */
import { readFile } from 'node:fs/promises'
import type { Engine, Task, TaskChange } from '../../src/index.ts'
import type { LedgerLine } from './shop/bank.ts'
import { order, report } from './shop/order.ts'
import type { Sale } from './shop-load.ts'
import { tasksOf } from './tasks-of.ts'

export interface Left {
  /** Opened without timers. */
  readonly engine: Engine
  readonly sales: ReadonlyMap<string, Sale>
  readonly ledger: string
  readonly feed: string
  /** By ref, where the charge was known before a deploy: the size of the ledger right after it. */
  readonly known: ReadonlyMap<string, number>
}

export interface Verdict {
  readonly wrong: readonly string[]
  readonly counts: Readonly<Record<string, number>>
}

export async function judgeShop({ engine, sales, ledger, feed, known }: Left): Promise<Verdict> {
  const { breaches } = await engine.check()
  const orders = await tasksOf(engine, order.obj_id, { status: 'any' })
  const reports = await tasksOf(engine, report.obj_id, { status: 'any' })
  const seen = await linesOf<TaskChange>(feed)
  const { obj_id: now } = await engine.create({ conv_id: report.obj_id, data: { due_ms: 0 } })
  const rest = await changesUntil(engine, now, seen.at(-1)?.line.position)
  const all = await changesUntil(engine, now, 'start')
  const lines = await linesOf<LedgerLine>(ledger)
  const charges = judgeCharges(orders, lines, known)
  const changes = [...seen.map(({ line }) => line), ...rest]
  return {
    wrong: [
      ...breaches,
      ...judgeOrders(orders, sales),
      ...charges.wrong,
      ...judgeFeed(changes, all),
      ...judgeHistories([...orders, ...reports], all),
      ...(await judgeDueTimes(engine, reports)),
    ],
    counts: {
      orders: orders.length,
      'retried after a failure': orders.filter(({ history = [] }) =>
        history.some(({ why }) => why === 'retry'),
      ).length,
      ...charges.counts,
      'feed changes': seen.length,
      'due times': reports.length,
    },
  }
}

/** Each order that was taken is one task, which has ended as its customer was told. */
function judgeOrders(orders: readonly Task[], sales: ReadonlyMap<string, Sale>): string[] {
  const by_ref = groupBy(orders, ({ ref }) => ref ?? '')
  const wrong = [...by_ref.keys()].filter((ref) => !sales.has(ref)).map((ref) => `${ref}: unknown`)
  for (const [ref, { obj_id, result }] of sales) {
    const [task, ...others] = by_ref.get(ref) ?? []
    if (task === undefined) wrong.push(`${ref}: lost`)
    else if (others.length > 0) wrong.push(`${ref}: ${others.length + 1} tasks`)
    else if (task.status !== 'processed') wrong.push(`${ref}: ${task.status} in ${task.node_id}`)
    else if (task.obj_id !== obj_id || task.node_id !== result?.node_id) {
      wrong.push(`${ref}: ended otherwise than its customer was told`)
    }
  }
  return wrong
}

/** Each order is charged or declined once, under one key, and never again once that was known. */
function judgeCharges(
  orders: readonly Task[],
  lines: readonly Line<LedgerLine>[],
  known: ReadonlyMap<string, number>,
): Verdict {
  const asked = lines.filter(({ line }) => line.path === '/charges')
  const by_order = groupBy(asked, ({ line }) => line.order)
  const wrong: string[] = []
  let again = 0
  for (const { ref, node_id, data } of orders) {
    const own = by_order.get(ref ?? '') ?? []
    const keys = new Set(own.map(({ line }) => line.key)).size
    if (keys > 1) wrong.push(`${ref}: charged under ${keys} keys`)
    const made = own.filter(({ line: { did } }) => did === 'made' || did === 'declined')
    const wanted = node_id === 'done' ? 'made' : 'declined'
    const told = (data as { charge_id?: string }).charge_id
    const [{ line } = { line: undefined }] = made
    if (made.length !== 1 || line?.did !== wanted || (wanted === 'made' && told !== line.key)) {
      wrong.push(`${ref}: ${made.map(({ line: { did } }) => did)} in ${node_id}`)
    }
  }
  for (const { line, at } of asked) {
    if (at < (known.get(line.order) ?? Infinity)) continue
    wrong.push(`${line.order}: its charge was known before a deploy and is asked for again`)
    again++
  }
  const count = (did: LedgerLine['did']): number =>
    asked.filter(({ line }) => line.did === did).length
  const counts = {
    'charges made': count('made'),
    declined: count('declined'),
    'known before a deploy': known.size,
    'of these asked for again': again,
    'repeats with the same key': count('repeat'),
  }
  return { wrong, counts }
}

/** What the consumer saw is what the engine tells a consumer who reads it all at once. */
function judgeFeed(seen: readonly TaskChange[], all: readonly TaskChange[]): string[] {
  const at = all.findIndex((change, n) => JSON.stringify(change) !== JSON.stringify(seen[n]))
  if (at === -1 && seen.length === all.length) return []
  const positions = new Set(seen.map(({ position }) => position))
  const missing = all.filter(({ position }) => !positions.has(position)).length
  return [
    `feed: ${seen.length - positions.size} changes twice, ${missing} missing, ` +
      `the first difference at change ${at} of ${all.length}`,
  ]
}

/** Each task has its changes in the order of its history, the last of them its state, one its end. */
function judgeHistories(tasks: readonly Task[], changes: readonly TaskChange[]): string[] {
  const by_task = groupBy(changes, ({ obj_id }) => obj_id)
  return tasks.flatMap(({ obj_id, ref, status, node_id, history = [] }) => {
    const own = by_task.get(obj_id) ?? []
    const last = own.at(-1)
    const ends = own.filter((change) => change.status === 'processed').length
    const times = new Set(own.map(({ at_ms }) => at_ms))
    return [
      ...(last?.status === status && last.node_id === node_id ? [] : [`${ref}: its last change`]),
      ...(ends === Number(status === 'processed') ? [] : [`${ref}: ended ${ends} times`]),
      ...history
        .filter(({ at_ms }) => !times.has(at_ms))
        .map(({ why }) => `${ref}: no change for ${why} of its history`),
    ]
  })
}

/** Each second from the first due time to the last has its report. */
async function judgeDueTimes(engine: Engine, reports: readonly Task[]): Promise<string[]> {
  const made = reports.flatMap(({ ref }) => (ref?.startsWith('daily@') ? [ref] : [])).sort()
  const first_ms = Date.parse(made[0]?.slice('daily@'.length) ?? '')
  const { last } = await engine.schedules.show('daily')
  const count = ((last?.due_ms ?? 0) - first_ms) / 1000 + 1
  const wanted = Array.from({ length: count }, (_, n) => {
    const due = new Date(first_ms + n * 1000).toISOString()
    return `daily@${due.replace('.000', '')}`
  })
  return made.join() === wanted.join() ? [] : [`due times: ${made.join()} for ${wanted.join()}`]
}

/** All changes before the first one of a task. */
async function changesUntil(
  engine: Engine,
  until: string | undefined,
  from = 'start',
): Promise<TaskChange[]> {
  const found: TaskChange[] = []
  for await (const change of engine.changes({ from })) {
    if (change.obj_id === until) break
    found.push(change)
  }
  return found
}

function groupBy<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(nameOf(item))
    if (group === undefined) groups.set(nameOf(item), [item])
    else group.push(item)
  }
  return groups
}

interface Line<T> {
  readonly line: T
  /** How many bytes are before it. */
  readonly at: number
}

async function linesOf<T>(path: string): Promise<Line<T>[]> {
  let at = 0
  return (await readFile(path, 'utf8')).split('\n').flatMap((text) => {
    const begin = at
    at += Buffer.byteLength(text) + 1
    return text === '' ? [] : [{ line: JSON.parse(text) as T, at: begin }]
  })
}
