/**
 * One transaction's workspace: what its ops share. Made at the start of an update and flushed at
 * its end, so that a counter or the last id that changes with every op is written once.
 *
 * Nothing in here outlives the transaction but `armed` and `changes`, which the engine takes over
 * once the commit is on disk.
 */
import { idOfValue, idValue, type Key, metaKey, nodeCountKey } from '../bytes/keys.ts'
import { decodeCount, encodeCount } from '../bytes/records.ts'
import type { Tx, View } from '../store/store.ts'
import type { Limits } from '../words/limits.ts'
import type { Change, JsonValue } from '../words/model.ts'
import type { Catalog, Process } from './catalog.ts'

/** What all transactions of an engine share. */
export interface Shared {
  readonly catalog: Catalog
  readonly limits: Limits
  /** The file's own 5 random bytes, in hex: the middle of each task id. */
  readonly id_middle: string
  fraction(): number
  /** Variables given to the engine, by name. */
  readonly variables: Readonly<Record<string, JsonValue>>
  /** Whether the embedder runs code of its own for a kind or a node title. */
  isHandled(name: string): boolean
  /** Whether anybody watches; without one, changes are not collected. */
  isWatched(): boolean
}

/** What logics may read besides their own task; a transaction's Work is one. */
export interface Reader {
  readonly view: View
  readonly now_ms: number
  readonly shared: Shared
  process(conv_id: string): Process | undefined
  /** Live tasks in a node, with what this transaction changed. */
  nodeCount(conv_id: string, node_id: string): number
}

export interface Work extends Reader {
  readonly tx: Tx
  /** 24 hex digits, above every id given before. */
  newTaskId(): string
  /** Adds to the number of live tasks in a node. */
  count(conv_id: string, node_id: string, by: 1 | -1): void
  /** Nodes whose number changed since the last call: before and now. */
  takeCounted(): Counted[]
  /** Moves that may still be made for the present op; the rest goes on in the next transaction. */
  moves_left: number
  /** The longest chain of moves without rest that the present op has come to. */
  chain_moves: number
  /** Ready tasks to go on with in this transaction, first come first. */
  readonly agenda: string[]
  /** Tasks that ended owing a reply, with the caller that waits for it. */
  readonly orphans: {
    readonly caller_id: string
    readonly called_id: string
    readonly moves: number
  }[]
  /** Moves of all tasks so far. */
  moves_made: number
  /** Due times set by this transaction: conv_id → the earliest. */
  readonly armed: Map<string, number>
  /** When the earliest work put down by this transaction may begin. */
  work_ms: number | undefined
  /** Whether a task has ended and is kept. */
  has_ended: boolean
  readonly changes: Omit<Change, 'seq'>[]
  /** Writes what was gathered; nothing may change behind it. */
  flush(): void
}

export interface Counted {
  readonly conv_id: string
  readonly node_id: string
  readonly before: number
  readonly now: number
}

interface Tally {
  readonly conv_id: string
  readonly node_id: string
  readonly stored: number
  by: number
  /** The number last told by `takeCounted`. */
  told: number
}

const last_id_key = metaKey('last_id')
const none = Buffer.alloc(0)
const counter_max = 0xffffff
const seconds_max = 0xffffffff

/** A Reader of a view, for work outside transactions. */
export function newReader(view: View, shared: Shared, now_ms: number): Reader {
  return {
    view,
    now_ms,
    shared,
    process: (conv_id) => shared.catalog.find(view, conv_id),
    nodeCount: (conv_id, node_id) => decodeCount(view.get(nodeCountKey(conv_id, node_id))),
  }
}

export function newWork(tx: Tx, shared: Shared, now_ms: number): Work {
  const processes = new Map<string, Process>()
  const tallies = new Map<Key, Tally>()
  let last_id: string | undefined
  return {
    tx,
    view: tx,
    now_ms,
    shared,
    moves_left: shared.limits.moves_per_transaction_max,
    chain_moves: 0,
    agenda: [],
    orphans: [],
    moves_made: 0,
    armed: new Map(),
    work_ms: undefined,
    has_ended: false,
    changes: [],
    process(conv_id) {
      const known = processes.get(conv_id)
      if (known !== undefined) return known
      const found = shared.catalog.find(tx, conv_id)
      if (found !== undefined) processes.set(conv_id, found)
      return found
    },
    newTaskId() {
      last_id ??= idOfValue(tx.get(last_id_key) ?? none)
      last_id = nextId(last_id, now_ms, shared.id_middle)
      return last_id
    },
    count(conv_id, node_id, by) {
      const key = nodeCountKey(conv_id, node_id)
      let tally = tallies.get(key)
      if (tally === undefined) {
        const stored = decodeCount(tx.get(key))
        tally = { conv_id, node_id, stored, by: 0, told: stored }
        tallies.set(key, tally)
      }
      tally.by += by
    },
    nodeCount(conv_id, node_id) {
      const key = nodeCountKey(conv_id, node_id)
      const tally = tallies.get(key)
      return tally === undefined ? decodeCount(tx.get(key)) : tally.stored + tally.by
    },
    takeCounted() {
      const counted: Counted[] = []
      for (const tally of tallies.values()) {
        const { conv_id, node_id, stored, by, told } = tally
        if (stored + by === told) continue
        tally.told = stored + by
        counted.push({ conv_id, node_id, before: told, now: tally.told })
      }
      return counted
    },
    flush() {
      for (const [key, { stored, by }] of tallies) {
        if (by === 0) continue
        if (stored + by === 0) tx.del(key)
        else tx.put(key, encodeCount(stored + by))
      }
      tallies.clear()
      if (last_id !== undefined) tx.put(last_id_key, idValue(last_id))
    },
  }
}

/**
 * 4 bytes of seconds, the file's 5 random bytes, 3 of a counter (wire 1.3). A clock that stands or
 * steps back changes nothing: the seconds never fall, and a full counter borrows the next second.
 */
function nextId(last_id: string, now_ms: number, middle: string): string {
  let seconds = Math.min(Math.max(Math.floor(now_ms / 1000), 0), seconds_max)
  let counter = 0
  if (last_id !== '') {
    const last_seconds = Number.parseInt(last_id.slice(0, 8), 16)
    if (seconds <= last_seconds) {
      seconds = last_seconds
      counter = Number.parseInt(last_id.slice(18), 16) + 1
      if (counter > counter_max) {
        seconds++
        counter = 0
      }
    }
  }
  if (seconds > seconds_max) throw new Error('there are no task ids left behind the year 2106')
  return hex(seconds, 8) + middle + hex(counter, 6)
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
