/**
 * `api_rpc_reply`: sends data to the task that called this one. The caller continues with it, or
 * with `throw_exception` goes to its error node; this task continues either way. Only listed data
 * is sent: in mode `key_value` keys with values, in mode `keys` keys of this task's own data. A
 * task that has no caller, or has replied before, passes through.
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

/** Without a mode the form of `res_data` decides. */
function readReply(raw: JsonObject, report: Report): readonly Assignment[] {
  const { mode, res_data } = raw
  const is_list = Array.isArray(res_data) && res_data.length > 0
  const has_keys = isAbsent(mode)
    ? is_list
    : readWord(raw, 'mode', ['key_value', 'keys'], report) === 'keys'
  return has_keys
    ? readKeys(raw, report)
    : readAssignments(raw, 'res_data', 'res_data_type', report)
}

/** Keys in a list, with their types in a list beside it or in an object. */
function readKeys(raw: JsonObject, report: Report): readonly Assignment[] {
  const { res_data, res_data_type: types } = raw
  const is_empty = isAbsent(res_data) || (isObject(res_data) && Object.keys(res_data).length === 0)
  const keys = is_empty ? [] : res_data
  if (!Array.isArray(keys)) {
    report.mistake(`res_data is ${quoted(res_data)}, a list of keys was expected`)
    return []
  }
  return keys.flatMap((key, at) => {
    const place = `res_data[${at}]`
    if (typeof key !== 'string' || key === '') {
      report.mistake(`${place} is ${quoted(key)}, a key was expected`)
      return []
    }
    const type = Array.isArray(types) ? types[at] : member(types, key)
    return [readOwnKey(key, readType(type, report, `res_data_type of ${place}`))]
  })
}
