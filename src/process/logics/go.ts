/**
 * `go` sends the task to its node. `go_if_const` does so if all its conditions hold, else the next
 * logic runs; several in order are an "or". A pattern that takes too many steps fails the logic.
 */
import type { JsonObject } from '../../core/model.ts'
import { steps_passed } from '../definition-limits.ts'
import type { Command, EvaluationContext, LogicKind } from '../logic.ts'
import { expected, type Report } from '../report.ts'
import { type Condition, compileCondition } from './condition.ts'
import { fail } from './failures.ts'
import { mapObjects } from './members.ts'

export const go: LogicKind = {
  type: 'go',
  compile(raw, report) {
    const to_node_id = report.targetNode('to_node_id', raw.to_node_id) ?? ''
    const command: Command = { command: 'go', to_node_id }
    return { run: () => command }
  },
}

const next: Command = { command: 'next' }
const endless: Command = fail(
  'go_if_const',
  { tag: 'go_if_const_executing_error', description: `a pattern takes ${steps_passed}` },
  undefined,
)

export const goIfConst: LogicKind = {
  type: 'go_if_const',
  compile(raw, report) {
    const to_node_id = report.targetNode('to_node_id', raw.to_node_id) ?? ''
    const go: Command = { command: 'go', to_node_id }
    const conditions = parseConditions(raw, report)
    return {
      run(context) {
        const holds = allHold(conditions, context)
        return holds === undefined ? endless : holds ? go : next
      },
    }
  },
}

/** Undefined where a pattern takes more steps than are left. */
export function allHold(
  conditions: readonly Condition[],
  context: EvaluationContext,
): boolean | undefined {
  for (const condition of conditions) {
    const holds = condition(context)
    if (holds !== true) return holds
  }
  return true
}

/** Older definitions have one condition, in the logic itself. */
export function parseConditions(raw_logic: JsonObject, report: Report): Condition[] {
  const conditions = raw_logic.conditions ?? (raw_logic.fun === undefined ? [] : [raw_logic])
  if (!Array.isArray(conditions)) {
    expected(report, 'conditions', conditions, 'an array')
    return []
  }
  if (conditions.length === 0) report.warning('has no conditions and always moves on')
  return mapObjects(conditions, 'conditions', report, (raw, place) =>
    compileCondition(raw, report, place),
  )
}
