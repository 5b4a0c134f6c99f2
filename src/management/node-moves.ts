/**
 * Counts how often tasks of a process came into its nodes and left them, from what the engine keeps
 * anyway: the feed of changes names the tasks that were changed, the history of each says when it
 * passed which node. Of a task that is gone the feed alone knows where it rested. It reads a
 * bounded part at a time between other work, and nothing is written.
 */
import { type ChangedTask, changesOfEntry } from '../codec/change-entry.ts'
import { changeKey } from '../codec/keys.ts'
import { nextTurn } from '../core/clock.ts'
import type { HistoryEntry } from '../core/model.ts'
import { readableTask } from '../engine/tasks/task-store.ts'
import { viewTask } from '../engine/tasks/task-view.ts'
import { firstEntry, lastEntry, readEntry } from '../engine/transactions/change-log.ts'
import type { Store, View } from '../store/store.ts'
import { refusal } from './act.ts'

export interface Move {
  readonly node_id: string
  readonly way: 'in' | 'out'
  readonly at_ms: number
}

export interface Moves {
  /** Since when changes are kept; undefined for none. */
  readonly from_ms: number | undefined
  readonly moves: readonly Move[]
}

/** Where a task was seen, and since when. */
interface Rest {
  readonly node_id: string
  readonly at_ms: number
  readonly is_canceled: boolean
}

/** Of one answer, so that its memory is bounded. */
const moves_max = 200_000
const entries_at_once = 64
const changes_at_once = 1_000
const tasks_at_once = 64

/** Rejects with a refusal where there are too many. */
export async function movesOf(store: Store, conv_id: string, start_id: string): Promise<Moves> {
  const [first, last] = await store.view((view) => [firstEntry(view), lastEntry(view)] as const)
  if (first.n === 0) return { from_ms: undefined, moves: [] }
  const seen = new Map<string, Rest[]>()
  let rests = 0
  const see = ({ obj_id, node_id, status }: ChangedTask, at_ms: number): void => {
    const known = seen.get(obj_id) ?? []
    const is_canceled = status === 'canceled'
    const before = known.at(-1)
    if (before?.node_id === node_id && before.is_canceled === is_canceled) return
    if (known.length === 0) seen.set(obj_id, known)
    known.push({ node_id, at_ms, is_canceled })
    if (++rests > moves_max) throw tooMany
  }
  for (let n = first.n; n <= last.n; ) {
    await store.view((view) => {
      let changes = 0
      for (
        let left = entries_at_once;
        left > 0 && n <= last.n && changes < changes_at_once;
        left--
      ) {
        const [value, entry] = [view.get(changeKey(n)), readEntry(view, n)]
        n++
        // Removed meanwhile, as too old.
        if (value === undefined || entry === undefined) continue
        const found = changesOfEntry(value)
        changes += found.length
        for (const change of found) if (change.conv_id === conv_id) see(change, entry.at_ms)
      }
    })
    await nextTurn()
  }
  const moves: Move[] = []
  const from_ms = first.at_ms
  const all = [...seen]
  for (let at = 0; at < all.length; at += tasks_at_once) {
    await store.view((view) => {
      for (const [obj_id, known] of all.slice(at, at + tasks_at_once)) {
        moves.push(...movesOfTask(view, obj_id, known, { from_ms, start_id }))
      }
    })
    if (moves.length > moves_max) throw tooMany
    await nextTurn()
  }
  return { from_ms, moves }
}

const tooMany = refusal(`over ${moves_max} moves are kept of this process: read engine.changes()`)

interface Since {
  readonly from_ms: number
  readonly start_id: string
}

function movesOfTask(view: View, obj_id: string, known: Rest[], since: Since): Move[] {
  const task = readableTask(view, obj_id)?.task
  const history = task && viewTask(task).history
  if (task === undefined || history === undefined || history.length === 0) {
    return restMoves(known, obj_id, since)
  }
  const moves = historyMoves(history, task.create_ms).filter(({ at_ms }) => at_ms >= since.from_ms)
  if (task.status !== 'canceled') return moves
  return [...moves, { node_id: task.node_id, way: 'out', at_ms: task.change_ms }]
}

/** The first entry is where it began, unless earlier ones were dropped. */
function historyMoves(history: readonly HistoryEntry[], create_ms: number): Move[] {
  const [first] = history
  const is_whole = first?.at_ms === create_ms && first.why !== 'go'
  return movesAlong(history, is_whole)
}

/** Of a task that was there before the feed nobody knows where it was. */
function restMoves(known: readonly Rest[], obj_id: string, { from_ms, start_id }: Since): Move[] {
  const is_new = createdMs(obj_id) >= Math.floor(from_ms / 1_000) * 1_000
  const [first, last] = [known[0] as Rest, known.at(-1) as Rest]
  const places = is_new ? [{ node_id: start_id, at_ms: first.at_ms }, ...known] : known
  const moves = movesAlong(places, is_new)
  if (!last.is_canceled) return moves
  return [...moves, { node_id: last.node_id, way: 'out', at_ms: last.at_ms }]
}

function movesAlong(
  places: readonly { readonly node_id: string; readonly at_ms: number }[],
  is_first_entered: boolean,
): Move[] {
  const moves: Move[] = []
  let before: string | undefined
  for (const { node_id, at_ms } of places) {
    if (node_id === before) continue
    if (before !== undefined) moves.push({ node_id: before, way: 'out', at_ms })
    if (before !== undefined || is_first_entered) moves.push({ node_id, way: 'in', at_ms })
    before = node_id
  }
  return moves
}

/** The first 8 digits of an id are the second of its creation. */
const createdMs = (obj_id: string): number => Number.parseInt(obj_id.slice(0, 8), 16) * 1_000
