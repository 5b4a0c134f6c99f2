/**
 * Time and chance for tests: the clock that users test with too, and random bytes that come again
 * with their seed.
 */
import { createHash } from 'node:crypto'
import type { Chance } from '../../src/core/clock.ts'

export { type TestClock as FakeClock, testClock as fakeClock } from '../../src/core/test-clock.ts'

export function fakeChance(seed = 'conveyor'): Chance {
  let n = 0
  const bytes = (count: number): Buffer => {
    const out = Buffer.alloc(count)
    for (let at = 0; at < count; at += 32) {
      createHash('sha256').update(`${seed} ${n++}`).digest().copy(out, at)
    }
    return out
  }
  return { bytes, fraction: () => bytes(4).readUInt32BE(0) / 2 ** 32 }
}
