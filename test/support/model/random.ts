/**
 * Random choices that come again with their seed (mulberry32).
 */
export interface Random {
  /** From 0, below `n`. */
  below(n: number): number
  /** True once in `n` times. */
  oneIn(n: number): boolean
  pick<T>(from: readonly T[]): T
  /** One of the rows, as often as its weight says. */
  weighted<T>(rows: readonly (readonly [weight: number, value: T])[]): T
  /** `min` to `max` of what `make` makes. */
  list<T>(min: number, max: number, make: () => T): T[]
}

export function newRandom(seed: number): Random {
  let state = (seed ^ 0x9e3779b9) | 0
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (n: number): number => Math.floor(fraction() * n)
  return {
    below,
    oneIn: (n) => below(n) === 0,
    pick: (from) => from[below(from.length)] as (typeof from)[number],
    weighted(rows) {
      let left = fraction() * rows.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, value] of rows) {
        left -= weight
        if (left < 0) return value
      }
      return (rows.at(-1) as (typeof rows)[number])[1]
    },
    list: (min, max, make) => Array.from({ length: min + below(max - min + 1) }, make),
  }
}
