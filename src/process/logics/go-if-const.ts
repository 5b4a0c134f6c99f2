/**
 * `go_if_const`: moves on if all its conditions hold, else the next logic has its turn: conditions
 * of one logic are an "and", logics in order are the "or".
 */
import { isObject } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { Command, LogicKind } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted } from '../report.ts'
import { type Condition, compileCondition } from './condition.ts'

interface GoIfConst {
  readonly conditions: readonly Condition[]
  readonly go: Command
}

const next: Command = { command: 'next' }

export const goIfConst: LogicKind<GoIfConst> = {
  type: 'go_if_const',
  parse(raw, report) {
    const to_node_id = report.targetNode('to_node_id', raw.to_node_id) ?? ''
    return { conditions: parseConditions(raw, report), go: { command: 'go', to_node_id } }
  },
  run({ conditions, go }, context) {
    for (const holds of conditions) if (!holds(context)) return next
    return go
  },
}

function parseConditions(raw: JsonObject, report: Report): Condition[] {
  const { conditions } = raw
  if (!Array.isArray(conditions)) {
    report.mistake(`conditions is ${quoted(conditions)}, an array was expected`)
    return []
  }
  if (conditions.length === 0) report.warning('has no conditions and always moves on')
  return conditions.map((condition, at) => {
    const place = `conditions[${at}]`
    if (isObject(condition)) return compileCondition(condition, report, place)
    report.mistake(`${place} is ${quoted(condition)}, an object was expected`)
    return () => false
  })
}
