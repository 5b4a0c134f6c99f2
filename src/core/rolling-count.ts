/**
 * Counts per slot (second, minute) in a ring of the last slots. A slot is the number of such units
 * since 1970. If the clock is set back, counting restarts.
 */
export interface RollingCount {
  /** The newest slot counted or read. */
  slot: number
  readonly counts: number[]
}

export function newRollingCount(slots: number): RollingCount {
  return { slot: 0, counts: new Array<number>(slots).fill(0) }
}

export function countAt(rolling: RollingCount, slot: number, by = 1): void {
  if (slot !== rolling.slot) rollTo(rolling, slot)
  const { counts } = rolling
  const at = slot % counts.length
  counts[at] = (counts[at] as number) + by
}

/** The counts up to a slot, the oldest first. */
export function countsUpTo(rolling: RollingCount, slot: number): number[] {
  if (slot !== rolling.slot) rollTo(rolling, slot)
  const { counts } = rolling
  const at = (slot % counts.length) + 1
  return [...counts.slice(at), ...counts.slice(0, at)]
}

function rollTo(rolling: RollingCount, slot: number): void {
  const { counts } = rolling
  const passed = slot - rolling.slot
  rolling.slot = slot
  if (passed < 0 || passed >= counts.length) counts.fill(0)
  else for (let back = 0; back < passed; back++) counts[(slot - back) % counts.length] = 0
}
