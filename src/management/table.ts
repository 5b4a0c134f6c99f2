/**
 * The table of ops on other objects than tasks, and of the one op on tasks that is for editors. An
 * object without a row is none of this service and is refused as `bad object`; another type of an
 * object with a row, as `bad type`.
 */
import type { JsonObject } from '../core/model.ts'
import type { Act } from './act.ts'
import * as aliases from './aliases.ts'
import type { Answer } from './answers.ts'
import * as changing from './changing.ts'
import * as commits from './commits.ts'
import { downloadScheme } from './downloads.ts'
import * as edits from './draft-edits.ts'
import * as folders from './folders.ts'
import * as projects from './projects.ts'
import * as reading from './reading.ts'
import { countMoves, showStat } from './statistics.ts'
import * as tasks from './tasks.ts'
import { getStatistics } from './upload-statistics.ts'
import { prepareUpload, uploadScheme } from './uploads.ts'
import * as variables from './variables.ts'
import * as webhooks from './webhooks.ts'

export interface Row {
  /** Its repeat is applied again, because it changes nothing. */
  readonly is_read?: true
  /** The repeat of one that was refused is applied again: its user may have mended the cause. */
  readonly is_tried_again?: true
  /** It may need the secret of addresses. */
  readonly needs_addresses?: true
  /** A secret that the op may store, to be encrypted before the transaction. */
  secretIn?(op: JsonObject): string | undefined
  run(act: Act): Answer
  /** What it reads before the transaction. */
  readonly prepare?: typeof prepareUpload
  /** What it compiles before the transaction, by process. */
  readonly compileAhead?: typeof commits.compileAhead
}

const read = (run: Row['run']): Row => ({ is_read: true, run })
const change = (run: Row['run']): Row => ({ run })
const address = (run: Row['run']): Row => ({ run, needs_addresses: true })

const table: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  conv: {
    list: read(reading.listConv),
    show: read(reading.showConv),
    create: change(changing.createConv),
    modify: change(changing.modifyConv),
    delete: change(changing.deleteConv),
    link: change(changing.linkConv),
    favorite: read(reading.favoriteConv),
  },
  node: {
    show: read(reading.showNode),
    list: read(tasks.listNode),
    create: change(edits.createNode),
    modify: change(edits.modifyNode),
    delete: change(edits.deleteNode),
  },
  task: { delete: change(tasks.deleteTask) },
  stat: { show: { run: showStat, is_read: true, prepare: countMoves } },
  task_history: { list: read(tasks.listTaskHistory) },
  nodes: { list: read(reading.listNodes) },
  conv_params: { list: read(reading.listConvParams), modify: change(edits.modifyConvParams) },
  obj_scheme: {
    get: read(reading.getScheme),
    check: read(commits.checkScheme),
    create: { run: uploadScheme, needs_addresses: true, prepare: prepareUpload },
    validate: { run: uploadScheme, is_read: true, prepare: prepareUpload },
    download: { run: downloadScheme, is_read: true, needs_addresses: true },
  },
  statistics: { get: read(getStatistics) },
  commits: { list: read(commits.listCommits), delete: change(commits.deleteCommits) },
  commit: {
    show: read(commits.showCommit),
    delete: change(commits.deleteCommits),
    confirm: {
      run: commits.confirmCommit,
      needs_addresses: true,
      is_tried_again: true,
      compileAhead: commits.compileAhead,
    },
  },
  api_code: {
    get: read(reading.getApiCode),
    load: read(changing.compileApiCode),
    compile: read(changing.compileApiCode),
  },
  callback_hash: {
    get: read(webhooks.getCallbackHash),
    create: address(webhooks.createCallbackHash),
    modify: address(webhooks.modifyCallbackHash),
    delete: change(webhooks.deleteCallbackHash),
  },
  folder: {
    list: read(folders.listFolder),
    show: read(folders.showFolder),
    link: read(folders.linkFolder),
    create: read(folders.noFolders),
    modify: read(folders.noFolders),
    delete: read(folders.noFolders),
  },
  aliases: { list: read(aliases.listAliases) },
  alias: {
    list: read(aliases.listAliases),
    show: read(aliases.showAlias),
    create: change(aliases.createAlias),
    modify: change(aliases.modifyAlias),
    upsert: change(aliases.upsertAlias),
    link: change(aliases.linkAlias),
    delete: change(aliases.deleteAlias),
  },
  env_var: {
    list: read(variables.listVariables),
    create: { run: variables.createVariable, secretIn: variables.secretOfNew },
    modify: { run: variables.modifyVariable, secretIn: variables.secretIn },
    delete: change(variables.deleteVariable),
  },
  company: { list: read(folders.listCompany) },
  projects: { list: read(projects.listProjects) },
  project: { list: read(projects.listStages), show: read(projects.showProject) },
  stage: { show: read(projects.showStage) },
}

/** Undefined for an object that this service does not have. */
export function rowsOf(obj: string): Readonly<Record<string, Row>> | undefined {
  return Object.hasOwn(table, obj) ? table[obj] : undefined
}

export function rowIn(rows: Readonly<Record<string, Row>>, type: unknown): Row | undefined {
  return typeof type === 'string' && Object.hasOwn(rows, type) ? rows[type] : undefined
}
