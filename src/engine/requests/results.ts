/**
 * Waits for task results (`Engine.result`) until the task ends or fails, a timeout, a signal or the
 * close. No end is missed: the first wait registers for ends and makes everything before durable;
 * each wait then reads its task and is listed within that read. Waits share one registration and
 * timer.
 */
import { setMaxListeners } from 'node:events'
import { is_over } from '../../codec/task-record.ts'
import { keepAlive, newAlarm } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Task } from '../../core/model.ts'
import type { View } from '../../store/store.ts'
import type { ResultOptions } from '../api/task-api.ts'
import type { Parts } from '../transactions/parts.ts'

export interface Results {
  /** `read` returns the task from durable state, or throws. */
  wait(read: (view: View) => Task, options?: ResultOptions): Promise<Task>
  count(): number
  /** Every wait, also later ones, rejects with this fault. */
  close(reason: Fault): void
}

interface Wait {
  readonly resolve: (task: Task) => void
  readonly reject: (reason: unknown) => void
  readonly signal: AbortSignal | undefined
  readonly onAbort: (() => void) | undefined
  readonly until_ms: number
  /** Known once the task is found live. */
  obj_id: string | undefined
}

const look_ms_min = 10

/** `onEnd` calls its listener for each task that ends or fails, until unsubscribed. */
export function newResults(
  { store, clock, limits, transactions }: Parts,
  onEnd: (listener: (task: Task) => void) => () => void,
): Results {
  const waits = new Set<Wait>()
  const by_id = new Map<string, Set<Wait>>()
  let stopListening = (): void => {}
  /** Keeps a program alive that only waits for a result. */
  let release = (): void => {}
  let before: Promise<void> = Promise.resolve()
  const alarm = newAlarm(clock, endAllLate)
  let closed: Fault | undefined

  function add(wait: Wait): void {
    waits.add(wait)
    if (wait.signal !== undefined) {
      // Any number of waits may share a signal; node would warn of a leak.
      setMaxListeners(0, wait.signal)
      wait.signal.addEventListener('abort', wait.onAbort as () => void)
    }
    if (waits.size === 1) {
      stopListening = onEnd(endWith)
      release = keepAlive()
      before = transactions.update(() => {}).catch(() => {})
    }
  }

  function remove(wait: Wait): boolean {
    if (!waits.delete(wait)) return false
    wait.signal?.removeEventListener('abort', wait.onAbort as () => void)
    const same = wait.obj_id === undefined ? undefined : by_id.get(wait.obj_id)
    if (same?.delete(wait) && same.size === 0) by_id.delete(wait.obj_id as string)
    if (waits.size === 0) {
      stopListening()
      release()
      alarm.clear()
    }
    return true
  }

  function list(wait: Wait, obj_id: string): void {
    const same = by_id.get(obj_id)
    wait.obj_id = obj_id
    if (wait.until_ms <= clock.now_ms()) endLate(wait)
    else if (same === undefined) by_id.set(obj_id, new Set([wait]))
    else same.add(wait)
  }

  function endLate(wait: Wait): void {
    if (remove(wait)) wait.reject(fault('result_timeout'))
  }

  function endWith(task: Task): void {
    for (const wait of by_id.get(task.obj_id) ?? []) if (remove(wait)) wait.resolve(task)
  }

  function endAllLate(): void {
    const now_ms = clock.now_ms()
    let next_ms = Number.POSITIVE_INFINITY
    for (const wait of waits) {
      if (wait.until_ms > now_ms) next_ms = Math.min(next_ms, wait.until_ms)
      else endLate(wait)
    }
    if (next_ms < Number.POSITIVE_INFINITY) alarm.ringBy(Math.max(next_ms, now_ms + look_ms_min))
  }

  async function look(wait: Wait, read: (view: View) => Task): Promise<void> {
    try {
      await before
      await store.view((view) => {
        if (!waits.has(wait)) return
        const task = read(view)
        if (!is_over[task.status]) list(wait, task.obj_id)
        else if (remove(wait)) wait.resolve(task)
      })
    } catch (error) {
      if (remove(wait)) wait.reject(error)
    }
  }

  return {
    wait: (read, { timeout_ms = Number.POSITIVE_INFINITY, signal } = {}) =>
      new Promise((resolve, reject) => {
        if (typeof timeout_ms !== 'number' || !(timeout_ms >= 0)) {
          throw new RangeError(`timeout_ms: ${String(timeout_ms)} is no number from 0`)
        }
        signal?.throwIfAborted()
        if (closed !== undefined) throw closed
        if (waits.size >= limits.results_waiting_max)
          throw fault('overloaded', 'too many waits for results')
        const onAbort =
          signal === undefined ? undefined : () => void (remove(wait) && reject(signal.reason))
        const until_ms = clock.now_ms() + timeout_ms
        const wait: Wait = { resolve, reject, signal, onAbort, until_ms, obj_id: undefined }
        add(wait)
        if (timeout_ms > 0) alarm.ringBy(until_ms)
        void look(wait, read)
      }),
    count: () => waits.size,
    close(reason) {
      closed ??= reason
      for (const wait of waits) if (remove(wait)) wait.reject(closed)
    },
  }
}
