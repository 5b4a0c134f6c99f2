/**
 * Reads what a definition says of the process itself: id, title, kind and status. Null and an empty
 * text give the defaults of kind and status.
 */
import { isNumberToken, numberText } from '../codec/json.ts'
import { isName } from '../codec/op.ts'
import type { Limits } from '../core/limits.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import type { Graph } from './graph.ts'
import { isAbsent } from './logics/members.ts'
import { quoted } from './report.ts'

export type GraphLimits = Pick<Limits, 'node_id_chars_max' | 'conv_id_chars_max'>

/** Reads the head; what is wrong is added to the mistakes, what will hurt to the warnings. */
export function readHead(
  definition: JsonObject,
  limits: GraphLimits,
  { mistakes, warnings }: { readonly mistakes: string[]; readonly warnings: string[] },
): Pick<Graph, 'conv_id' | 'title' | 'status' | 'kind'> {
  const { obj_type, conv_type } = definition
  if (!isAbsent(obj_type) && obj_type !== 1 && obj_type !== '1') {
    mistakes.push(`process: obj_type is ${quoted(obj_type)}, 1 was expected`)
  }
  if (!isAbsent(conv_type) && conv_type !== 'process' && conv_type !== 'state') {
    mistakes.push(`process: conv_type ${quoted(conv_type)} is neither "process" nor "state"`)
  }
  const title = readTitle(definition, 'process', mistakes)
  return {
    conv_id: convId(definition.obj_id, limits, mistakes),
    title,
    status: statusOf(definition.status, mistakes, warnings),
    kind: conv_type === 'state' ? 'state' : 'process',
  }
}

function convId(
  obj_id: JsonValue | undefined,
  limits: GraphLimits,
  mistakes: string[],
): string | undefined {
  if (obj_id === undefined || obj_id === null) return undefined
  const is_number = typeof obj_id === 'number' || isNumberToken(obj_id)
  const text = is_number ? numberText(obj_id) : obj_id
  const is_id =
    typeof text === 'string' &&
    (!is_number || /^-?[0-9]+$/.test(text)) &&
    isName(text, limits.conv_id_chars_max)
  if (is_id) return text
  const wanted = `a whole number or a text of 1 to ${limits.conv_id_chars_max} characters`
  mistakes.push(`process: obj_id is ${quoted(obj_id)}, ${wanted} was expected`)
  return undefined
}

/** Exports write `active`; the other spellings are of older exports. */
const statuses: Readonly<Record<string, Graph['status']>> = {
  active: 'active',
  actived: 'active',
  paused: 'paused',
  pause: 'paused',
  inactive: 'paused',
  blocked: 'paused',
  debug: 'paused',
}

/** Any other word, as `deleted`, pauses the process. */
function statusOf(
  status: JsonValue | undefined,
  mistakes: string[],
  warnings: string[],
): Graph['status'] {
  if (isAbsent(status)) return 'active'
  const is_word = typeof status === 'string'
  const known = is_word && Object.hasOwn(statuses, status) ? statuses[status] : undefined
  if (known !== undefined) return known
  const text = `process: status ${quoted(status)} is neither "active" nor "paused"`
  if (is_word) warnings.push(`${text}: it is stored as paused`)
  else mistakes.push(text)
  return 'paused'
}

/** The title of the process or of a node. */
export function readTitle({ title }: JsonObject, place: string, mistakes: string[]): string {
  if (typeof title === 'string') return title
  if (title !== undefined && title !== null) {
    mistakes.push(`${place}: title is ${quoted(title)}, a text was expected`)
  }
  return ''
}
