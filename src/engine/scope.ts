/**
 * What a logic may look at, made from a task and what surrounds it. Reads only, and from one
 * transaction or one view alone.
 */
import { objectOf } from '../bytes/json.ts'
import { grantKey, sumKey } from '../bytes/keys.ts'
import { decodeCount, grant_bits } from '../bytes/records.ts'
import type { TaskRecord } from '../bytes/task-record.ts'
import type { ConvReach, RootName, Scope } from '../logic/logic.ts'
import type { JsonValue } from '../words/model.ts'
import type { Can } from './api.ts'
import type { Process } from './catalog.ts'
import { holderOf, loadTask } from './task-file.ts'
import type { Reader } from './work.ts'

export function scopeOf(reader: Reader, process: Process, task: TaskRecord): Scope {
  const { shared, view } = reader
  return {
    get doc() {
      return task.doc
    },
    now_ms: reader.now_ms,
    fraction: shared.fraction,
    root: (name) => rootOf(process, task, name),
    task_bytes_max: shared.limits.task_bytes_max,
    taskData(conv, ref) {
      if (reachOf(reader, process, task, conv, 'show') === undefined) return undefined
      if (conv.conv_id === task.conv_id && task.ref?.text === ref) return objectOf(task.doc)
      const obj_id = holderOf(view, conv.conv_id, ref)
      const found = obj_id === undefined ? undefined : loadTask(view, obj_id)
      return found === undefined || found === 'damaged' ? undefined : objectOf(found.task.doc)
    },
    nodeCount: (node_id) => reader.nodeCount(process.conv_id, node_id),
    nodeSum(node_id, name) {
      const bytes = view.get(sumKey(process.conv_id, node_id, name))
      return bytes === undefined ? undefined : decodeCount(bytes)
    },
    variable: (name) =>
      Object.hasOwn(shared.variables, name) ? shared.variables[name] : undefined,
  }
}

/**
 * The process a logic reaches, undefined where there is none or its right does not cover it: a
 * conv_id of the definition by the definition's right, one of a template by a grant of the task's
 * user, or, for a task without a user, where the definition lists it.
 */
export function reachOf(
  reader: Reader,
  process: Process,
  task: TaskRecord,
  { conv_id, by_template }: ConvReach,
  can: Can,
): Process | undefined {
  const covered =
    !by_template ||
    (task.user_id === undefined
      ? conv_id === process.conv_id || process.graph.reaches.includes(conv_id)
      : ((reader.view.get(grantKey(task.user_id, conv_id))?.[0] ?? 0) & grant_bits[can]) !== 0)
  return covered ? reader.process(conv_id) : undefined
}

function rootOf(process: Process, task: TaskRecord, name: RootName): JsonValue | undefined {
  switch (name) {
    case 'task_id':
      return task.obj_id
    case 'ref':
      return task.ref?.text
    case 'conv_id':
      return digitsAsNumber(task.conv_id)
    case 'node_id':
      return task.node_id
    case 'prev_node_id':
      return task.node_prev_id
    case 'node_name':
      return process.graph.nodes.get(task.node_id)?.title
    case 'prev_node_name':
      return process.graph.nodes.get(task.node_prev_id)?.title
    case 'status':
      return task.status
    case 'create_time':
      return Math.floor(task.create_ms / 1000)
    case 'change_time':
      return Math.floor(task.change_ms / 1000)
    case 'end_time':
      return undefined
    case 'user_id':
      return task.user_id === undefined ? undefined : digitsAsNumber(task.user_id)
  }
}

function digitsAsNumber(id: string): JsonValue {
  const number = Number(id)
  return String(number) === id && Number.isSafeInteger(number) ? number : id
}
