/**
 * The order of a load of whole lives: each create that is answered is followed by the callback of a
 * waiting task, in whose place the new one waits: a randomly chosen one, or the one that waits
 * longest. So as many tasks wait after a load as before, and none is called back before its create
 * was answered.
 */
import type { WriteVerb } from './cells.ts'
import { closedLoop } from './closed-loop.ts'
import type { Slot } from './statistics.ts'
import type { Span } from './stopwatch.ts'

/** Which waiting task is called back next. */
export type CallbackOrder = 'random' | 'in-order'

export interface LifeOrder {
  /** What comes next, and the numbers of its tasks. */
  take(): readonly [WriteVerb, readonly number[]]
  /** Creates were answered. */
  created(numbers: readonly number[]): void
}

/** Tasks wait under the numbers below `tasks`; those that follow are created, so many together. */
export function lifeOrder(tasks: number, ops = 1, order: CallbackOrder = 'random'): LifeOrder {
  const waiting = Uint32Array.from({ length: tasks }, (_, n) => n)
  const created: (readonly number[])[] = []
  let made = tasks
  let picks = 0
  const pick = (successor: number): number => {
    const at = order === 'random' ? Math.floor(fraction(picks++) * tasks) : picks++ % tasks
    const picked = waiting[at] as number
    waiting[at] = successor
    return picked
  }
  return {
    take() {
      const successors = created.pop()
      if (successors !== undefined) return ['modify', successors.map(pick)]
      return ['create', Array.from({ length: ops }, () => made++)]
    },
    created: (numbers) => void created.push(numbers),
  }
}

export interface LivesLoad extends Span {
  readonly callers: number
}

/** A closed loop of callers with one op each. */
export function livesLoop(
  order: LifeOrder,
  load: LivesLoad,
  apply: (verb: WriteVerb, n: number) => Promise<unknown>,
): Promise<Slot> {
  return closedLoop({ ...load, ops: 1 }, async () => {
    const [verb, numbers] = order.take()
    await apply(verb, numbers[0] as number)
    if (verb === 'create') order.created(numbers)
  })
}

/** Pseudo-random in [0, 1) by `n`, so that all sides pick alike. */
function fraction(n: number): number {
  let h = Math.imul(n + 1, 0x9e3779b1)
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b)
  return ((h ^ (h >>> 13)) >>> 0) / 2 ** 32
}
