/**
 * Notes the runs of traced tasks in a transaction, one per move, failure or end; traces.ts makes
 * spans of them after the commit, because a transaction may run again. A run has its last moves, a
 * transaction its first runs.
 */
import { is_over, type TaskRecord } from '../../codec/task-record.ts'
import { type Attributes, isSampled, type TraceContext } from '../../core/tracing.ts'
import type { Process } from './catalog.ts'

export interface TaskRun {
  readonly trace: TraceContext
  /** The op or job that made the task run, perhaps of another trace. */
  readonly cause: TraceContext | undefined
  readonly began_ms: number
  readonly ended_ms: number
  readonly moves: readonly TaskMove[]
  readonly attributes: Attributes
  readonly error: string | undefined
}

export interface TaskMove {
  readonly at_ms: number
  readonly attributes: Attributes
}

export interface TaskRuns {
  begin(): void
  onMove(task: TaskRecord): void
  onSave(task: TaskRecord, cause: TraceContext | undefined): void
  end(): readonly TaskRun[] | undefined
}

const moves_max = 32
const runs_max = 256
const title_chars_max = 100

interface OpenRun {
  readonly began_ms: number
  readonly moves: TaskMove[]
  count: number
}

export function newTaskRuns(processOf: (conv_id: string) => Process | undefined): TaskRuns {
  const open = new Map<TaskRecord, OpenRun>()
  let runs: TaskRun[] = []

  return {
    begin() {
      open.clear()
      runs = []
    },
    onMove(task) {
      if (!isSampled(task.trace) || runs.length >= runs_max) return
      const at_ms = performance.now()
      let run = open.get(task)
      if (run === undefined) {
        run = { began_ms: at_ms, moves: [], count: 0 }
        open.set(task, run)
      }
      run.count++
      if (run.moves.length === moves_max) run.moves.shift()
      const { title = '' } = processOf(task.conv_id)?.graph.nodes.get(task.node_id) ?? {}
      const node_title = title.slice(0, title_chars_max).toWellFormed()
      const attributes = { 'conveyor.node_id': task.node_id, 'conveyor.node_title': node_title }
      run.moves.push({ at_ms, attributes })
    },
    onSave(task, cause) {
      const { trace, status, details } = task
      if (!isSampled(trace) || runs.length >= runs_max) return
      const run = open.get(task)
      if (run === undefined && !is_over[status]) return
      open.delete(task)
      const ended_ms = performance.now()
      runs.push({
        ...{ trace, cause, began_ms: run?.began_ms ?? ended_ms, ended_ms },
        moves: run?.moves ?? [],
        attributes: {
          'conveyor.conv_id': task.conv_id,
          'conveyor.obj_id': task.obj_id,
          'conveyor.node_id': task.node_id,
          'conveyor.status': status,
          'conveyor.moves': run?.count ?? 0,
        },
        error: details?.tag,
      })
    },
    end: () => (runs.length === 0 ? undefined : runs),
  }
}
