/**
 * `show stat`: how many tasks came into nodes and left them, by minute, hour or day, or in all. It
 * is counted before the transaction from the changes that are kept (node-moves), one count at a
 * time in an engine, and only for who may edit the process.
 */
import { grantKey } from '../codec/keys.ts'
import { grant_bits } from '../codec/records.ts'
import { isFault } from '../core/faults.ts'
import type { Caller, JsonObject, JsonValue } from '../core/model.ts'
import { mayAdminister } from '../engine/access/users.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import {
  type Act,
  editable,
  idText,
  invalid,
  noObject,
  numberIn,
  refusal,
  required,
} from './act.ts'
import type { Answer } from './answers.ts'
import { type Moves, movesOf } from './node-moves.ts'

interface Wanted {
  readonly start_ms: number
  readonly end_ms: number
  readonly interval_ms: number
  /** From UTC to local time. */
  readonly shift_ms: number
  readonly group: 'time' | 'all'
  /** Undefined for all nodes. */
  readonly node_ids: readonly string[] | undefined
}

interface Count {
  in: number
  out: number
}

const intervals = new Map([
  ['minute', 60_000],
  ['hour', 3_600_000],
  ['day', 86_400_000],
])
const rows_max = 10_000
const nodes_max = 1_000
const seconds_max = 99_999_999_999
const day_minutes = 24 * 60

/** What the ops of a request count, until it is answered. */
const counted = new WeakMap<JsonObject, Moves | Error>()
const counting = new WeakMap<ServedEngine, Promise<unknown>>()

export async function countMoves(
  engine: ServedEngine,
  op: JsonObject,
  caller: Caller,
): Promise<void> {
  const { store, catalog } = engine.process_parts
  const conv_id = idText(op.conv_id)
  if (conv_id === undefined || !isWellFormed(op)) return
  const start_id = await store.view((view) => {
    const bits =
      caller.user === undefined ? 0 : (view.get(grantKey(caller.user, conv_id))?.[0] ?? 0)
    const may = mayAdminister(view, caller) || (bits & grant_bits.edit) !== 0
    return may ? catalog.find(view, conv_id)?.graph.start_id : undefined
  })
  if (start_id === undefined) return
  const before = counting.get(engine) ?? Promise.resolve()
  const found = before.then(() => movesOf(store, conv_id, start_id))
  const settled = found.catch(() => undefined)
  counting.set(engine, settled)
  try {
    counted.set(op, await found)
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    counted.set(op, thrown)
  }
}

function isWellFormed(op: JsonObject): boolean {
  try {
    wantedIn(op)
    return true
  } catch (thrown) {
    if (isFault(thrown)) return false
    throw thrown
  }
}

export function showStat(act: Act): Answer {
  const { graph } = editable(act, 'conv_id')
  const wanted = wantedIn(act.op)
  const { group, node_ids = [...graph.nodes.keys()] } = wanted
  for (const id of node_ids) if (!graph.nodes.has(id)) throw noObject('node', id)
  if (act.engine.limits.changes_bytes_max === 0) {
    throw refusal('nothing is counted here: changes_bytes_max is 0')
  }
  const moves = counted.get(act.op)
  if (moves === undefined) throw refusal('the rights have changed meanwhile: ask again')
  if (moves instanceof Error) throw moves
  const { now_ms } = act.tx
  const from_ms = moves.from_ms ?? now_ms
  const first_ms = Math.max(wanted.start_ms, from_ms)
  const end_ms = Math.min(wanted.end_ms, now_ms + 1)
  const in_window = moves.moves.filter(({ at_ms }) => at_ms >= first_ms && at_ms < end_ms)
  const from = Math.ceil(from_ms / 1_000)
  if (group === 'all') {
    const counts = new Map(node_ids.map((id): [string, Count] => [id, { in: 0, out: 0 }]))
    for (const { node_id, way } of in_window) {
      const count = counts.get(node_id)
      if (count !== undefined) count[way]++
    }
    const data = [...counts].map(([id, count]): JsonObject => {
      return { id, title: graph.nodes.get(id)?.title ?? '', ...count }
    })
    return { group, from, data }
  }
  const slotOf = (at_ms: number): number =>
    Math.floor((at_ms + wanted.shift_ms) / wanted.interval_ms) * wanted.interval_ms
  const slots = new Map<number, Count>()
  for (let at = slotOf(first_ms); at - wanted.shift_ms < end_ms; at += wanted.interval_ms) {
    slots.set(at, { in: 0, out: 0 })
  }
  const ids = new Set(node_ids)
  for (const { node_id, way, at_ms } of in_window) {
    const count = ids.has(node_id) ? slots.get(slotOf(at_ms)) : undefined
    if (count !== undefined) count[way]++
  }
  const data = [...slots].map(([at, count]): JsonObject => ({ date: dateText(at), ...count }))
  return { group, from, data }
}

/** `2022-10-28 11:00:00` */
const dateText = (local_ms: number): string =>
  new Date(local_ms).toISOString().slice(0, 19).replace('T', ' ')

function wantedIn(op: JsonObject): Wanted {
  const { interval = 'hour', group = 'time' } = op
  const start_ms = secondsIn(op, 'start') * 1_000
  const end_ms = secondsIn(op, 'end') * 1_000
  if (end_ms <= start_ms) throw invalid('end', 'later than start')
  const interval_ms = intervals.get(String(interval))
  if (interval_ms === undefined) throw invalid('interval', [...intervals.keys()].join(', '))
  if (group !== 'time' && group !== 'all') throw invalid('group', 'time or all')
  if (group === 'time' && (end_ms - start_ms) / interval_ms > rows_max) {
    throw refusal(`over ${rows_max} rows: a longer interval or a shorter time`, { key: 'interval' })
  }
  const limits = { min: -day_minutes, max: day_minutes, usual: 0 }
  // As browsers have it: from local time to UTC.
  const shift_ms = -60_000 * numberIn({ op }, 'timezone_offset', limits)
  const node_ids = nodeIdsIn(op)
  if (node_ids === undefined && group === 'time') throw required('node_id')
  return { start_ms, end_ms, interval_ms, shift_ms, group, node_ids }
}

function secondsIn(op: JsonObject, key: 'start' | 'end'): number {
  if (op[key] === undefined || op[key] === null) throw required(key)
  return numberIn({ op }, key, { max: seconds_max, usual: 0 })
}

function nodeIdsIn({ node_id, node_ids }: JsonObject): readonly string[] | undefined {
  const given: JsonValue = node_ids ?? (node_id === undefined ? null : [node_id])
  if (given === null) return undefined
  if (!Array.isArray(given) || given.length === 0 || given.length > nodes_max) {
    throw invalid('node_ids', `1 to ${nodes_max} ids`)
  }
  return given.map((one) => {
    const id = idText(one)
    if (id === undefined) throw invalid(node_ids === undefined ? 'node_id' : 'node_ids', 'an id')
    return id
  })
}
