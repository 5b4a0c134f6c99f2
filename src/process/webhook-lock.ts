/**
 * The lock of a webhook, in the options of a start: `type_auth` `basic` with `login` and `secret`,
 * each a text or a template of a variable. A literal secret never stays in the stored definition:
 * `hideSecret` replaces it by `***`, and the engine stores it encrypted. Any other `type_auth` is
 * an unknown lock, which no request opens.
 */
import { empty_doc, isObject, setMember, stringifyJson } from '../codec/json.ts'
import type { JsonObject } from '../core/model.ts'
import { listOfNodes, nodeType, parsedOptions } from './compile-head.ts'
import { steps_max } from './definition-limits.ts'
import type { BasicLock, Graph, WebhookLock } from './graph.ts'
import type { EvaluationContext } from './logic.ts'
import { isAbsent } from './logics/members.ts'
import { quoted, type Report } from './report.ts'
import { expansionOf } from './templates/parser.ts'
import { compileTemplate, looksTemplated, type Template } from './templates/template.ts'
import { textOf } from './values.ts'

const hidden = '***'

/** The lock of the webhook of a process; undefined without one. */
export function lockOf({ nodes, start_id }: Graph): WebhookLock | undefined {
  return nodes.get(start_id)?.lock
}

export function isStored({ secret }: BasicLock): boolean {
  return secret.constant === hidden
}

/** Undefined for a start without a lock. */
export function readLock(options: JsonObject, report: Report): WebhookLock | undefined {
  const { type_auth } = options
  if (isAbsent(type_auth) || type_auth === 'no_auth') return undefined
  if (type_auth !== 'basic') {
    report.warning(`type_auth ${quoted(type_auth)} is not known here: its webhook stays closed`)
    return 'unknown'
  }
  const [login, secret] = (['login', 'secret'] as const).map((name) => {
    const text = isAbsent(options[name]) ? '' : textOf(options[name])
    if (text === '') report.warning(`type_auth basic has no ${name}: its webhook lets nobody in`)
    return compileTemplate(text, report, name)
  }) as [Template, Template]
  return { login, secret }
}

/** Replaces the literal secret of a start in place, and returns it; undefined without one. */
export function hideSecret(definition: JsonObject): string | undefined {
  const start = listOfNodes(definition.scheme)?.find(
    (node): node is JsonObject => isObject(node) && nodeType(node.obj_type) === 1,
  )
  const options = parsedOptions(start?.options)
  if (start === undefined || !isObject(options) || isAbsent(options.secret)) return undefined
  const secret = textOf(options.secret)
  if (secret === hidden || looksTemplated(secret)) return undefined
  setMember(options, 'secret', hidden)
  if (typeof start.options === 'string') setMember(start, 'options', stringifyJson(options))
  return secret
}

/** Undefined where the login or the secret is empty, or cannot be made. */
export function credentialsOf(
  { login, secret }: BasicLock,
  variable: EvaluationContext['variable'],
  stored: string | undefined,
): string | undefined {
  const context: EvaluationContext = { ...without_task, steps: { left: steps_max }, variable }
  const name = login.text(expansionOf(context))
  const word = secret.constant === hidden ? stored : secret.text(expansionOf(context))
  return isAbsent(name) || isAbsent(word) ? undefined : `${name}:${word}`
}

const chars_max = 10_000

const without_task = {
  doc: empty_doc,
  now_ms: 0,
  fraction: () => 0,
  rootField: () => undefined,
  task_bytes_max: chars_max,
  canRead: () => false,
  taskData: () => undefined,
  nodeCount: () => undefined,
  nodeSum: () => undefined,
  callbackUrl: () => undefined,
}
