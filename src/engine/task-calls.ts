/**
 * The calls that apply ops, read tasks or change them. Embedders pass plain values, parsed here,
 * and may use all tasks; servers pass typed ops and a caller with rights.
 */
import { isOp, parseOp, parseTaskOp } from '../codec/op.ts'
import { defined } from '../core/defined.ts'
import { fault } from '../core/faults.ts'
import type { Caller, Op, OpResult, OpType, ShowOp } from '../core/model.ts'
import type { View } from '../store/store.ts'
import type { ActionResult, TargetInput } from './api/task-api.ts'
import type { Results } from './requests/results.ts'
import type { Submission } from './requests/submission.ts'
import type { TracedOrder } from './requests/traces.ts'
import { newBulkJobs } from './search/bulk.ts'
import { countTasks, listTasks } from './search/search.ts'
import type { ServedEngine } from './served-engine.ts'
import { named, readTask, requireRight, taskInView } from './tasks/ops.ts'
import { cancelTask, moveTask, retryTask } from './tasks/task-actions.ts'
import { loadTask } from './tasks/task-store.ts'
import { viewTask } from './tasks/task-view.ts'
import { waitsOf } from './tasks/waits.ts'
import type { Parts } from './transactions/parts.ts'
import { newReadContext, type ReadContext, type Transaction } from './transactions/transaction.ts'

export type TaskCalls = Pick<
  ServedEngine,
  | 'apply'
  | 'create'
  | 'modify'
  | 'task'
  | 'result'
  | 'tasks'
  | 'submit'
  | 'submitOthers'
  | 'cancelTask'
  | 'retryTask'
  | 'listTasks'
  | 'countTasks'
  | 'awaitResult'
  | 'waitsOf'
  | 'taskById'
>

/** `has_background`: whether this engine does jobs and fires timers. */
export function newTaskCalls(
  parts: Parts,
  { submit, change, run }: Submission,
  results: Results,
  has_background: boolean,
): TaskCalls {
  const { store, limits, clock, engine } = parts
  const bulk_jobs = newBulkJobs(parts)

  const readsOf = (view: View): ReadContext => newReadContext(view, engine, clock.now_ms())

  /** Returns the parser's throw as a rejection; an async function would add two promises. */
  function submitParsed(parse: () => (Op | OpResult)[], caller: Caller = {}): Promise<OpResult[]> {
    try {
      return submit(parse(), caller, true)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  const submitOne = (type: OpType, raw: object, caller?: Caller): Promise<OpResult> =>
    submitParsed(() => [parseTaskOp(type, raw, limits)], caller).then(firstOf)

  function targetOp(target: TargetInput): ShowOp {
    const op = parseTaskOp('show', target, limits)
    if (isOp(op)) return op as ShowOp
    throw new TypeError(`${op.key}: ${op.description}`)
  }

  async function act(
    name: TracedOrder['name'],
    target: TargetInput,
    action: (tx: Transaction, op: ShowOp) => ActionResult,
  ): Promise<ActionResult> {
    const op = targetOp(target)
    return run({ name, conv_id: op.conv_id }, {}, (tx) => action(tx, named(tx.store, op)))
  }

  const awaitResult: TaskCalls['awaitResult'] = async (op, caller, options) => {
    const task = await results.wait((view) => readTask(readsOf(view), op, caller), options)
    // The right may have been removed meanwhile.
    if (caller.user !== undefined) {
      await store.view((view) => requireRight(readsOf(view), op, caller))
    }
    return task
  }

  return {
    apply: (ops, caller) => submitParsed(() => ops.map((raw) => parseOp(raw, limits)), caller),
    create: (op, caller) => submitOne('create', op, caller),
    modify: (op, caller) => submitOne('modify', op, caller),
    task: (target) => store.view((view) => taskInView(view, targetOp(target))),
    result: async (target, options) => awaitResult(targetOp(target), {}, options),
    tasks: {
      list: (query = {}) => listTasks(parts, query),
      count: (filter = {}) => countTasks(parts, filter),
      retry: (target, node_id) => act('retry', target, (tx, op) => retryTask(tx, op, node_id)),
      move: (target, node_id) => act('move', target, (tx, op) => moveTask(tx, op, node_id)),
      cancel: (target) => act('cancel', target, cancelTask),
      bulk: bulk_jobs.start,
      resumeBulk: bulk_jobs.resume,
      bulkJobs: bulk_jobs.list,
    },
    submit,
    submitOthers: (ops, caller, others) => submit(ops, caller, false, others),
    cancelTask: (op, caller) =>
      change('cancel', op, caller, (tx) => cancelTask(tx, named(tx.store, op), caller)),
    retryTask: (op, caller) =>
      change('retry', op, caller, (tx) => retryTask(tx, op, op.node_id, caller)),
    listTasks: (query, caller) => listTasks(parts, query, caller),
    countTasks: (filter, caller) => countTasks(parts, filter, caller),
    awaitResult,
    taskById: (obj_id) =>
      store.view((view) => {
        const found = loadTask(view, obj_id)
        if (found === undefined) return undefined
        if (found === 'damaged') throw fault('task_damaged', `the record of ${obj_id} is damaged`)
        const { caller_id } = found.task
        return { task: viewTask(found.task), ...defined({ caller_id }) }
      }),
    waitsOf: (obj_ids) => store.view((view) => waitsOf(readsOf(view), obj_ids, has_background)),
  }
}

const firstOf = ([result]: OpResult[]): OpResult => result as OpResult
