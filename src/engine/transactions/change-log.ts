/**
 * Writes a transaction's changes as one entry (codec/change-entry). Numbers have no gaps and are
 * never reused, because the last entry is never removed. An entry has its time and the size of all
 * before it, so two entries describe the window of kept changes.
 */
import { type ChangeWriter, headOfEntry, newChangeWriter } from '../../codec/change-entry.ts'
import { changeKey, changeOfKey, keysOfType } from '../../codec/keys.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import type { Tx, View } from '../../store/store.ts'

export interface ChangeEntry {
  readonly n: number
  readonly at_ms: number
  /** All entries up to this one, including removed ones. */
  readonly bytes: number
}

export interface ChangeLog {
  begin(tx: Tx): void
  add(task: TaskRecord): void
  /** Writes the entry; undefined without a change. */
  end(now_ms: number): ChangeEntry | undefined
}

/** Before the first entry of a file. */
export const no_entry: ChangeEntry = { n: 0, at_ms: 0, bytes: 0 }

export function newChangeLog(no_tx: Tx): ChangeLog {
  const writer = newChangeWriter()
  let tx = no_tx
  /** The last entry, unless a commit was refused since: then the store lacks it. */
  let last = no_entry

  return {
    begin(next_tx) {
      tx = next_tx
      writer.clear()
    },
    add: writer.add,
    end(now_ms) {
      if (writer.isEmpty()) return undefined
      if (tx.get(changeKey(last.n)) === undefined) last = lastEntry(tx)
      last = appendEntry(tx, writer, now_ms, last)
      return last
    },
  }
}

/** Skips a number, so that a reader at the last entry gets `changes_gone`. */
export function leaveGap(tx: Tx, now_ms: number): void {
  const last = lastEntry(tx)
  if (last.n === 0) return
  appendEntry(tx, newChangeWriter(), now_ms, { ...last, n: last.n + 1 })
  tx.del(changeKey(last.n))
}

function appendEntry(tx: Tx, writer: ChangeWriter, now_ms: number, last: ChangeEntry): ChangeEntry {
  const at_ms = Math.max(now_ms, last.at_ms)
  const value = writer.entry(at_ms, last.bytes)
  const n = last.n + 1
  tx.put(changeKey(n), value)
  return { n, at_ms, bytes: last.bytes + value.length }
}

export function readEntry(view: View, n: number): ChangeEntry | undefined {
  const value = view.get(changeKey(n))
  const head = value && headOfEntry(value)
  return head && { n, at_ms: head.at_ms, bytes: head.bytes_before + value.length }
}

export const lastEntry = (view: View): ChangeEntry => endOf(view, true)
export const firstEntry = (view: View): ChangeEntry => endOf(view, false)

function endOf(view: View, reverse: boolean): ChangeEntry {
  const [entry] = view.scan({ ...keysOfType('change'), limit: 1, reverse })
  if (entry === undefined) return no_entry
  return readEntry(view, changeOfKey(entry.key)) ?? no_entry
}
