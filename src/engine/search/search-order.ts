/**
 * The index that answers a filter, as runs of keys: a run is the keys of one process or node, a
 * prefix and then a task's place. All runs of a search sort alike (by ref, time or obj_id), so a
 * merge gives one order. Places that are ids never change when a task moves.
 */
import { idBytes, idOfValue } from '../../codec/ids.ts'
import {
  after,
  atNodeKey,
  dueKey,
  dueOf,
  endedKey,
  endedOf,
  failedKey,
  failedOf,
  type Key,
  type KeyRange,
  type KeyType,
  keysOfType,
  refsOf,
  taskKey,
  tasksAtNode,
} from '../../codec/keys.ts'
import { liveOf } from '../../codec/records.ts'
import { is_live } from '../../codec/task-record.ts'
import type { Entry, View } from '../../store/store.ts'
import { countsByNode } from '../transactions/node-counters.ts'
import { processesWith } from '../transactions/scans.ts'
import type { Scope } from './search-scope.ts'
import type { CheckedFilter } from './task-filter.ts'

export interface Run extends KeyRange {
  readonly prefix: Key
  /** Its keys are refs; other runs may have equal places. */
  readonly is_by_ref: boolean
}

/** The place of a task in a run. Equal refs are ordered by prefix. */
export interface Place {
  readonly prefix: Key
  readonly place: string
}

export interface PlacedEntry extends Place {
  readonly id: string
}

export interface Source {
  /** Up to `entries_max` entries after a place. */
  next(
    view: View,
    last: Place | undefined,
    entries_max: number,
  ): { readonly entries: readonly PlacedEntry[]; readonly has_more: boolean }
}

/** With very many runs a slice is longer, because it reads all of them. */
const slice_entries_max = 2_048

/** Each slice finds the runs again, because nodes fill and empty. */
export function sourceOf(runsIn: (view: View) => readonly Run[], reverse: boolean): Source {
  return {
    next(view, last, given_max) {
      const runs = runsIn(view)
      const entries_max = Math.max(given_max, Math.min(runs.length, slice_entries_max))
      const entries = nextEntries(view, runs, last, { reverse, entries_max })
      return { entries, has_more: entries.length === entries_max }
    },
  }
}

/** A process with more used nodes is searched task by task. */
const node_runs_max = 256

export function runsOf(view: View, filter: CheckedFilter, scope: Scope): Run[] {
  const { conv_ids } = scope
  if (filter.sorted_by === 'created') return runsById(view, filter, scope)
  const processes = (type: KeyType): readonly string[] =>
    conv_ids.size === 1 ? [...conv_ids] : processesWith(view, type)
  if (filter.sorted_by === 'ref') {
    return processes('ref').map((conv) => ({
      ...runOf(refsOf(conv, ''), refsOf(conv, filter.ref_prefix)),
      is_by_ref: true,
    }))
  }
  if (filter.sorted_by === 'due') {
    const to_ms = filter.due_before_ms ?? 0
    return processes('due').map((conv) => runOf(dueOf(conv), { to: dueKey(conv, to_ms, '') }))
  }
  const is_failed = filter.sorted_by === 'failed'
  const { since, until } = is_failed ? filter.changed : filter.ended
  const [rangeOf, keyAt] = is_failed ? [failedOf, failedKey] : [endedOf, endedKey]
  return processes(is_failed ? 'failed' : 'ended').map((conv) => {
    const all = rangeOf(conv)
    const to = until === Number.POSITIVE_INFINITY ? all.to : keyAt(conv, Math.ceil(until), '')
    return runOf(all, { from: keyAt(conv, Math.ceil(since), ''), to })
  })
}

/** Runs in id order: of nodes, or of all tasks. */
export function runsById(view: View, filter: CheckedFilter, scope: Scope): Run[] {
  const { created } = filter
  const from = secondsHex(created.since)
  const to = created.until === Number.POSITIVE_INFINITY ? undefined : secondsHex(created.until, 1)
  const nodes = filter.statuses.every((status) => is_live[status])
    ? nodesIn(view, scope)
    : undefined
  if (nodes === undefined) {
    const all = keysOfType('task')
    return [runOf(all, { from: taskKey(from), to: to === undefined ? all.to : taskKey(to) })]
  }
  return nodes.map(([conv, node]) => {
    const all = tasksAtNode(conv, node)
    const end = to === undefined ? all.to : atNodeKey(conv, node, to)
    return runOf(all, { from: atNodeKey(conv, node, from), to: end })
  })
}

function runOf(all: KeyRange, part: Partial<KeyRange>): Run {
  return { prefix: all.from, from: part.from ?? all.from, to: part.to ?? all.to, is_by_ref: false }
}

/** The first bytes of the ids of a second, in hex; `more` seconds later. */
function secondsHex(ms: number, more = 0): string {
  const seconds = Math.min(Math.floor(ms / 1_000) + more, 0xffffffff)
  return seconds.toString(16).padStart(8, '0')
}

type NodeOfProcess = readonly [conv_id: string, node_id: string]

/** Nodes with live tasks in scope; undefined if too many, or all. */
function nodesIn(view: View, { conv_ids, nodes }: Scope): readonly NodeOfProcess[] | undefined {
  const [conv_id = ''] = conv_ids
  if (nodes === undefined && conv_ids.size !== 1) return undefined
  const found =
    nodes === undefined
      ? nodesInUse(view, conv_id)
      : [...nodes].flatMap(([conv, ids]) => ids.map((id): NodeOfProcess => [conv, id]))
  return found.length > node_runs_max ? undefined : found
}

/** By the counters, because keys of tasks that left a node would have to be skipped. */
function nodesInUse(view: View, conv_id: string): NodeOfProcess[] {
  const nodes = [...countsByNode(view, conv_id)].filter(([, counts]) => liveOf(counts) > 0)
  return nodes.map(([node]): NodeOfProcess => [conv_id, node])
}

const chunk_min = 16

/** The next entries of all runs after a place, in order. */
function nextEntries(
  view: View,
  runs: readonly Run[],
  last: Place | undefined,
  options: { readonly reverse: boolean; readonly entries_max: number },
): PlacedEntry[] {
  const { reverse, entries_max } = options
  const chunk = Math.max(chunk_min, Math.ceil(entries_max / Math.max(runs.length, 1)))
  const readers = runs.map((run) => newReader(view, runAfter(run, last, reverse), chunk, reverse))
  const found: PlacedEntry[] = []
  while (found.length < entries_max) {
    let first: RunReader | undefined
    for (const reader of readers) {
      if (reader.head === undefined) continue
      if (first === undefined || isBefore(reader.head, first.head as Place, reverse)) first = reader
    }
    if (first?.head === undefined) break
    found.push(first.head)
    first.next()
  }
  return found
}

interface RunReader {
  head: PlacedEntry | undefined
  next(): void
}

function newReader(view: View, run: Run, chunk: number, reverse: boolean): RunReader {
  const { prefix } = run
  let { from, to } = run
  let entries: Entry[] = []
  let at = 0
  const reader: RunReader = {
    head: undefined,
    next() {
      if (at === entries.length) {
        entries = from < to ? view.scan({ from, to, limit: chunk, reverse }) : []
        at = 0
        const last = entries.at(-1)
        if (last === undefined || entries.length < chunk) to = from
        else if (reverse) to = last.key
        else from = after(last.key)
      }
      const entry = entries[at++]
      if (entry === undefined) reader.head = undefined
      else {
        const place = entry.key.slice(prefix.length)
        reader.head = {
          prefix,
          place,
          id: run.is_by_ref ? idBytes(idOfValue(entry.value)) : place.slice(-12),
        }
      }
    },
  }
  reader.next()
  return reader
}

/** The rest of a run after a place, without its own key, unless that is another task's. */
function runAfter(run: Run, last: Place | undefined, reverse: boolean): Run {
  if (last === undefined) return run
  const key = run.prefix + last.place
  const is_ahead = reverse ? run.prefix < last.prefix : run.prefix > last.prefix
  const is_included = run.is_by_ref && is_ahead
  if (!reverse) {
    const from = is_included ? key : after(key)
    return { ...run, from: from > run.from ? from : run.from }
  }
  const to = is_included ? after(key) : key
  return { ...run, to: to < run.to ? to : run.to }
}

function isBefore(one: Place, other: Place, reverse: boolean): boolean {
  const [first, second] = reverse ? [other, one] : [one, other]
  if (first.place !== second.place) return first.place < second.place
  return first.prefix < second.prefix
}
