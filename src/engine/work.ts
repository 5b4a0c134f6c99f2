/**
 * One transaction's workspace: what its ops share. Made at the start of an update and flushed at
 * its end, so that a counter or the last id that changes with every op is written once.
 *
 * Nothing in here outlives the transaction but `armed` and `changes`, which the engine takes over
 * once the commit is on disk.
 */
import { idBytes, idHex, metaKey, nodeCountKey } from '../bytes/keys.ts'
import { decodeCount, encodeCount } from '../bytes/records.ts'
import type { Tx } from '../store/store.ts'
import type { Limits } from '../words/limits.ts'
import type { Change } from '../words/model.ts'
import type { Catalog, Process } from './catalog.ts'

/** What all transactions of an engine share. */
export interface Shared {
  readonly catalog: Catalog
  readonly limits: Limits
  /** The file's own 5 random bytes, in hex: the middle of each task id. */
  readonly id_middle: string
  fraction(): number
  /** Whether anybody watches; without one, changes are not collected. */
  isWatched(): boolean
}

export interface Work {
  readonly tx: Tx
  readonly now_ms: number
  readonly shared: Shared
  process(conv_id: string): Process | undefined
  /** 24 hex digits, above every id given before. */
  newTaskId(): string
  /** Adds to the number of live tasks in a node. */
  count(conv_id: string, node_id: string, by: 1 | -1): void
  /** Moves of all tasks so far. */
  moves_made: number
  /** Due times set by this transaction: conv_id → the earliest. */
  readonly armed: Map<string, number>
  /** Whether a task has ended and is kept. */
  has_ended: boolean
  readonly changes: Omit<Change, 'seq'>[]
  /** Writes what was gathered; nothing may change behind it. */
  flush(): void
}

const last_id_key = metaKey('last_id')
const counter_max = 0xffffff
const seconds_max = 0xffffffff

export function newWork(tx: Tx, shared: Shared, now_ms: number): Work {
  const processes = new Map<string, Process | undefined>()
  const counts = new Map<string, number>()
  let last_id: string | undefined
  return {
    tx,
    now_ms,
    shared,
    moves_made: 0,
    armed: new Map(),
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
      last_id ??= idHex(tx.get(last_id_key)?.toString('latin1') ?? '')
      last_id = nextId(last_id, now_ms, shared.id_middle)
      return last_id
    },
    count(conv_id, node_id, by) {
      const key = nodeCountKey(conv_id, node_id)
      counts.set(key, (counts.get(key) ?? 0) + by)
    },
    flush() {
      for (const [key, by] of counts) {
        if (by === 0) continue
        const count = decodeCount(tx.get(key)) + by
        if (count === 0) tx.del(key)
        else tx.put(key, encodeCount(count))
      }
      counts.clear()
      if (last_id !== undefined) tx.put(last_id_key, Buffer.from(idBytes(last_id), 'latin1'))
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
