/**
 * Bounds the bytes of replay records by caller. A caller may keep more while it has less than is
 * free of `replay_bytes_max`: one caller reaches half of the bound, two a third each, and a new one
 * always has room. So no record is dropped early. Bytes are counted by time slot, because a removal
 * reads keys alone; a crash forgets at most a `saved_parts`th of the bound.
 */
import { parsePlain } from '../../codec/json.ts'
import { type Key, metaKey, type ReplayKind } from '../../codec/keys.ts'
import type { View } from '../../store/store.ts'

export interface KeptRecord {
  readonly kind: ReplayKind
  readonly time_s: number
  readonly caller: string
  readonly bytes: number
}

export interface ReplayRoom {
  bytes(): number
  bytesOf(caller: string): number
  isFullFor(caller: string): boolean
  add(record: KeptRecord): void
  /** The records of a kind before this time are removed. */
  removed(kind: ReplayKind, end_s: number): void
  /** What to store with the next record, if enough was counted since. */
  toSave(): readonly [Key, Buffer] | undefined
}

type Slot = [kind: ReplayKind, from_s: number, bytes: Map<string, number>]
type SavedSlot = [kind: ReplayKind, from_s: number, bytes: [caller: string, bytes: number][]]

const room_key = metaKey('replay_bytes')
const saved_parts = 1_024
const slots_s: Readonly<Record<ReplayKind, number>> = {
  ...{ signed_at: 300, signed_in: 300 },
  ...{ keyed_at: 4 * 3_600, keyed_in: 24 * 3_600 },
}

export function readReplayRoom(view: View, bytes_max: number): ReplayRoom {
  const stored = view.get(room_key)
  let slots: Slot[] = []
  let total = 0
  const by_caller = new Map<string, number>()

  function slotOf(kind: ReplayKind, time_s: number): Slot {
    const from_s = time_s - (time_s % slots_s[kind])
    for (let at = slots.length - 1; at >= 0; at--) {
      const slot = slots[at] as Slot
      if (slot[0] === kind && slot[1] === from_s) return slot
    }
    const slot: Slot = [kind, from_s, new Map()]
    slots.push(slot)
    return slot
  }

  function count(caller: string, bytes: number): void {
    total += bytes
    const all = (by_caller.get(caller) ?? 0) + bytes
    if (all > 0) by_caller.set(caller, all)
    else by_caller.delete(caller)
  }

  function add({ kind, time_s, caller, bytes }: KeptRecord): void {
    const [, , counts] = slotOf(kind, time_s)
    counts.set(caller, (counts.get(caller) ?? 0) + bytes)
    count(caller, bytes)
  }

  const saved_slots: SavedSlot[] =
    stored === undefined ? [] : (parsePlain(stored.toString()) as SavedSlot[])
  for (const [kind, time_s, counts] of saved_slots) {
    for (const [caller, bytes] of counts) add({ kind, time_s, caller, bytes })
  }
  let saved = total
  return {
    bytes: () => total,
    bytesOf: (caller) => by_caller.get(caller) ?? 0,
    isFullFor: (caller) => bytes_max > 0 && (by_caller.get(caller) ?? 0) >= bytes_max - total,
    add,
    removed(kind, end_s) {
      const isOver = ([of, from_s]: Slot): boolean => of === kind && from_s + slots_s[of] <= end_s
      for (const slot of slots) {
        if (isOver(slot)) for (const [caller, bytes] of slot[2]) count(caller, -bytes)
      }
      slots = slots.filter((slot) => !isOver(slot))
      saved = Math.min(saved, total)
    },
    toSave() {
      if (total - saved <= bytes_max / saved_parts) return undefined
      saved = total
      const counts: SavedSlot[] = slots.map(([kind, from_s, bytes]) => [kind, from_s, [...bytes]])
      return [room_key, Buffer.from(JSON.stringify(counts))]
    },
  }
}
