/**
 * Tasks as operators see them, in the command line and on the page: data as JSON text, titles of
 * nodes, and what a task waits for. Parameters with the flag `auto-clear` are shown as `***`, in
 * descriptions of failures too; the stored task keeps them.
 */
import { codeOf } from '../core/faults.ts'
import type { HistoryEntry, Task } from '../core/model.ts'
import type { Engine } from '../engine/api/engine-api.ts'
import type { ProcessDetails } from '../engine/api/process-api.ts'
import type { TargetInput } from '../engine/api/task-api.ts'
import { servedEngine } from '../engine/served-engine.ts'
import type { TaskWait } from '../engine/tasks/waits.ts'
import type { ParamPath } from '../process/compile-params.ts'
import { maskedPaths, maskTask } from './hidden-params.ts'

export type TaskView = Omit<Task, 'data' | 'history'> & {
  /** Where it was asked for. */
  readonly history?: readonly ShownEntry[]
  /** As the present definition has it; absent for a node that is no longer there. */
  readonly node_title?: string
  /** Of a live task that waits. */
  readonly wait?: TaskWait
}

export interface ShownEntry extends HistoryEntry {
  /** As the present definition has it; absent for a node that is no longer there. */
  readonly node_title?: string
}

/** As `Engine.task`; null where there is none. */
export async function showTask(
  engine: Engine,
  { with_history = false, ...target }: TargetInput & { readonly with_history?: boolean },
): Promise<TaskView | null> {
  const process = await engine.processes.show(target.conv_id)
  const task = await engine.task(target)
  if (task === undefined) return null
  const [wait] = await servedEngine(engine).waitsOf([task.obj_id])
  const { history, ...view } = wholeView(task, process, wait)
  return with_history ? { ...view, history } : view
}

/** A task with its history, as the present definition of its process has the nodes. */
export function wholeView(
  task: Task,
  process: Pick<ProcessDetails, 'definition_text' | 'nodes'>,
  wait: TaskWait | undefined,
): TaskView & { readonly history: readonly ShownEntry[] } {
  const shown = shownProcess(process)
  const history = (task.history ?? []).map((entry) => ({ ...entry, ...titleOf(entry, shown) }))
  return { ...viewOf(task, shown, wait), history }
}

/** The tasks without history, each with the titles and hidden parameters of its own process. */
export async function viewsOf(engine: Engine, tasks: readonly Task[]): Promise<TaskView[]> {
  const processes = new Map<string, ShownProcess>()
  for (const { conv_id } of tasks) {
    if (processes.has(conv_id)) continue
    processes.set(conv_id, shownProcess(await engine.processes.show(conv_id)))
  }
  const waits = await servedEngine(engine).waitsOf(tasks.map(({ obj_id }) => obj_id))
  return tasks.map((task, at) =>
    viewOf(task, processes.get(task.conv_id) as ShownProcess, waits[at]),
  )
}

interface ShownProcess {
  readonly hidden: readonly ParamPath[]
  readonly titles: ReadonlyMap<string, string>
}

function shownProcess({
  definition_text,
  nodes,
}: Pick<ProcessDetails, 'definition_text' | 'nodes'>): ShownProcess {
  const titles = new Map(nodes.map(({ id, title }) => [id, title]))
  return { hidden: maskedPaths(definition_text), titles }
}

function titleOf(
  { node_id }: { readonly node_id: string },
  { titles }: ShownProcess,
): { readonly node_title?: string } {
  const node_title = titles.get(node_id)
  return node_title === undefined ? {} : { node_title }
}

function viewOf(task: Task, process: ShownProcess, wait: TaskWait | undefined): TaskView {
  const { obj_id, conv_id, ref, ref_is_number, status, user_id } = task
  const { create_time_ms, change_time_ms, node_id, node_prev_id, trace_id } = task
  const { data_text, status_details } = maskTask(task, process.hidden)
  return {
    obj_id,
    conv_id,
    ref,
    ...(ref_is_number === undefined ? {} : { ref_is_number }),
    status,
    ...(status_details === undefined ? {} : { status_details }),
    user_id,
    create_time_ms,
    change_time_ms,
    node_id,
    node_prev_id,
    data_text,
    ...(trace_id === undefined ? {} : { trace_id }),
    ...titleOf(task, process),
    ...(wait === undefined ? {} : { wait: shownWait(task, process, wait) }),
  }
}

/** The error of the last attempt is masked as the data is. */
function shownWait({ data_text }: Task, { hidden }: ShownProcess, wait: TaskWait): TaskWait {
  if (wait.last_error === undefined) return wait
  const { status_details } = maskTask({ data_text, status_details: wait.last_error }, hidden)
  return status_details === undefined ? wait : { ...wait, last_error: status_details }
}

/** Undefined for a process that was removed, while its ended tasks are kept. */
export async function processOf(
  { processes }: Engine,
  conv_id: string,
): Promise<ProcessDetails | undefined> {
  return processes.show(conv_id).catch((error: unknown) => {
    if (codeOf(error) === 'conv_not_found') return undefined
    throw error
  })
}
