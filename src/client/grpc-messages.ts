/**
 * Ops to the messages of the proto, and results back. Data is the same JSON text either way.
 */
import type { Op } from '../server/grpc/generated/conveyor/v1/Op.ts'
import type { OpResult__Output } from '../server/grpc/generated/conveyor/v1/OpResult.ts'
import type { Task__Output } from '../server/grpc/generated/conveyor/v1/Task.ts'
import type { ClientResult, ClientTask } from './api.ts'
import type { SentOp } from './sent-op.ts'
import { taskWith } from './task.ts'

export function messageOf(op: SentOp): Op {
  const { type, id = '', conv_id, ref, node_id = '', is_sync } = op
  const data_json = Buffer.from(op.data_text)
  const named = ref === undefined ? {} : { ref }
  // With both, obj_id decides (wire 1.1), and a message holds one.
  const target = op.obj_id === undefined ? named : { obj_id: op.obj_id }
  if (type === 'create') return { id, create: { conv_id, ...named, data_json } }
  if (type === 'modify') return { id, modify: { conv_id, ...target, data_json, is_sync, node_id } }
  return { id, show: { conv_id, ...target } }
}

export function resultOf(result: OpResult__Output, op: SentOp): ClientResult {
  const { ref, obj_id, proc, description, task } = result
  return {
    ...(op.id === undefined ? {} : { id: op.id }),
    ref: ref ?? null,
    ...(obj_id === '' ? {} : { obj_id }),
    proc: proc as ClientResult['proc'],
    ...(proc === 'ok' ? {} : { description }),
    ...(task === null ? {} : { task: taskOf(task) }),
  }
}

function taskOf(task: Task__Output): ClientTask {
  return taskWith({
    obj_id: task.obj_id,
    conv_id: task.conv_id,
    ref: task.ref ?? null,
    status: task.status as ClientTask['status'],
    user_id: task.user_id === '' ? null : task.user_id,
    create_time_ms: Number(task.create_time_ms),
    change_time_ms: Number(task.change_time_ms),
    node_id: task.node_id,
    node_prev_id: task.node_prev_id,
    dataText: Buffer.from(task.data_json).toString('utf8'),
  })
}
