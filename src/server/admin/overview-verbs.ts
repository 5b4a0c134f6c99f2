/**
 * The admin verb that `top` calls again and again: the whole overview of an engine. The first call
 * begins to count and to measure, so the rates of a first answer have no past; a minute after the
 * last call that ends.
 */

import type { Overview } from '../../console/overview/messages.ts'
import { newOverviews, type Overviews } from '../../console/overview/overview.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'

const kept_ms = 60_000

interface Kept {
  readonly overviews: Overviews
  cancel(): void
}

const kept = new WeakMap<Engine, Kept>()

export async function showOverview(engine: Engine, _args: object): Promise<Overview> {
  const served = servedEngine(engine)
  const { clock } = served
  const { overviews, cancel } = kept.get(engine) ?? begin()
  cancel()
  const end = (): void => {
    kept.delete(engine)
    overviews.close()
  }
  kept.set(engine, { overviews, cancel: clock.wake_at(clock.now_ms() + kept_ms, end) })
  const watch = overviews.watch()
  return watch.next().finally(watch.close)

  function begin(): Kept {
    const overviews = newOverviews(served)
    // One that stays has commits measured between the calls.
    overviews.watch()
    return { overviews, cancel() {} }
  }
}
