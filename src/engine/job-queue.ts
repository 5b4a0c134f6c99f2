/**
 * Which work may begin next, of all that the store lists (family outbox).
 *
 * Work is done in lanes, each with room for so many at once: a handler, the code sandbox, one
 * logic's calls, the calls to one host. A piece may need a place in several. Each listed piece is
 * looked at once: the look goes on where the last one ended, and what finds its lane full is put by
 * in memory, to be taken up as soon as a place of that lane is free. So a lane with a long line of
 * work, or one whose handler nobody has registered, holds up no other.
 *
 * What is put by is a hint and no truth: each piece is read from the store again before it begins.
 */
import { after, type Key, keysOfType, outboxKey, outboxOfKey } from '../codec/keys.ts'
import type { Task } from '../core/model.ts'
import type { Command, JobOrder } from '../process/logic.ts'
import { evaluationContextOf } from './evaluation-context.ts'
import { loadTask } from './task-store.ts'
import { viewTask } from './task-view.ts'
import type { ReadContext } from './transaction-context.ts'
import { migrationTarget } from './waits.ts'

/** A task that rests for work, as it was when its order was made. */
export interface DueJob {
  readonly obj_id: string
  readonly visit: number
  readonly logic_at: number
  readonly at_ms: number
  readonly attempts: number
  /** `none` where nothing need be done: the task makes `command`, or begins its node anew. */
  readonly order: JobOrder | { readonly job: 'none'; readonly command: Command | undefined }
  readonly task: Task
  /** Of the logic, which a new definition may have put another in the place of. */
  readonly type: string | undefined
  /** conv_id, node_id and the logic's number. */
  readonly place: string
}

export interface QueueScan {
  readonly due: readonly DueJob[]
  /** When the next piece may begin that may not yet. */
  readonly next_ms: number | undefined
  /** Whether there is more to look at now. */
  readonly more: boolean
}

export interface JobQueue {
  /** Up to `room` pieces that may begin; each must then begin or be put by. */
  look(context: ReadContext, now_ms: number, room: number): QueueScan
  /** This lane of it is full. True where another piece may now begin in its stead. */
  putBy(taken: DueJob, lane: string): boolean
  /** Its places in its lanes are free. */
  free(taken: DueJob): void
  /** It is no longer under way. */
  end(obj_id: string): void
  /** A commit listed work that may begin at this time. */
  note(at_ms: number): void
  /** Whatever was put by may find room now. */
  reset(): void
}

export interface JobQueueOptions {
  lanesOf(taken: DueJob): readonly string[]
  isUnderWay(obj_id: string): boolean
  /** A piece could not be looked at: a bug. It is left alone until the list is reset. */
  onError(error: unknown): void
}

/** Keys looked at in one view of the store. */
const slice_keys = 256
/** Beyond so many pieces put by, the look stops until some have begun. */
const put_by_max = 100_000

const span = keysOfType('outbox')

export function newJobQueue({ lanesOf, isUnderWay, onError }: JobQueueOptions): JobQueue {
  let from: Key = span.from
  /** Lane → obj_id → the time it is listed under; oldest first. */
  const lanes = new Map<string, Map<string, number>>()
  const put_by = new Map<string, number>()
  /** Places that became free since the last look. */
  const freed = new Map<string, number>()
  /** Listed anew before its last piece had ended: obj_id → the time it is listed under. */
  const passed = new Map<string, number>()

  function note(at_ms: number): void {
    const key = outboxKey(at_ms, '')
    if (key < from) from = key
  }

  function putBy(taken: DueJob, lane: string): void {
    const line = lanes.get(lane) ?? new Map<string, number>()
    line.set(taken.obj_id, taken.at_ms)
    lanes.set(lane, line)
    put_by.set(taken.obj_id, taken.at_ms)
  }

  /** Takes up what was put by, as many of each lane as it has places that became free. */
  function lookAtFreed(context: ReadContext, now_ms: number, room: number, due: DueJob[]): boolean {
    let looked = 0
    for (const [lane, places] of freed) {
      let left = places
      for (const obj_id of lanes.get(lane)?.keys() ?? []) {
        if (left === 0) break
        if (due.length >= room || looked++ >= slice_keys) {
          freed.set(lane, left)
          return true
        }
        lanes.get(lane)?.delete(obj_id)
        const at_ms = put_by.get(obj_id)
        put_by.delete(obj_id)
        // The clock was set back: it may begin when its time comes again.
        if (at_ms !== undefined && at_ms > now_ms) note(at_ms)
        const taken = isUnderWay(obj_id) ? undefined : take(context, obj_id, now_ms)
        if (taken === undefined) continue
        due.push(taken)
        if (lanesOf(taken).includes(lane)) left--
      }
      if (lanes.get(lane)?.size === 0) lanes.delete(lane)
      freed.delete(lane)
    }
    return false
  }

  function lookOn(context: ReadContext, now_ms: number, room: number, due: DueJob[]): boolean {
    const to = outboxKey(now_ms + 1, '')
    if (from >= to || put_by.size >= put_by_max) return false
    const keys = context.view.scan({ from, to, limit: slice_keys })
    for (const { key } of keys) {
      if (due.length >= room) return true
      from = after(key)
      const { obj_id, ms } = outboxOfKey(key)
      if (put_by.get(obj_id) === ms) continue
      if (isUnderWay(obj_id)) {
        passed.set(obj_id, ms)
        continue
      }
      const taken = take(context, obj_id, now_ms)
      if (taken === undefined) continue
      const waited_for = lanesOf(taken).find((lane) => lanes.has(lane))
      if (waited_for === undefined) due.push(taken)
      else putBy(taken, waited_for)
    }
    return keys.length === slice_keys
  }

  function take(context: ReadContext, obj_id: string, now_ms: number): DueJob | undefined {
    try {
      return takeWork(context, obj_id, now_ms)
    } catch (error) {
      onError(error)
      return undefined
    }
  }

  /** A place of a lane is free for the next in its line. */
  function credit(lane: string): boolean {
    if (!lanes.has(lane)) return false
    freed.set(lane, (freed.get(lane) ?? 0) + 1)
    return true
  }

  return {
    look(context, now_ms, room) {
      const due: DueJob[] = []
      const more_freed = lookAtFreed(context, now_ms, room, due)
      const more_listed = lookOn(context, now_ms, room, due)
      const [next] = context.view.scan({ from: outboxKey(now_ms + 1, ''), to: span.to, limit: 1 })
      return {
        due,
        next_ms: next && outboxOfKey(next.key).ms,
        more: more_freed || more_listed,
      }
    },
    putBy(taken, full) {
      putBy(taken, full)
      // It may have come with a place of another lane, which it leaves to the next there.
      const others = lanesOf(taken).filter((lane) => lane !== full)
      return others.filter(credit).length > 0
    },
    free(taken) {
      for (const lane of lanesOf(taken)) credit(lane)
    },
    end(obj_id) {
      const at_ms = passed.get(obj_id)
      passed.delete(obj_id)
      if (at_ms !== undefined) note(at_ms)
    },
    note,
    reset() {
      from = span.from
      lanes.clear()
      put_by.clear()
      freed.clear()
    },
  }
}

/**
 * The piece of work a task rests for, where it may begin now. Undefined also where the process is
 * paused, the task is damaged or its node is gone: all of them stay listed.
 */
function takeWork(context: ReadContext, obj_id: string, now_ms: number): DueJob | undefined {
  const draft = loadTask(context.view, obj_id)
  if (draft === undefined || draft === 'damaged') return undefined
  const { task } = draft
  const { visit, logic_at, at_ms, attempts, conv_id, node_id } = task
  if (task.wait !== 'work' || at_ms > now_ms) return undefined
  const process = context.process(conv_id)
  if (process === undefined || process.head.status === 'paused') return undefined
  if (migrationTarget(process, task) !== undefined) return undefined
  const logic = process.graph.nodes.get(node_id)?.logics[logic_at]
  const made = logic?.job?.order(evaluationContextOf(context, process, task))
  const order = made !== undefined && 'job' in made ? made : { job: 'none' as const, command: made }
  const place = `${conv_id} ${node_id} ${logic_at}`
  const type = logic?.type
  return { obj_id, visit, logic_at, at_ms, attempts, order, task: viewTask(task), place, type }
}
