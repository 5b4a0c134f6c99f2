/**
 * Ids of new tasks: 4 bytes of seconds, the file's 5 random bytes, 3 of a counter (wire 1.3). Each
 * is above every one given before: the last one is in the store, read by the first new task of a
 * transaction and written once at its end.
 */
import { idValue, metaKey, newId } from '../codec/keys.ts'
import type { Tx } from '../store/store.ts'

export interface TaskIds {
  begin(tx: Tx): void
  /** 24 hex digits. */
  next(now_ms: number): string
  end(): void
}

const last_id_key = metaKey('last_id')
const counter_at = 9
const counter_bytes = 3
const counter_max = 0xffffff
const seconds_max = 0xffffffff

/** `middle`: the file's own bytes, in hex. */
export function newTaskIds(tx: Tx, middle: string): TaskIds {
  let present = tx
  /** The last id given in this transaction. */
  let given: string | undefined
  let seconds = 0
  let counter = 0
  /** What all ids of a second begin with. */
  let head = { seconds: -1, text: '' }

  function readLast(): void {
    const bytes = present.get(last_id_key)
    seconds = bytes === undefined ? -1 : bytes.readUInt32BE(0)
    counter = bytes === undefined ? 0 : bytes.readUIntBE(counter_at, counter_bytes)
  }

  /** A clock that stands or steps back: seconds never fall, a full counter borrows the next one. */
  function step(now_s: number): void {
    if (now_s > seconds) {
      seconds = now_s
      counter = 0
    } else if (++counter > counter_max) {
      seconds++
      counter = 0
    }
    if (seconds > seconds_max) throw new Error('there are no task ids left behind the year 2106')
  }

  return {
    begin(tx) {
      present = tx
      given = undefined
    },
    next(now_ms) {
      if (given === undefined) readLast()
      step(Math.min(Math.max(Math.floor(now_ms / 1000), 0), seconds_max))
      if (head.seconds !== seconds) head = { seconds, text: hex(seconds, 8) + middle }
      given = newId(head.text, counter)
      return given
    },
    end() {
      if (given !== undefined) present.put(last_id_key, idValue(given))
    },
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
