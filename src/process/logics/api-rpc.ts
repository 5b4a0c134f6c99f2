/**
 * `api_rpc`: creates a task of the called process, with `extra` over the whole data where `group`
 * is `all`, and waits for its reply. An exception, and an end without a reply, lead to
 * `err_node_id`.
 *
 * `api_rpc_reply`: sends data to the calling task, or with `throw_exception` sends it to its error
 * node (always: without data where the data cannot be made). Mode `key_value` lists keys with
 * values, `keys` keys of this task; `extra` stands in for a missing `res_data`. Without a waiting
 * caller it does nothing.
 */
import { docOfValue, isObject } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { Command, EvaluationContext, FailCommand, LogicKind } from '../logic.ts'
import { expected, type Report } from '../report.ts'
import { type Expansion, expansionOf } from '../templates/parser.ts'
import { member } from '../templates/path.ts'
import { type Assignment, assignedData, readAssignments, readOwnKey } from './assignments.ts'
import { expanding, failedExpansion } from './failures.ts'
import {
  isAbsent,
  readErrorNode,
  readFlag,
  readTargetProcess,
  readTemplate,
  readType,
  readWord,
} from './members.ts'

/** Tags of `rpc` that do not follow from its name. */
export const rpc_tags = { convert: 'rpc_task_wrong_convert_param' }

export const apiRpc: LogicKind = {
  type: 'api_rpc',
  waits_for: 'reply',
  compile(raw, report) {
    const sends_all = raw.group === 'all'
    const assignments = readAssignments(raw, 'extra', 'extra_type', report)
    const err_node_id = readErrorNode(raw, report)
    const convOf = readTargetProcess(raw, report)
    const make = (expansion: Expansion): Command | undefined => {
      const conv = convOf(expansion)
      const data = assignedData(assignments, expansion, sends_all)
      return conv && data && { command: 'call', conv, doc: docOfValue(data), err_node_id }
    }
    return expanding('rpc', err_node_id, make, rpc_tags)
  },
}

export const apiRpcReply: LogicKind = {
  type: 'api_rpc_reply',
  compile(raw, report) {
    const replyOf = compileReply(raw, report)
    const err_node_id = readErrorNode(raw, report)
    return {
      err_node_id,
      run(context) {
        const { data = {}, failure, reason } = replyOf(context, err_node_id)
        const doc = docOfValue(data)
        if (reason === undefined) return failure ?? { command: 'reply', data: doc }
        const leads_on = err_node_id !== undefined
        return {
          command: 'reply_exception',
          data: doc,
          reason,
          failure: leads_on ? failure : undefined,
        }
      },
    }
  },
}

/** Makes a reply; `failure` says why it has no data, `reason` is that of an exception. */
export type ReplyOf = (
  context: EvaluationContext,
  err_node_id: string | undefined,
) => {
  readonly data: JsonObject | undefined
  readonly failure: FailCommand | undefined
  readonly reason: string | undefined
}

export function compileReply(raw: JsonObject, report: Report): ReplyOf {
  const assignments = readReply(raw, report)
  const throws = readFlag(raw, 'throw_exception', report)
  const reasonIn = readReason(raw, report)
  return (context, err_node_id) => {
    const expansion = expansionOf(context)
    const data = assignedData(assignments, expansion)
    const failure =
      data === undefined ? failedExpansion('rpc_reply', expansion, err_node_id) : undefined
    const reason = throws ? reasonIn(context) || (failure?.description ?? '') : undefined
    return { data, failure, reason }
  }
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
  const values = isAbsent(raw.res_data) ? 'extra' : 'res_data'
  const listed = raw[values]
  const has_keys = isAbsent(raw.mode)
    ? Array.isArray(listed) && listed.length > 0
    : readWord(raw, 'mode', ['key_value', 'keys'], report) === 'keys'
  const read = has_keys ? readKeys : readAssignments
  return read(raw, values, `${values}_type`, report)
}

/** Keys in a list, with their types in a list beside it or in an object. */
function readKeys(
  raw: JsonObject,
  values: string,
  types: string,
  report: Report,
): readonly Assignment[] {
  const given = raw[values]
  const given_types = raw[types]
  const is_empty = isAbsent(given) || (isObject(given) && Object.keys(given).length === 0)
  const keys = is_empty ? [] : given
  if (!Array.isArray(keys)) {
    expected(report, values, given, 'a list of keys')
    return []
  }
  return keys.flatMap((key, at) => {
    const place = `${values}[${at}]`
    if (typeof key !== 'string' || key === '') {
      expected(report, place, key, 'a key')
      return []
    }
    const type = Array.isArray(given_types) ? given_types[at] : member(given_types, key)
    return [readOwnKey(key, readType(type, report, `${types} of ${place}`))]
  })
}
