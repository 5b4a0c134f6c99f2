/**
 * Ops that edit the nodes and parameters of a draft. Here only the form of what was sent is
 * checked: links to nodes that a later op makes, and logics, are for the confirm.
 */
import { isNumberToken, isObject, parseJson } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { newNonce } from '../engine/definitions/webhooks.ts'
import { storedVersion } from '../engine/drafts/draft-definition.ts'
import {
  changeNode,
  changeRest,
  type Edit,
  putNode,
  removeNode,
} from '../engine/drafts/draft-edits.ts'
import { type Draft, findDraft } from '../engine/drafts/draft-store.ts'
import type { Process } from '../engine/transactions/catalog.ts'
import { nodeType } from '../process/compile-head.ts'
import {
  type Act,
  acted,
  editable,
  idOf,
  idValue,
  invalid,
  listOf,
  noObject,
  numberIn,
  required,
  textIn,
} from './act.ts'
import type { Answer } from './answers.ts'
import { storeDefinition } from './changing.ts'

const title_chars_max = 255
const description_chars_max = 10_000

/** Always under a new id: the client's own name for the node comes back as `id`. */
export function createNode(act: Act): Answer {
  const process = editable(act, 'conv_id')
  if (act.op.obj_type === undefined) throw required('obj_type')
  const { condition = {}, ...sent } = nodeIn(act)
  const node_id = act.tx.newTaskId()
  const whole = { logics: [], semaphors: [], ...(condition as JsonObject) }
  const node = { ...blank, ...sent, id: node_id, condition: whole }
  const draft = putNode(editOf(act, process), node)
  opened(act, draft)
  return { obj_id: node_id, conv_id: idValue(process.conv_id), version: draft.record.version }
}

const blank = { title: '', description: '', x: 0, y: 0, extra: {}, options: {} }

export function modifyNode(act: Act): Answer {
  const process = editable(act, 'conv_id')
  const node_id = idOf(act, 'obj_id')
  const draft = changeNode(editOf(act, process), node_id, nodeIn(act))
  if (draft === undefined) throw noObject('node', node_id)
  opened(act, draft)
  return { obj_id: node_id, conv_id: idValue(process.conv_id), version: draft.record.version }
}

export function deleteNode(act: Act): Answer {
  const process = editable(act, 'conv_id')
  const node_id = idOf(act, 'obj_id')
  const draft = removeNode(editOf(act, process), node_id)
  if (draft === undefined) throw noObject('node', node_id)
  opened(act, draft)
  return { obj_id: node_id, conv_id: idValue(process.conv_id), version: draft.record.version }
}

/** In the caller's draft; without one, a confirmed version of its own. */
export function modifyConvParams(act: Act): Answer {
  const { op, tx, caller } = act
  const process = editable(act, 'obj_id')
  const { conv_id, record } = process
  const patch: JsonObject = {}
  if (op.params !== undefined) {
    if (!Array.isArray(op.params) || !op.params.every(isObject)) {
      throw invalid('params', 'an array of objects')
    }
    patch.params = op.params
  }
  if (op.ref_mask !== undefined) {
    if (typeof op.ref_mask !== 'boolean') throw invalid('ref_mask', 'true or false')
    patch.ref_mask = op.ref_mask
  }
  if (Object.keys(patch).length === 0) throw required('params')
  const answer = { obj_id: idValue(conv_id), conv_id: idValue(conv_id) }
  const own = findDraft(tx.store, conv_id, caller.user ?? '', tx.now_ms)
  if (own !== undefined) {
    changeRest({ ...editOf(act, process, own.record.version) }, patch)
    return { ...answer, version: own.record.version }
  }
  const definition = { ...storedVersion(tx.store, conv_id, record.version), ...patch }
  const version = storeDefinition(act, conv_id, definition)
  if (version !== record.version) acted(act, conv_id, version)
  return { ...answer, version }
}

function editOf(act: Act, process: Process, given?: number): Edit {
  const { tx, caller, engine, op } = act
  if (given === undefined && op.version === undefined) throw required('version')
  const usual = given ?? 0
  const version = given ?? numberIn(act, 'version', { min: 1, max: Number.MAX_SAFE_INTEGER, usual })
  return {
    ...{ tx: tx.store, process, version, user: caller.user ?? '', limits: engine.limits },
    ...{ now_ms: tx.now_ms, nonce: newNonce(engine.chance) },
  }
}

/** The first edit is an event: the others change nothing that anybody else sees. */
function opened(act: Act, { conv_id, record }: Draft): void {
  if (record.edits > 1) return
  const { engine, caller, op } = act
  const fields = { act: `${op.type} ${op.obj}`, user: caller.user, conv_id }
  act.afterwards(() => engine.emit('process_managed', { ...fields, version: record.version }))
}

/** The members of a node that an op sends, as a definition has them. */
function nodeIn(act: Act): JsonObject {
  const { op } = act
  const node: JsonObject = {}
  const condition: JsonObject = {}
  const title = textIn(act, 'title', title_chars_max)
  if (title !== undefined) node.title = title
  const description = textIn(act, 'description', description_chars_max)
  if (description !== undefined) node.description = description
  if (isSent(op.obj_type)) {
    const type = nodeType(op.obj_type)
    if (type === undefined || ![0, 1, 2, 3, 4].includes(type)) {
      throw invalid('obj_type', 'one of 0 1 2 3 4')
    }
    node.obj_type = type
  }
  for (const name of ['logics', 'semaphors'] as const) {
    if (!isSent(op[name])) continue
    const list = structureOf(op[name])
    if (!Array.isArray(list) || !list.every(isObject)) throw invalid(name, 'an array of objects')
    condition[name] = list
  }
  for (const name of ['extra', 'options'] as const) {
    if (!isSent(op[name])) continue
    if (!isObject(structureOf(op[name]))) throw invalid(name, 'an object, or its JSON text')
    node[name] = op[name] as JsonValue
  }
  if (isSent(op.stub)) {
    const stub = structureOf(op.stub)
    if (!isObject(stub)) throw invalid('stub', 'an object')
    condition.stub = stub
  }
  if (isSent(op.position)) {
    const [x, y, more] = listOf(structureOf(op.position))
    if (!isNumber(x) || !isNumber(y) || more !== undefined) {
      throw invalid('position', 'two numbers')
    }
    Object.assign(node, { x, y })
  }
  return Object.keys(condition).length === 0 ? node : { ...node, condition }
}

const isNumber = (value: JsonValue | undefined): value is JsonValue =>
  typeof value === 'number' || isNumberToken(value)

const isSent = (value: JsonValue | undefined): boolean => value !== undefined && value !== null

/** Tools send structures as they are, or as JSON text. */
function structureOf(value: JsonValue | undefined): JsonValue | undefined {
  if (typeof value !== 'string') return value
  if (value === '') return {}
  try {
    return parseJson(value)
  } catch {
    return undefined
  }
}
