/**
 * The memory of compiled patterns. What a pattern compiles to may take a hundred thousand times its
 * source (`a{1000}`), and its automaton grows with the texts it is run on. So a pattern is compiled
 * when it is run first; where all take too much, those that were compiled first are dropped, and
 * compiled again where they are run again. Bytes are estimates.
 */

export interface Compiled<Run> {
  readonly run: Run
  readonly bytes: number
  /** By which it grows with each character that it is run on. */
  readonly char_bytes: number
}

export interface Slot<Run> {
  compiled: Compiled<Run> | undefined
  bytes: number
}

const kept_bytes_max = 64 * 1024 * 1024
const slot_bytes_max = 2 * 1024 * 1024

const kept = new Set<Slot<unknown>>()
let kept_bytes = 0

export function emptySlot<Run>(): Slot<Run> {
  return { compiled: undefined, bytes: 0 }
}

/** What the slot holds, else what `compile` makes, for one run on so many characters. */
export function compiledIn<Run>(
  slot: Slot<Run>,
  compile: () => Compiled<Run>,
  text_chars: number,
): Run {
  const compiled = slot.compiled ?? compile()
  const more = compiled.char_bytes * text_chars + (slot.compiled ? 0 : compiled.bytes)
  slot.compiled = compiled
  slot.bytes += more
  kept_bytes += more
  kept.add(slot)
  if (slot.bytes > slot_bytes_max) drop(slot)
  for (const oldest of kept) {
    if (kept_bytes <= kept_bytes_max) break
    drop(oldest)
  }
  return compiled.run
}

function drop(slot: Slot<unknown>): void {
  kept.delete(slot)
  kept_bytes -= slot.bytes
  slot.compiled = undefined
  slot.bytes = 0
}
