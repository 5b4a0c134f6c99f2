/** Ops that read processes: their head, nodes, parameters, scheme, versions and shares. */
import { grant_bits } from '../codec/records.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { grantsFor } from '../engine/definitions/processes.ts'
import type { Process } from '../engine/transactions/catalog.ts'
import {
  type Act,
  editable,
  idOf,
  idText,
  idValue,
  listOf,
  memberOf,
  noObject,
  numberIn,
  refusal,
  rightsIn,
  secondsOf,
  textIn,
} from './act.ts'
import type { Answer } from './answers.ts'
import { draftsAnswer } from './commits.ts'
import { type Definition, definitionOf, nodeAnswer, nodesOf } from './definition.ts'
import { placeOf } from './named.ts'
import { ownerOf, userName } from './users.ts'

/** No title or pattern is longer. */
const pattern_chars_max = 255

export function listConv(act: Act): Answer {
  const process = editable(act, 'obj_id')
  if (act.op.list_obj === 'group') return { list: sharesOf(act, process) }
  const { value, bytes } = read(act, process)
  const { title, description, status, ...head } = headOf(act, process, value, bytes)
  return {
    ...placeOf(act, process.record.stage_id),
    ...{ immutable: false, privs: head.privs as JsonValue },
    ...{ status: status as JsonValue, title: title as JsonValue },
    ...{ description: description as JsonValue, ...head },
    list: nodesOf(value).map((node) => nodeAnswer(act, process, node)),
    ...{ folder_id: 0, folder_name: root_title, company_id: null },
    ...draftsAnswer(act, process),
    last_confirmed_version: process.record.is_draft ? 0 : process.record.version,
  }
}

export const root_title = 'Root folder'

export function showConv(act: Act): Answer {
  const process = editable(act, 'obj_id')
  const { value, bytes } = read(act, process)
  const head = headOf(act, process, value, bytes)
  const place = placeOf(act, process.record.stage_id)
  return { ...head, ...place, immutable: false, ...parent_root }
}

const parent_root = { parent_obj_id: 0, parent_obj_type: 'folder' } as const

/** What lists and shows of a process have in common. */
export function headOf(act: Act, process: Process, value: JsonObject, bytes: number): JsonObject {
  const { conv_id, record } = process
  const { owner, create_ms, change_ms } = record
  return {
    title: record.title,
    description: value.description ?? '',
    status: record.status,
    conv_type: value.conv_type ?? 'process',
    privs: privsOf(rightsIn(act, conv_id)),
    is_owner: owner !== undefined && owner === act.caller.user,
    ...ownerOf(act, owner),
    change_time: secondsOf(change_ms),
    create_time: secondsOf(create_ms),
    size: bytes,
  }
}

function read(act: Act, process: Process, version?: number): Definition {
  const found = definitionOf(act.tx.store, process, version)
  if (found !== undefined) return found
  throw refusal(`Version ${version} does not exist`)
}

/** `edit` covers what the service calls modify and delete together. */
export function privsOf(bits: number): JsonObject[] {
  const has = (bit: number): boolean => (bits & bit) !== 0
  const names = [
    ...(has(grant_bits.create) ? ['create'] : []),
    ...(has(grant_bits.modify) || has(grant_bits.edit) ? ['modify'] : []),
    ...(has(grant_bits.show) ? ['view'] : []),
    ...(has(grant_bits.edit) ? ['delete'] : []),
  ]
  return names.map((type) => ({ type, list_obj: ['all'] }))
}

function sharesOf(act: Act, { conv_id }: Process): JsonObject[] {
  return grantsFor(act.tx.store, conv_id).map(({ user, bits }) => ({
    ...{ obj: 'user', obj_id: idValue(user), login_id: idValue(user) },
    ...{ title: userName(act, user), login: user, privs: privsOf(bits) },
  }))
}

export function showNode(act: Act): Answer {
  const process = editable(act, 'conv_id')
  const { obj, position, extra, options, ...node } = nodeAnswer(act, process, nodeOf(act, process))
  return node
}

/** The node that a member names, of the confirmed version. */
export function nodeOf(act: Act, process: Process, key = 'obj_id'): JsonObject {
  const id = idOf(act, key)
  const { value } = read(act, process)
  const node = nodesOf(value).find((one) => idText(one.id) === id)
  if (node !== undefined) return node
  throw noObject('node', id)
}

export function listNodes(act: Act): Answer {
  const process = editable(act, 'conv_id')
  const pattern = (textIn(act, 'pattern', pattern_chars_max) ?? '').toLowerCase()
  const { conv_id } = process
  const nodes = nodesOf(read(act, process).value).filter(({ title }) =>
    String(title ?? '')
      .toLowerCase()
      .includes(pattern),
  )
  return {
    list: nodes.map(({ id = '', title = '', description = '', obj_type = 0 }) => ({
      ...{ conv_id: idValue(conv_id), id, title, description, type: obj_type, status: 1 },
    })),
  }
}

export function listConvParams(act: Act): Answer {
  const { value } = read(act, editable(act, 'obj_id'))
  return { params: value.params ?? [], ref_mask: value.ref_mask ?? false }
}

export function getScheme(act: Act): Answer {
  if (act.op.obj_type === 'folder') throw noObject('folder', idOf(act, 'obj_id'))
  const process = editable(act, 'obj_id')
  const newest = process.record.version
  const version = numberIn(act, 'version', { min: 1, max: 2 ** 32 - 1, usual: newest })
  return { scheme: [read(act, process, version).value] }
}

/** Forgotten. */
export function favoriteConv(act: Act): Answer {
  editable(act, 'obj_id')
  return {}
}

export function getApiCode(act: Act): Answer {
  const node = nodeOf(act, editable(act, 'conv_id'), 'node_id')
  const logics = listOf(memberOf(node.condition, 'logics'))
  const code = logics.find((one) => memberOf(one, 'type') === 'api_code')
  if (code === undefined) throw refusal('the node has no api_code')
  const src = memberOf(code, 'src') ?? memberOf(code, 'code') ?? ''
  return { lang: memberOf(code, 'lang') ?? 'js', src }
}
