/**
 * Folders, the company, projects and stages as tools ask for them at a login. There is one
 * folder, the root, with every process; the engine keeps no tree.
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
import { headOf, root_title } from './reading.ts'

/** Absent and empty are the root, as tools send it. */
function requireRoot(act: Act, key = 'obj_id'): void {
  const id = act.op[key] ?? 0
  if (id === '' || idText(id) === '0') return
  requireAdministrator(act)
  throw noObject('folder', idOf(act, key))
}

export function listFolder(act: Act): Answer {
  requireRoot(act)
  const { store } = act.tx
  const list: JsonObject[] = []
  for (const { key } of allIn(store, keysOfType('process'))) {
    const conv_id = processOfKey(key)
    if ((rightsIn(act, conv_id) & grant_bits.edit) === 0) continue
    const process = act.tx.process(conv_id)
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
  return { obj_id: 0, parent_folder_id: 0, parent_folder_title: root_title, list }
}

export function showFolder(act: Act): Answer {
  requireRoot(act)
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

export function listProjects(act: Act): Answer {
  requireAdministrator(act)
  return { list: [] }
}

export function noProject(act: Act): Answer {
  requireAdministrator(act)
  throw noObject(String(act.op.obj), idOf(act, 'obj_id'))
}
