/**
 * Folders and the company as tools ask for them at a login. There is one folder, the root, with
 * every process, and beside it those of stages and projects; the engine keeps no other tree.
 */
import { keysOfType, processOfKey } from '../codec/keys.ts'
import { grant_bits } from '../codec/records.ts'
import type { JsonObject } from '../core/model.ts'
import { allIn } from '../engine/transactions/scans.ts'
import {
  type Act,
  editable,
  idOf,
  idText,
  idValue,
  noObject,
  refusal,
  requireAdministrator,
  rightsIn,
} from './act.ts'
import type { Answer } from './answers.ts'
import { ownDraft } from './commits.ts'
import { definitionOf } from './definition.ts'
import { type Place, placeWithId } from './projects.ts'
import { headOf, root_title } from './reading.ts'

/** The stage or project whose id an op has; undefined for the root, also where it is absent. */
function placeIn(act: Act): Place | undefined {
  const { obj_id = 0 } = act.op
  if (obj_id === '' || obj_id === null || idText(obj_id) === '0') return undefined
  requireAdministrator(act)
  const id = idOf(act, 'obj_id')
  const place = placeWithId(act, id)
  if (place === undefined) throw noObject('folder', id)
  return place
}

export function listFolder(act: Act): Answer {
  const place = placeIn(act)
  const { store } = act.tx
  const list: JsonObject[] = []
  for (const { key } of allIn(store, keysOfType('process'))) {
    const conv_id = processOfKey(key)
    if ((rightsIn(act, conv_id) & grant_bits.edit) === 0) continue
    const process = act.tx.process(conv_id)
    if (place !== undefined && process?.record.stage_id !== place.stage_id) continue
    const found = process && definitionOf(store, process)
    if (process === undefined || found === undefined) continue
    const id = idValue(conv_id)
    const draft = ownDraft(act, conv_id)
    list.push({
      ...{ obj: 'conv', obj_type: 'conv', obj_id: id },
      ...headOf(act, process, found.value, found.bytes),
      ...{ version: draft?.record.version ?? 0, is_deployed: draft === undefined, parent_id: 0 },
    })
  }
  if (place !== undefined) return { ...parentOf(place), list: [...place.stages, ...list] }
  return { obj_id: 0, parent_folder_id: 0, parent_folder_title: root_title, list }
}

function parentOf({ parent_id, parent_title }: Place): Answer {
  return { parent_folder_id: parent_id, parent_folder_title: parent_title }
}

export function showFolder(act: Act): Answer {
  const place = placeIn(act)
  if (place !== undefined) return place.answer
  return { obj_id: 0, title: root_title, obj_type: 0, parent_obj_id: 0, parent_obj_type: 'folder' }
}

export function noFolders(act: Act): Answer {
  requireAdministrator(act)
  throw refusal(folders_not_kept)
}

const folders_not_kept = 'folders are not kept here'

/** The move of a process: it stays in the root. */
export function linkFolder(act: Act): Answer {
  const { conv_id } = editable(act, 'obj_id')
  const target = act.op.folder_id ?? act.op.parent_id ?? 0
  if (idText(target) !== '0') throw refusal(folders_not_kept)
  return { obj_id: idValue(conv_id), folder_id: 0 }
}

export function listCompany(act: Act): Answer {
  requireAdministrator(act)
  const company = { company_id: 'conveyor', title: 'Conveyor', is_owner: true, is_admin: true }
  return { list: [company] }
}
