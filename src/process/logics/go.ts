/**
 * `go` sends the task to its node. `go_if_const` does so if all its conditions hold, else the next
 * logic runs; several in order are an "or". A pattern that takes too many steps fails the logic.
 */
import type { JsonObject } from '../../core/model.ts'
import { steps_passed } from '../definition-limits.ts'
import type { Command, LogicKind } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
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
        for (const holds of conditions) {
          const is_held = holds(context)
          if (is_held !== true) return is_held === false ? next : endless
        }
        return go
      },
    }
  },
}

/** Older definitions have one condition, in the logic itself. */
function parseConditions(raw_logic: JsonObject, report: Report): Condition[] {
  const conditions = raw_logic.conditions ?? (raw_logic.fun === undefined ? [] : [raw_logic])
  if (!Array.isArray(conditions)) {
    report.mistake(`conditions is ${quoted(conditions)}, an array was expected`)
    return []
  }
  if (conditions.length === 0) report.warning('has no conditions and always moves on')
  return mapObjects(conditions, 'conditions', report, (raw, place) =>
    compileCondition(raw, report, place),
  )
}
