/**
 * Projects and their stages, as imports have brought them. They say where aliases, variables and
 * processes belong; they are neither locked nor merged.
 */
import type { StageRecord } from '../codec/records.ts'
import type { JsonObject } from '../core/model.ts'
import { stagesIn } from '../engine/transactions/stages.ts'
import { type Act, idOf, idValue, noObject, requireAdministrator } from './act.ts'
import type { Answer } from './answers.ts'
import { root_title } from './reading.ts'

/** A stage or a project as a folder. */
export interface Place {
  readonly answer: Answer
  readonly parent_id: string | number
  readonly parent_title: string
  /** Of its processes; null for a project, which has none of its own. */
  readonly stage_id: string | null
  readonly stages: readonly JsonObject[]
}

interface Project {
  readonly id: string
  readonly title: string
}

const folder_types = { project: 5, stage: 10 } as const

function projectOf({ project_id = '0', project_title = '' }: StageRecord): Project {
  return { id: project_id, title: project_title || `Project ${project_id}` }
}

function projectsIn(act: Act): Project[] {
  const found = stagesIn(act.tx.store)
    .filter(({ project_id }) => project_id !== undefined)
    .map((stage) => [stage.project_id, projectOf(stage)] as const)
  return [...new Map(found).values()]
}

export function placeWithId(act: Act, id: string): Place | undefined {
  const stage = stagesIn(act.tx.store).find((one) => one.id === id)
  if (stage !== undefined) {
    const { id: parent, title: parent_title } = projectOf(stage)
    const parent_id = idValue(parent)
    const of_project = { parent_obj_id: parent_id, parent_obj_type: 'project' }
    const answer = { ...headOfStage(stage), obj_type: folder_types.stage, ...of_project }
    return { answer, parent_id, parent_title, stage_id: id, stages: [] }
  }
  const project = projectsIn(act).find((one) => one.id === id)
  if (project === undefined) return undefined
  const of_root = { parent_obj_id: 0, parent_obj_type: 'folder' }
  return {
    answer: { ...project_head(project), obj_type: folder_types.project, ...of_root },
    ...{ parent_id: 0, parent_title: root_title, stage_id: null },
    stages: stagesOf(act, project).map((one) => ({ obj: 'stage', obj_type: 'stage', ...one })),
  }
}

function stagesOf(act: Act, { id }: Project): JsonObject[] {
  return stagesIn(act.tx.store)
    .filter(({ project_id }) => project_id === id)
    .map(headOfStage)
}

function headOfStage({ id, title, short_name }: StageRecord): JsonObject {
  const name = short_name ?? title
  return { obj_id: idValue(id), title, short_name: name, immutable: false, undeployed: false }
}

const project_head = ({ id, title }: Project): JsonObject => ({
  ...{ obj_id: idValue(id), project_id: idValue(id), title, short_name: title },
  ...{ owner_login: '', undeployed: false },
})

export function listProjects(act: Act): Answer {
  requireAdministrator(act)
  return { list: projectsIn(act).map((one) => ({ obj: 'project', ...project_head(one) })) }
}

/** The stages of a project. */
export function listStages(act: Act): Answer {
  const project = requireProject(act)
  return { list: stagesOf(act, project).map((stage) => ({ obj: 'stage', ...stage })) }
}

export const showProject = (act: Act): Answer => project_head(requireProject(act))

function requireProject(act: Act): Project {
  requireAdministrator(act)
  const id = idOf(act, 'obj_id')
  const found = projectsIn(act).find((one) => one.id === id)
  if (found === undefined) throw noObject('project', id)
  return found
}

export function showStage(act: Act): Answer {
  requireAdministrator(act)
  const id = idOf(act, 'obj_id')
  const found = stagesIn(act.tx.store).find((one) => one.id === id)
  if (found === undefined) throw noObject('stage', id)
  return { ...headOfStage(found), project_id: idValue(projectOf(found).id) }
}
