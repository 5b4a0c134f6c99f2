/** The evaluation context of a task: all that a logic may read, from one transaction or view. */
import { objectOf } from '../../codec/json.ts'
import { sumKey } from '../../codec/keys.ts'
import { decodeSum, grant_bits } from '../../codec/records.ts'
import { is_live, type TaskRecord } from '../../codec/task-record.ts'
import type { JsonValue } from '../../core/model.ts'
import type { EvaluationContext, RootName, TargetProcess } from '../../process/logic.ts'
import type { Can } from '../api/process-api.ts'
import type { Process } from '../transactions/catalog.ts'
import { convIdFrom } from '../transactions/stages.ts'
import type { ReadContext } from '../transactions/transaction.ts'
import { readableTask, taskIdOfRef } from './task-store.ts'

/** Valid as long as `context`; shows the task as of each read. */
export function evaluationContextOf(
  context: ReadContext,
  process: Process,
  task: TaskRecord,
): EvaluationContext {
  const evaluation = Object.create(context_members) as TaskContext
  evaluation.context = context
  evaluation.process = process
  evaluation.task = task
  return evaluation
}

interface TaskContext extends EvaluationContext {
  context: ReadContext
  process: Process
  task: TaskRecord
}

/** A shared prototype keeps contexts small: each advance makes one. */
const context_members: EvaluationContext & ThisType<TaskContext> = {
  get doc() {
    return this.task.doc
  },
  get now_ms() {
    return this.context.now_ms
  },
  get steps() {
    return this.context.steps
  },
  get task_bytes_max() {
    return this.context.engine.limits.task_bytes_max
  },
  fraction() {
    return this.context.engine.fraction()
  },
  rootField(name) {
    return rootOf(this.process, this.task, name)
  },
  canRead(conv) {
    return processOf(this, conv, 'show') !== undefined
  },
  taskData(conv, ref) {
    const { context, task } = this
    const target = processOf(this, conv, 'show')
    if (target === undefined) return undefined
    if (target.conv_id === task.conv_id && task.ref?.text === ref) return objectOf(task.doc)
    const obj_id = taskIdOfRef(context.view, target.conv_id, ref)
    const found = obj_id === undefined ? undefined : readableTask(context.view, obj_id)
    return found && is_live[found.task.status] ? objectOf(found.task.doc) : undefined
  },
  nodeCount(node_id, conv) {
    const process = processOf(this, conv, 'show')
    return process && this.context.nodeCount(process.conv_id, node_id)
  },
  nodeSum(node_id, name, conv) {
    const process = processOf(this, conv, 'show')
    if (process === undefined) return undefined
    const sum = (of: string) => this.context.view.get(sumKey(process.conv_id, node_id, of))
    const by_id = process.graph.nodes.get(node_id)?.sum_names.get(name)
    const bytes = sum(name) ?? (by_id === undefined ? undefined : sum(by_id))
    return bytes === undefined ? undefined : decodeSum(bytes)
  },
  callbackUrl(node_id, conv) {
    // The address lets its holder modify tasks.
    const process = processOf(this, conv, 'modify')
    return process && this.context.engine.callbackUrl(process, node_id)
  },
  variable(name) {
    const { context, process } = this
    return context.engine.variables.of(context.view, name, process.record.stage_id)
  },
}

/** The task's own process, or one to which it has the right. */
function processOf(
  { context, process, task }: TaskContext,
  conv: TargetProcess | undefined,
  can: Can,
): Process | undefined {
  return conv === undefined ? process : resolveTarget(context, process, task, conv, can)
}

/**
 * The target process of a logic; undefined if unknown or without the right. A conv_id in the
 * definition has the definition's right. One from a template needs a grant of the task's user or,
 * without a user, a definition that names it. Resolves `@name`.
 */
export function resolveTarget(
  context: ReadContext,
  process: Process,
  task: TaskRecord,
  target: TargetProcess,
  can: Can,
): Process | undefined {
  const { view } = context
  const { stage_id } = process.record
  const conv_id = convIdFrom(view, target.conv_id, stage_id)
  const covered =
    !target.is_from_template ||
    (task.user_id === undefined
      ? conv_id === process.conv_id ||
        process.graph.target_conv_ids.some((named) => convIdFrom(view, named, stage_id) === conv_id)
      : (context.grantBits(task.user_id, conv_id) & grant_bits[can]) !== 0)
  return covered ? context.process(conv_id) : undefined
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
