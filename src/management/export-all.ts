/**
 * The files of an export of all processes, or of those of a stage or a project by its id or name,
 * for the operator: with the secrets of definitions as they were given, and all mistakes in the
 * choice as `not_possible`.
 */
import { fault } from '../core/faults.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import { stagesIn } from '../engine/transactions/stages.ts'
import type { TextFile } from '../files/zip-writer.ts'
import { type SchemeChoice, schemeFiles } from './scheme-files.ts'

export interface ExportChoice {
  readonly stage?: string
  readonly project?: string
}

export interface ExportedFiles {
  readonly files: readonly TextFile[]
  readonly processes: number
}

export async function exportAll(
  { process_parts: { store } }: ServedEngine,
  { stage, project }: ExportChoice,
): Promise<ExportedFiles> {
  const known = await store.view(stagesIn)
  const of_project = known.filter(
    ({ project_id, project_title }) =>
      project === undefined || project_id === project || project_title === project,
  )
  const named = of_project.filter(
    ({ id, title, short_name }) => stage === undefined || [id, title, short_name].includes(stage),
  )
  const [one, more] = named
  const all = { has_aliases: true, has_variables: true, has_secrets: true, mayRead: () => true }
  let choice: SchemeChoice = { kind: 'folder', id: '0', ...all }
  if (stage !== undefined) {
    if (one === undefined) throw fault('not_possible', `there is no stage ${stage}`)
    if (more !== undefined) throw fault('not_possible', `several are stage ${stage}: give the id`)
    choice = { kind: 'stage', id: one.id, ...all }
  } else if (project !== undefined) {
    if (one?.project_id === undefined) throw fault('not_possible', `there is no project ${project}`)
    if (named.some(({ project_id }) => project_id !== one.project_id)) {
      throw fault('not_possible', `several are project ${project}: give the id`)
    }
    choice = { kind: 'project', id: one.project_id, ...all }
  }
  const { files, definitions } = await schemeFiles(store, choice)
  return { files, processes: definitions.length }
}
