/** Opens a target for a restore: its history, and the plan of a goal. */
import type { Chance } from '../core/clock.ts'
import { type Fault, fault, isFault } from '../core/faults.ts'
import { type History, readHistory } from './history.ts'
import { openTarget } from './open-target.ts'
import { type Goal, type Plan, planRestore } from './plan.ts'
import type { Source } from './read-parts.ts'
import type { BackupTarget } from './target.ts'

export interface OpenedPlan {
  readonly source: Source
  readonly history: History
  readonly plan: Plan
}

/** Rejects with a fault that has a sentence. */
export async function openPlan(
  to: string,
  goal: Goal,
  { now_ms, chance }: { readonly now_ms: number; readonly chance: Chance },
): Promise<OpenedPlan> {
  const target = openTarget(to, chance)
  const history = await historyOf(target)
  const plan = planRestore(history, goal, target.says, now_ms)
  const log = history.tenures[0]?.begin.log ?? ''
  return { source: { target, log }, history, plan }
}

export async function historyOf(target: BackupTarget): Promise<History> {
  try {
    return await readHistory(target)
  } catch (error) {
    throw isFault(error) ? error : unreadable(target, error)
  }
}

function unreadable({ says }: BackupTarget, error: unknown): Fault {
  const reason = error instanceof Error ? error.message : String(error)
  return fault('not_possible', `${says} cannot be read (${reason})`, { cause: error })
}
