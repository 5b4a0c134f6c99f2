/**
 * `api_rpc_reply`: gives data to the task that called this one, which goes on with it, or with
 * `throw_exception` goes to its error node; this task goes on either way. Only what is listed is
 * sent: in mode `key_value` keys with their values, in mode `keys` keys of this task's own data. A
 * task that nobody called, or that has replied already, passes through.
 */
import { docOfValue, isObject, objectOf } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import type { LogicKind } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted } from '../report.ts'
import { expansionOf } from '../templates/parser.ts'
import { compileTemplate, type Template } from '../templates/template.ts'
import { convert, type ValueType } from '../values.ts'
import {
  type Assignment,
  applyAssignments,
  failConversion,
  failedExpansion,
  readAssignments,
  readErrNode,
  readFlag,
  readType,
} from './assignments.ts'

interface ApiRpcReply {
  readonly assignments: readonly Assignment[]
  readonly throws: boolean
  readonly reason: Template
  readonly err_node_id: string | undefined
}

export const apiRpcReply: LogicKind<ApiRpcReply> = {
  type: 'api_rpc_reply',
  parse(raw, report) {
    const { exception_reason: reason } = raw
    if (reason !== undefined && reason !== null && typeof reason !== 'string') {
      report.mistake(`exception_reason is ${quoted(reason)}, a text was expected`)
    }
    return {
      assignments: readReply(raw, report),
      throws: readFlag(raw, 'throw_exception', report),
      reason: compileTemplate(typeof reason === 'string' ? reason : '', report, 'exception_reason'),
      err_node_id: readErrNode(raw, report),
    }
  },
  run({ assignments, throws, reason: reasonOf, err_node_id }, context) {
    const run = expansionOf(context)
    const reply: JsonObject = {}
    const is_set = applyAssignments(assignments, run, reply)
    const reason = throws && is_set ? reasonOf.text(run) : ''
    if (!is_set || reason === undefined)
      return failedExpansion('rpc_reply', run, context, err_node_id)
    const data = docOfValue(reply)
    return throws ? { command: 'reply_exception', data, reason } : { command: 'reply', data }
  },
}

/** The mode is told by the form of `res_data` where it is not written. */
function readReply(raw: JsonObject, report: Report): readonly Assignment[] {
  const { mode, res_data } = raw
  const is_list = Array.isArray(res_data) && res_data.length > 0
  if (mode === 'keys' || (isAbsent(mode) && is_list)) return readKeys(raw, report)
  if (!isAbsent(mode) && mode !== 'key_value') {
    report.mistake(`mode ${quoted(mode)} is neither "key_value" nor "keys"`)
  }
  return readAssignments(raw, 'res_data', 'res_data_type', report)
}

function isAbsent(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || value === ''
}

/** Keys in a list, their types in a list beside it or in an object. */
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
    const type = Array.isArray(types) ? types[at] : memberOf(types, key)
    return [ownKey(key, readType(type, report, `res_data_type of ${place}`))]
  })
}

function memberOf(types: JsonValue | undefined, key: string): JsonValue | undefined {
  return isObject(types) && Object.hasOwn(types, key) ? types[key] : undefined
}

function ownKey(key: string, type: ValueType | undefined): Assignment {
  return {
    key: () => key,
    value(run) {
      const data = objectOf(run.context.doc)
      const value = Object.hasOwn(data, key) ? data[key] : undefined
      if (type === undefined) return value
      const converted = value === undefined ? undefined : convert(value, type)
      return converted ?? failConversion(run, key, value ?? '', type)
    },
  }
}
