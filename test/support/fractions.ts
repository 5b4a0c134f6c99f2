/** Chance with a seed that repeats it, for what tries much at random. */

/** mulberry32: a small generator whose sequence a seed repeats. Each call answers 0 to below 1. */
export function fractionsOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The same values in an order of chance. */
export function shuffled<T>(values: readonly T[], fraction: () => number): T[] {
  return values
    .map((value) => ({ value, at: fraction() }))
    .sort((one, other) => one.at - other.at)
    .map(({ value }) => value)
}
