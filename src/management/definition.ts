/**
 * A stored definition as tools read it: whole, with its nodes as the service lists them, and with
 * passwords and secrets replaced by `***`.
 */
import { isObject, parseStored, setMember, stringifyJson } from '../codec/json.ts'
import { versionKey } from '../codec/keys.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { hidden, secret_names } from '../engine/drafts/draft-secrets.ts'
import type { Process } from '../engine/transactions/catalog.ts'
import type { View } from '../store/store.ts'
import { type Act, idText, listOf, memberOf } from './act.ts'

export interface Definition {
  /** Without secrets. */
  readonly value: JsonObject
  readonly bytes: number
}

/** Of the confirmed version, or of an earlier one; undefined for a version that is not there. */
export function definitionOf(
  view: View,
  { conv_id, record }: Process,
  version = record.version,
): Definition | undefined {
  const stored = storedDefinition(view, conv_id, version)
  return stored && { value: withoutSecrets(stored.value) as JsonObject, bytes: stored.bytes }
}

/** As it is stored: for changes only. */
export function storedDefinition(
  view: View,
  conv_id: string,
  version: number,
): Definition | undefined {
  const text = view.get(versionKey(conv_id, version))
  if (text === undefined) return undefined
  return { value: parseStored(text.toString('utf8')) as JsonObject, bytes: text.length }
}

export function withoutSecrets(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (!isObject(value)) return value
  const copy: JsonObject = {}
  for (const name of Object.keys(value)) {
    const member = value[name] as JsonValue
    const is_hidden = secret_names.has(name) && typeof member === 'string' && member !== ''
    setMember(copy, name, is_hidden ? hidden : withoutSecrets(member))
  }
  return copy
}

export function nodesOf(definition: JsonObject): JsonObject[] {
  return listOf(memberOf(definition.scheme, 'nodes')).filter(isObject)
}

/** A node as `list conv` and `show node` have it. */
export function nodeAnswer({ tx }: Act, { conv_id }: Process, node: JsonObject): JsonObject {
  const id = idText(node.id) ?? ''
  const { condition } = node
  const stub = memberOf(condition, 'stub')
  return {
    obj: 'node',
    obj_id: id,
    title: node.title ?? '',
    description: node.description ?? '',
    logics: listOf(memberOf(condition, 'logics')),
    semaphors: listOf(memberOf(condition, 'semaphors')),
    count: tx.nodeCount(conv_id, id),
    obj_type: node.obj_type ?? 0,
    position: [node.x ?? 0, node.y ?? 0],
    extra: asText(node.extra),
    options: asText(node.options),
    ...(stub === undefined ? {} : { stub }),
  }
}

const asText = (value: JsonValue | undefined): string =>
  typeof value === 'string' ? value : stringifyJson(value ?? {})
