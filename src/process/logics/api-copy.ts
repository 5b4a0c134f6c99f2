/**
 * `api_copy`: makes a task of another process, or of this one (`mode` create), or merges into one
 * that is found by its ref (`mode` modify), and goes on without waiting for it. `is_sync` demands
 * of a modify that the task waits for a callback.
 *
 * The data sent is that of `data`, laid over the whole data of this task where it goes along:
 * `send_parent_data` says so, and where a definition does not have it, `group` `all`.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind, TargetProcess } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted } from '../report.ts'
import { type Expansion, expansionOf } from '../templates/parser.ts'
import {
  type Assignment,
  applyAssignments,
  failedExpansion,
  readAssignments,
  readErrNode,
  readFlag,
} from './assignments.ts'
import { readTargetName, readTargetProcess, type TargetName } from './target.ts'

interface ApiCopy {
  readonly is_modify: boolean
  readonly is_sync: boolean
  readonly sends_all: boolean
  readonly assignments: readonly Assignment[]
  readonly err_node_id: string | undefined
  conv(run: Expansion): TargetProcess | undefined
  readonly ref: TargetName
}

const tags = { overflow: 'copy_task_size_overflow_limit' }

export const apiCopy: LogicKind<ApiCopy> = {
  type: 'api_copy',
  parse(raw, report) {
    const is_modify = readMode(raw, report) === 'modify'
    const has_ref = raw.ref !== undefined && raw.ref !== null && raw.ref !== ''
    if (is_modify && !has_ref) report.mistake('ref is missing, a modify finds its task by it')
    return {
      is_modify,
      is_sync: readFlag(raw, 'is_sync', report),
      sends_all: sendsAll(raw, report),
      assignments: readAssignments(raw, 'data', 'data_type', report),
      err_node_id: readErrNode(raw, report),
      conv: readTargetProcess(raw, report),
      ref: readTargetName(raw, 'ref', report),
    }
  },
  run(
    { is_modify, is_sync, sends_all, assignments, err_node_id, conv: readConv, ref: readRef },
    context,
  ) {
    const run = expansionOf(context)
    const conv = readConv(run)
    const ref = readRef(run)
    const data: JsonObject = sends_all ? { ...objectOf(context.doc) } : {}
    if (!applyAssignments(assignments, run, data) || conv === undefined) {
      return failedExpansion('copy_task', run, context, err_node_id, tags)
    }
    const doc = docOfValue(data)
    if (!is_modify) return { command: 'copy_create', conv, ref, doc, err_node_id }
    if (ref !== undefined) return { command: 'copy_modify', conv, ref, doc, is_sync, err_node_id }
    return {
      ...{ command: 'fail', kind: 'copy_task', error_type: 'software', tag: 'not_found_task' },
      ...{ description: 'not found task', err_node_id },
    }
  },
}

function readMode(raw: JsonObject, report: Report): 'create' | 'modify' {
  const { mode } = raw
  if (mode === 'create' || mode === 'modify') return mode
  if (mode !== undefined && mode !== null && mode !== '') {
    report.mistake(`mode ${quoted(mode)} is neither "create" nor "modify"`)
  }
  return 'create'
}

/** Exports write `group` `all` beside a `send_parent_data` of false, which then counts. */
function sendsAll(raw: JsonObject, report: Report): boolean {
  const { send_parent_data, group } = raw
  if (send_parent_data !== undefined && send_parent_data !== null) {
    return readFlag(raw, 'send_parent_data', report)
  }
  return group === 'all'
}
