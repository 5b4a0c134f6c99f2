/**
 * Ids of new tasks: 4 bytes of seconds, the file's 5 random bytes, a 3-byte counter. Ids only rise:
 * the last one is read for the first new task of a transaction and written at the end.
 */
import { idValue, newId } from '../../codec/ids.ts'
import { metaKey } from '../../codec/keys.ts'
import type { Tx } from '../../store/store.ts'

export interface TaskIds {
  begin(tx: Tx): void
  next(now_ms: number): string
  end(): void
}

const last_id_key = metaKey('last_id')
const counter_at = 9
const counter_bytes = 3
const counter_max = 0xffffff
const seconds_max = 0xffffffff

/** `middle`: the file's random bytes, in hex. */
export function newTaskIds(no_tx: Tx, middle: string): TaskIds {
  let tx = no_tx
  let given: string | undefined
  let seconds = 0
  let counter = 0
  /** The digits that all ids of a second begin with. */
  let prefix = { seconds: -1, text: '' }

  function readLast(): void {
    const bytes = tx.get(last_id_key)
    seconds = bytes === undefined ? -1 : bytes.readUInt32BE(0)
    counter = bytes === undefined ? 0 : bytes.readUIntBE(counter_at, counter_bytes)
  }

  /** Seconds never fall, though the clock may step back; a full counter takes the next second. */
  function increment(now_s: number): void {
    if (now_s > seconds) {
      seconds = now_s
      counter = 0
    } else if (++counter > counter_max) {
      seconds++
      counter = 0
    }
    if (seconds > seconds_max) throw new Error('there are no task ids after the year 2106')
  }

  return {
    begin(next_tx) {
      tx = next_tx
      given = undefined
    },
    next(now_ms) {
      if (given === undefined) readLast()
      increment(Math.min(Math.max(Math.floor(now_ms / 1000), 0), seconds_max))
      if (prefix.seconds !== seconds) prefix = { seconds, text: hex(seconds, 8) + middle }
      given = newId(prefix.text, counter)
      return given
    },
    end() {
      if (given !== undefined) tx.put(last_id_key, idValue(given))
    },
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
