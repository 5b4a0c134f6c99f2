/**
 * `api_rpc_reply`: sends data to the task that called this one. The caller continues with it, or
 * with `throw_exception` goes to its error node; this task continues either way. Only listed data
 * is sent: in mode `key_value` keys with values, in mode `keys` keys of this task's own data. A
 * task that has no caller, or has replied before, passes through. Where there is no `res_data`,
 * `extra` and `extra_type` are another spelling of it.
 *
 * With `throw_exception` the caller always gets its exception: where the data cannot be made, the
 * exception goes without data, and this task goes to its `err_node_id` or, without one, continues.
 */
import { docOfValue, isObject } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { EvaluationContext, LogicKind } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
import { expansionOf } from '../templates/parser.ts'
import { member } from '../templates/path.ts'
import { type Assignment, assignedData, readAssignments, readOwnKey } from './assignments.ts'
import { failedExpansion } from './failures.ts'
import { isAbsent, readErrorNode, readFlag, readTemplate, readType, readWord } from './members.ts'

export const apiRpcReply: LogicKind = {
  type: 'api_rpc_reply',
  compile(raw, report) {
    const assignments = readReply(raw, report)
    const throws = readFlag(raw, 'throw_exception', report)
    const reasonIn = readReason(raw, report)
    const err_node_id = readErrorNode(raw, report)
    return {
      err_node_id,
      run(context) {
        const expansion = expansionOf(context)
        const reply = assignedData(assignments, expansion)
        const failure =
          reply === undefined ? failedExpansion('rpc_reply', expansion, err_node_id) : undefined
        const data = docOfValue(reply ?? {})
        if (!throws) return failure ?? { command: 'reply', data }
        const reason = reasonIn(context) || (failure?.description ?? '')
        const leads_on = err_node_id !== undefined
        return { command: 'reply_exception', data, reason, failure: leads_on ? failure : undefined }
      },
    }
  },
}

/** The text of `exception_reason`, or why it could not be made. */
function readReason(raw: JsonObject, report: Report): (context: EvaluationContext) => string {
  const template = readTemplate(raw, 'exception_reason', report)
  return (context) => {
    const expansion = expansionOf(context)
    return template.text(expansion) ?? expansion.failure?.description ?? ''
  }
}

const res_data_names = ['res_data', 'res_data_type'] as const
const extra_names = ['extra', 'extra_type'] as const
type Names = typeof res_data_names | typeof extra_names

/** Without a mode the form of `res_data` decides. */
function readReply(raw: JsonObject, report: Report): readonly Assignment[] {
  const { mode } = raw
  const names = isAbsent(raw.res_data) ? extra_names : res_data_names
  const [values, types] = names
  const listed = raw[values]
  const is_list = Array.isArray(listed) && listed.length > 0
  const has_keys = isAbsent(mode)
    ? is_list
    : readWord(raw, 'mode', ['key_value', 'keys'], report) === 'keys'
  return has_keys ? readKeys(raw, names, report) : readAssignments(raw, values, types, report)
}

/** Keys in a list, with their types in a list beside it or in an object. */
function readKeys(raw: JsonObject, names: Names, report: Report): readonly Assignment[] {
  const [given, types] = names.map((name) => raw[name])
  const is_empty = isAbsent(given) || (isObject(given) && Object.keys(given).length === 0)
  const keys = is_empty ? [] : given
  if (!Array.isArray(keys)) {
    report.mistake(`${names[0]} is ${quoted(given)}, a list of keys was expected`)
    return []
  }
  return keys.flatMap((key, at) => {
    const place = `${names[0]}[${at}]`
    if (typeof key !== 'string' || key === '') {
      report.mistake(`${place} is ${quoted(key)}, a key was expected`)
      return []
    }
    const type = Array.isArray(types) ? types[at] : member(types, key)
    return [readOwnKey(key, readType(type, report, `${names[1]} of ${place}`))]
  })
}
