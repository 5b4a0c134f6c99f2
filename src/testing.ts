/**
 * `conveyor-engine/testing`: what tests of programs that embed the engine need. No part of it runs
 * in production.
 */
import { nextTurn } from './core/clock.ts'
import type { Engine } from './engine/api/engine-api.ts'
import { servedEngine } from './engine/served-engine.ts'

export { type TestClock, testClock } from './core/test-clock.ts'

/**
 * Resolves once nothing moves by itself any more: what was requested is on disk, what is due by the
 * clock of the engine has been done, and the handlers, calls and code that this began have ended.
 * What is due later stays: the next attempt of a handler, a timer, a schedule.
 *
 *     clock.advance(3_600_000)
 *     await settled(engine)
 *
 * It waits for each handler under way, also for one that waits for the clock to be moved.
 */
export async function settled(engine: Engine): Promise<void> {
  const served = servedEngine(engine)
  // What is due when it is set begins in the next turn, so one quiet turn proves nothing.
  for (let quiet_turns = 0; quiet_turns < 3; quiet_turns++) {
    await engine.flush()
    await nextTurn()
    if (served.isBusy()) quiet_turns = -1
  }
}
