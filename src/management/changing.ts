/** Ops that change processes at once, without a draft: create, modify, delete, share. */

import { setMember } from '../codec/json.ts'
import {
  atNodeOfKey,
  grantKey,
  keysOfType,
  metaKey,
  processKey,
  processOfKey,
  tasksAtNodes,
} from '../codec/keys.ts'
import { encodeRecord, grant_bits, type ProcessRecord } from '../codec/records.ts'
import { defined } from '../core/defined.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { versionOf } from '../engine/definitions/definitions.ts'
import { putVersion } from '../engine/definitions/imports.ts'
import { putStatus, removeProcess } from '../engine/definitions/processes.ts'
import { newNonce } from '../engine/definitions/webhooks.ts'
import { endCanceled } from '../engine/tasks/task-actions.ts'
import type { Process } from '../engine/transactions/catalog.ts'
import { allIn } from '../engine/transactions/scans.ts'
import { beginOp } from '../engine/transactions/transaction-queue.ts'
import { compileProcess } from '../process/compile-process.ts'
import type { Graph } from '../process/graph.ts'
import type { Tx, View } from '../store/store.ts'
import {
  type Act,
  acted,
  all_rights,
  denied,
  editable,
  idOf,
  idText,
  idValue,
  invalid,
  listOf,
  memberOf,
  refusal,
  requireAdministrator,
  required,
  rightsIn,
  textIn,
} from './act.ts'
import type { Answer } from './answers.ts'
import { storedDefinition } from './definition.ts'
import { stageIn } from './named.ts'
import { requireUser, userName } from './users.ts'

const title_chars_max = 255
const description_chars_max = 10_000

/** The words of the service for a status, and the number that its answers have. */
const statuses = {
  active: { status: 'active', number: 1 },
  actived: { status: 'active', number: 1 },
  debugged: { status: 'active', number: 1 },
  paused: { status: 'paused', number: 2 },
} as const

function statusIn({ op }: Act): ProcessRecord['status'] | undefined {
  const { status } = op
  if (status === undefined || status === null) return undefined
  if (typeof status === 'string' && Object.hasOwn(statuses, status)) {
    return statuses[status as keyof typeof statuses].status
  }
  throw invalid('status', 'active or paused')
}

function titleIn(act: Act): string | undefined {
  const title = textIn(act, 'title', title_chars_max)
  if (title === '') throw invalid('title', `a text of 1 to ${title_chars_max} characters`)
  return title
}

export function createConv(act: Act): Answer {
  requireAdministrator(act)
  const { op, caller, tx } = act
  const title = titleIn(act)
  if (title === undefined) throw required('title')
  const { conv_type = 'process' } = op
  if (conv_type !== 'process' && conv_type !== 'state') {
    throw invalid('conv_type', 'process or state')
  }
  const description = textIn(act, 'description', description_chars_max) ?? ''
  const status = statusIn(act) ?? 'active'
  const stage = stageIn(act)
  const conv_id = String(nextConvId(tx.store))
  const nodes = op.create_mode === 'without_nodes' ? [] : first_nodes
  const head = { obj_type: 1, obj_id: Number(conv_id), parent_id: 0, title, description }
  const definition = { ...head, conv_type, status, params: [], scheme: { nodes } }
  storeDefinition(act, conv_id, definition)
  const { record } = tx.process(conv_id) as Process
  const of = defined({ owner: caller.user, stage_id: stage?.id })
  tx.store.put(processKey(conv_id), encodeRecord({ ...record, ...of }))
  if (caller.user !== undefined) {
    tx.store.put(grantKey(caller.user, conv_id), Buffer.from([all_rights]))
  }
  noteConvId(tx.store, Number(conv_id))
  acted(act, conv_id, 1)
  return { obj_id: Number(conv_id), folder_id: 0, hash: null }
}

const first_nodes = [
  firstNode('start', 1, [{ type: 'go', to_node_id: 'final' }]),
  firstNode('final', 2, []),
]

function firstNode(id: string, obj_type: number, logics: JsonValue[]): JsonObject {
  const condition = { logics, semaphors: [] }
  const place = { x: 200, y: obj_type * 200 }
  return { id, obj_type, title: id, description: '', ...place, condition, extra: {}, options: {} }
}

/** The highest id that was ever given, so that none is given twice. */
const last_conv_id = metaKey('last_conv_id')

export function nextConvId(view: View): number {
  return Math.max(givenIn(view), highestConvId(view)) + 1
}

const givenIn = (view: View): number => Number(view.get(last_conv_id)?.toString() ?? 0)

export function noteConvId(tx: Tx, id: number): void {
  if (id > givenIn(tx)) tx.put(last_conv_id, Buffer.from(String(id)))
}

function highestConvId(view: View): number {
  const ids = allIn(view, keysOfType('process')).map(({ key }) => idValue(processOfKey(key)))
  return ids.reduce<number>((max, id) => (typeof id === 'number' && id > max ? id : max), 0)
}

function compiled({ engine, tx }: Act, definition: JsonObject): Graph {
  const { graph, mistakes } = compileProcess(
    definition,
    engine.limits,
    engine.process_parts.handlers.mayRun,
    tx.engine.db_call,
  )
  if (graph === undefined) throw refusal(mistakes[0] as string)
  return graph
}

/** Compiled here; its number, which stays where nothing is changed. */
export function storeDefinition(act: Act, conv_id: string, definition: JsonObject): number {
  return store(act, conv_id, definition, compiled(act, definition))
}

function store(act: Act, conv_id: string, definition: JsonObject, graph: Graph): number {
  const { tx, engine, caller } = act
  const next = versionOf(conv_id, definition, graph)
  tx.engine.catalog.expect([next])
  const isNode = (id: string): boolean => graph.nodes.has(id)
  const by = caller.user === undefined ? {} : { confirmed_by: caller.user }
  const how = { given: {}, isNode, nonce: newNonce(engine.chance), now_ms: tx.now_ms, by }
  const { version } = putVersion(tx.store, tx.engine.catalog, next, how)
  tx.forgetProcess(conv_id)
  return version
}

export function modifyConv(act: Act): Answer {
  const process = editable(act, 'obj_id')
  const { conv_id, record } = process
  const title = titleIn(act)
  const description = textIn(act, 'description', description_chars_max)
  const status = statusIn(act) ?? record.status
  const is_renamed = rename(act, process, { title, description })
  const now = act.tx.process(conv_id) as Process
  const is_moved = putStatus(act.tx.store, now, status)
  const is_changed = is_renamed || is_moved
  if (is_changed) acted(act, conv_id, now.record.version)
  if (is_moved) {
    const event = status === 'paused' ? 'process_paused' : 'process_resumed'
    act.afterwards(() => act.engine.emit(event, { conv_id }))
  }
  return {
    obj_id: idValue(conv_id),
    new_status: statuses[status].number,
    old_status: statuses[record.status].number,
    is_changed,
  }
}

/** A new title is a version of its own; the nodes stay, so nothing is compiled again. */
function rename(
  act: Act,
  { conv_id, record, graph }: Process,
  given: Readonly<Record<'title' | 'description', string | undefined>>,
): boolean {
  const found = storedDefinition(act.tx.store, conv_id, record.version)
  if (found === undefined) throw new Error(`process ${conv_id}: its definition is missing`)
  const { value } = found
  let is_changed = false
  for (const name of ['title', 'description'] as const) {
    const text = given[name]
    if (text === undefined || text === value[name]) continue
    setMember(value, name, text)
    is_changed = true
  }
  if (is_changed) store(act, conv_id, value, { ...graph, title: given.title ?? graph.title })
  return is_changed
}

export function deleteConv(act: Act): Answer {
  const { conv_id } = editable(act, 'obj_id')
  const { tx, engine, op } = act
  if (op.force === true) endLiveTasks(act, conv_id)
  const { addresses } = engine
  const highest = String(highestConvId(tx.store))
  removeProcess(tx.store, addresses, conv_id)
  if (highest === conv_id) noteConvId(tx.store, Number(highest))
  act.afterwards(() => addresses.locks.onRemoved(conv_id))
  acted(act, conv_id)
  return { obj_id: idValue(conv_id) }
}

/** In the same transaction, so not without a bound. */
const ended_max = 1_000

function endLiveTasks({ tx, caller }: Act, conv_id: string): void {
  const live = tx.store.scan({ ...tasksAtNodes(conv_id), limit: ended_max + 1 })
  if (live.length > ended_max) {
    throw refusal(`over ${ended_max} live tasks are in process ${conv_id}: cancel them before`)
  }
  for (const { key } of live) {
    const { obj_id } = atNodeOfKey(key)
    beginOp(tx)
    endCanceled(tx, { type: 'show', id_text: undefined, conv_id, ref: undefined, obj_id }, caller)
  }
}

/** `modify` and `delete` together, which tools send for all rights, are `edit` too. */
const bits_of: Readonly<Record<string, number>> = {
  view: grant_bits.show,
  create: grant_bits.create,
  modify: grant_bits.modify,
  delete: 0,
}

export function linkConv(act: Act): Answer {
  const { op, tx } = act
  const { conv_id } = editable(act, 'obj_id')
  if (op.obj_to !== 'user') throw refusal('bad object')
  const user = idOf(act, 'obj_to_id')
  if (!Array.isArray(op.privs)) throw required('privs')
  const names = listOf(op.privs).map((one) => idText(memberOf(one, 'type') ?? one) ?? '')
  if (names.some((name) => !Object.hasOwn(bits_of, name))) {
    throw invalid('privs', 'some of view, create, modify, delete')
  }
  const has_all = names.includes('modify') && names.includes('delete')
  const bits = names.reduce((sum, name) => sum | (bits_of[name] as number), 0)
  const given = has_all ? bits | grant_bits.edit : bits
  if ((given & ~rightsIn(act, conv_id)) !== 0) throw denied(act, conv_id)
  requireUser(act, user)
  if (given === 0) tx.store.del(grantKey(user, conv_id))
  else tx.store.put(grantKey(user, conv_id), Buffer.from([given]))
  acted(act, conv_id)
  return {
    ...{ obj_id: idValue(conv_id), obj_type: 'conv', obj_to_type: 'user' },
    ...{ obj_to_id: idValue(user), obj_to_title: userName(act, user) },
    action_type: given === 0 ? 'unlink' : 'link',
  }
}

/** Compiles the code of a node and writes nothing: what runs is what the definition has. */
export function compileApiCode(act: Act): Answer {
  editable(act, 'conv_id')
  const node_id = idOf(act, 'node_id')
  const { lang = 'js', src } = act.op
  if (typeof src !== 'string') throw required('src')
  const logics = [{ type: 'api_code', lang, src, err_node_id: 'final' }, first_go]
  const nodes = [firstNode('start', 1, logics), firstNode('final', 2, [])]
  const head = { obj_type: 1, obj_id: 1, title: 'code', conv_type: 'process', status: 'active' }
  const { mistakes, warnings } = compileProcess(
    { ...head, params: [], scheme: { nodes } },
    act.engine.limits,
  )
  const found = [...mistakes, ...warnings.filter((text) => text.includes(no_code))]
  if (found.length === 0) return { description: '' }
  const texts = found.map((text) => `Key 'src'. '${text.replace(/^.*?api_code: /, '')}'`)
  throw refusal(String(texts.length), { errors: { [node_id]: texts } })
}

const first_go = { type: 'go', to_node_id: 'final' }
const no_code = 'src is no JavaScript'
