/**
 * Finds tasks by a filter, page by page (`tasks.list`).
 *
 * A call reads at most `search_tasks_max` tasks, in slices that each see one durable state, and
 * lets other work run between them. A task that satisfies the filter all the time is found exactly
 * once; one that changes meanwhile is judged when the search passes its place. By `created` places
 * never change; by a time or a ref a task that changes its place meanwhile may be found again or
 * not at all.
 */
import { createHash } from 'node:crypto'
import { idHex, idOfValue, taskOfKey, timeOfKey } from '../codec/keys.ts'
import { nextTurn } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Task } from '../core/model.ts'
import type { Store, View } from '../store/store.ts'
import type { Catalog } from './catalog.ts'
import type { TaskPage, TaskQuery } from './search-api.ts'
import { nextEntries, type Place, type PlacedEntry, type Run, runsOf } from './search-order.ts'
import { type Scope, scopeOf } from './search-scope.ts'
import { badFilter, type CheckedFilter, checkFilter, isWanted, secondsOfId } from './task-filter.ts'
import { loadTask, type TaskDraft } from './task-store.ts'
import { viewTask } from './task-view.ts'

export interface SearchParts {
  readonly store: Store
  readonly catalog: Catalog
  readonly limits: Limits
}

const default_tasks_max = 100
const slice_tasks = 256
const slice_chars_max = 1024 * 1024

/** Rejects with `bad_filter`, `bad_cursor`, `conv_not_found` or `node_not_found`. */
export async function listTasks(parts: SearchParts, query: TaskQuery): Promise<TaskPage> {
  const { limits } = parts
  const { newest_first = false, limit = default_tasks_max, cursor, ...given } = query
  if (!Number.isInteger(limit) || limit < 1) throw badFilter('limit is no whole number above 0')
  const filter = checkFilter(given, limits)
  const identity = digestOf(filter.identity, newest_first)
  const from = cursor === undefined ? undefined : placeOfCursor(cursor, identity)
  const tasks: Task[] = []
  let chars = 0
  const end = await search(parts, filter, { from, reverse: newest_first }, ({ task }) => {
    tasks.push(viewTask(task))
    chars += task.doc.text.length
    return tasks.length < limit && chars < limits.answer_bytes_max
  })
  const { scanned, damaged, last } = end
  const page = { tasks, scanned, sorted_by: filter.sorted_by, damaged }
  if (last === undefined) return page
  const reached_ms = timeOfPlace(last, filter)
  return {
    ...page,
    cursor: cursorOf(last, identity),
    ...(reached_ms === undefined ? {} : { reached_ms }),
  }
}

export interface SearchEnd {
  readonly scanned: number
  readonly damaged: readonly string[]
  /** The place from which to go on; undefined at the end. */
  readonly last: Place | undefined
}

/**
 * Calls `take` with each wanted task after a place, until it returns false, the search has read
 * `search_tasks_max` tasks, or there are no more.
 */
export async function search(
  parts: SearchParts,
  filter: CheckedFilter,
  start: { readonly from: Place | undefined; readonly reverse: boolean },
  take: (draft: TaskDraft) => boolean,
): Promise<SearchEnd> {
  const { store, catalog, limits } = parts
  const { reverse } = start
  const scope = await scopeOf(store, catalog, filter)
  const damaged: string[] = []
  let scanned = 0
  let last = start.from
  for (;;) {
    const state = await store.view((view) => {
      const runs = runsOf(view, filter, scope)
      const entries_max = Math.min(limits.search_tasks_max - scanned, sliceOf(runs))
      const entries = nextEntries(view, runs, last, { reverse, entries_max })
      let chars_left = slice_chars_max
      for (const [at, entry] of entries.entries()) {
        scanned++
        last = entry
        const { obj_id, draft } = taskOfEntry(view, entry, filter, scope)
        if (draft === 'damaged') damaged.push(obj_id)
        if (draft === undefined || draft === 'damaged') continue
        chars_left -= draft.task.doc.text.length
        const has_more = at < entries.length - 1 || entries.length === entries_max
        if (isWanted(filter, draft.task) && !take(draft)) return has_more ? 'stop' : 'end'
        if (chars_left < 0 && has_more) return 'go_on'
      }
      return entries.length < entries_max ? 'end' : 'go_on'
    })
    if (state === 'end') return { scanned, damaged, last: undefined }
    if (state === 'stop' || scanned >= limits.search_tasks_max) return { scanned, damaged, last }
    await nextTurn()
  }
}

/** With very many runs a slice is longer, because each slice looks into all of them. */
function sliceOf(runs: readonly Run[]): number {
  return Math.max(slice_tasks, Math.min(runs.length, 8 * slice_tasks))
}

/** The task of an entry; undefined where it is in none of the processes and nodes. */
function taskOfEntry(
  view: View,
  { key, value }: PlacedEntry,
  { sorted_by }: CheckedFilter,
  { conv_ids, nodes }: Scope,
): { readonly obj_id: string; readonly draft: TaskDraft | 'damaged' | undefined } {
  const obj_id = sorted_by === 'ref' ? idOfValue(value) : taskOfKey(key)
  const draft = loadTask(view, obj_id)
  if (draft === undefined || draft === 'damaged') return { obj_id, draft }
  const { task } = draft
  const is_here = conv_ids.has(task.conv_id)
  const is_in_node = nodes === undefined || nodes.get(task.conv_id)?.includes(task.node_id) === true
  return { obj_id, draft: is_here && is_in_node ? draft : undefined }
}

/** The time of a place in the order of the search; undefined where it sorts by ref. */
function timeOfPlace({ prefix, place }: Place, { sorted_by }: CheckedFilter): number | undefined {
  if (sorted_by === 'ref') return undefined
  if (sorted_by === 'created') return secondsOfId(idHex(place)) * 1_000
  return timeOfKey(prefix + place).ms
}

// A cursor: its version (1 byte), the digest of filter and order (8), the length of the prefix (2),
// the prefix and the place.
const cursor_version = 1
const prefix_at = 11

function digestOf(identity: string, newest_first: boolean): Buffer {
  return createHash('sha256').update(`${newest_first} ${identity}`).digest().subarray(0, 8)
}

function cursorOf({ prefix, place }: Place, digest: Buffer): string {
  const head = Buffer.alloc(prefix_at)
  head[0] = cursor_version
  head.set(digest, 1)
  head.writeUInt16BE(prefix.length, prefix_at - 2)
  return Buffer.concat([head, Buffer.from(prefix + place, 'latin1')]).toString('base64url')
}

/** Throws `bad_cursor`. */
function placeOfCursor(cursor: string, digest: Buffer): Place {
  const bytes = Buffer.from(String(cursor), 'base64url')
  const is_whole = bytes.length > prefix_at && bytes.toString('base64url') === cursor
  if (!is_whole || bytes[0] !== cursor_version) {
    throw fault('bad_cursor', 'cursor: it is none that a page has given')
  }
  if (!bytes.subarray(1, prefix_at - 2).equals(digest)) {
    throw fault('bad_cursor', 'cursor: it belongs to a search by another filter or order')
  }
  const place_at = prefix_at + bytes.readUInt16BE(prefix_at - 2)
  const text = bytes.toString('latin1')
  return { prefix: text.slice(prefix_at, place_at), place: text.slice(place_at) }
}
