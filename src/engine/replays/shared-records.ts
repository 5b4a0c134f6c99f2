/**
 * Until when the file may have records of keys from an earlier program, for which all callers that
 * are no users were one. Such a record belongs to one of them, and which is not known. So another
 * request of the same key and ops is neither answered from it nor applied.
 *
 * A file without any such mark has records of that program alone, if it has any. The mark is put
 * with the first record of a key that the present program puts.
 */
import { metaKey, replaysOf } from '../../codec/keys.ts'
import type { Tx, View } from '../../store/store.ts'

export interface SharedRecords {
  readonly until_ms: number
  /** Puts the mark, once. */
  store(tx: Pick<Tx, 'put'>): void
}

const mark_key = metaKey('replays_shared')
/** The record of a key is removed by then. */
const kept_ms = 3 * 86_400_000

export function readSharedRecords(view: View, now_ms: number): SharedRecords {
  const mark = view.get(mark_key)
  if (mark !== undefined) return { until_ms: Number(mark.toString()), store() {} }
  const kinds = ['keyed_at', 'keyed_in'] as const
  const has_any = kinds.some((kind) => view.scan({ ...replaysOf(kind), limit: 1 }).length > 0)
  const until_ms = has_any ? now_ms + kept_ms : 0
  let is_stored = false
  return {
    until_ms,
    store(tx) {
      if (is_stored) return
      is_stored = true
      tx.put(mark_key, Buffer.from(String(until_ms)))
    },
  }
}
