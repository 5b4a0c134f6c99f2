/**
 * The tasks that synchronous requests wait for (wire 1.12): by the token of the answer address and,
 * once the create is durable, by obj_id. The HTTP servers of an engine share one such table, so
 * each of them takes the answers.
 *
 * A task is in the table from before its create until its answer or the end of its last wait. A
 * repeated create waits for the task of the first one. The engine reports ends only while the table
 * has waits.
 */
import type { SyncAnswer } from '../../codec/response-body.ts'
import { is_over } from '../../codec/task-record.ts'
import { nextTurn } from '../../core/clock.ts'
import type { Task } from '../../core/model.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { httpFault } from './fault-response.ts'
import { sync_path } from './path.ts'

export interface SyncWaits {
  /** Throws `overloaded` where `more` waits would exceed `waits_max`. */
  check(more: number, waits_max: number): void
  /** Call it before the create. `onAnswer` is called at most once, never within this call. */
  open(onAnswer: (answer: SyncAnswer) => void): SyncWait
  /** Whether an answer may be posted to the address with this token. */
  isOpen(token: string): boolean
  /** Gives the answer to all requests that wait for it; false if none does. */
  answer(token: string, data_text: string): boolean
}

export interface SyncWait {
  /** 64 lowercase hex digits, the secret of the address. */
  readonly token: string
  /** The create is durable. `same` is the task of the first create where this one is a repeat. */
  onCreated(obj_id: string, same: Task | undefined): void
  /** Ends the wait. */
  close(): void
}

const token_bytes = 32
const address = new RegExp(`${sync_path}([0-9a-f]{64})$`)

interface AwaitedTask {
  token: string
  obj_id: string | undefined
  readonly listeners: Set<(answer: SyncAnswer) => void>
}

const waits_of = new WeakMap<ServedEngine, SyncWaits>()

export function syncWaitsOf(engine: ServedEngine): SyncWaits {
  const known = waits_of.get(engine)
  if (known !== undefined) return known
  const waits = newSyncWaits(engine)
  waits_of.set(engine, waits)
  return waits
}

function newSyncWaits(engine: ServedEngine): SyncWaits {
  const by_token = new Map<string, AwaitedTask>()
  const by_id = new Map<string, AwaitedTask>()
  /** The ends reported in this turn of the event loop; results of creates may still follow. */
  const recent = new Map<string, Task>()
  let waits = 0
  let stopListening: (() => void) | undefined

  function onEnd(task: Task): void {
    const awaited = by_id.get(task.obj_id)
    if (awaited !== undefined) finish(awaited, answerOf(task))
    // It may be the task of a create under way, whose obj_id is not known yet.
    else if (by_id.size < by_token.size) {
      if (recent.size === 0) void nextTurn().then(() => recent.clear())
      recent.set(task.obj_id, task)
    }
  }

  function forget(awaited: AwaitedTask): void {
    by_token.delete(awaited.token)
    if (awaited.obj_id !== undefined) by_id.delete(awaited.obj_id)
  }

  function count(by: 1 | -1): void {
    waits += by
    if (waits > 0) stopListening ??= engine.onEnd(onEnd)
    else {
      stopListening?.()
      stopListening = undefined
    }
  }

  function finish(awaited: AwaitedTask, answer: SyncAnswer): void {
    forget(awaited)
    for (const listener of [...awaited.listeners]) listener(answer)
  }

  /** Takes over the token of the address in the task of the first create. */
  function adopt(awaited: AwaitedTask, same: Task): void {
    const { __callback_url: url } = same.data as Record<string, unknown>
    const token = address.exec(typeof url === 'string' ? url : '')?.[1]
    if (token === undefined || by_token.has(token)) return
    by_token.delete(awaited.token)
    awaited.token = token
    by_token.set(token, awaited)
  }

  return {
    check(more, waits_max) {
      if (waits + more > waits_max) throw httpFault('overloaded', 'too many synchronous requests')
    },
    open(onAnswer) {
      const token = engine.chance.bytes(token_bytes).toString('hex')
      let awaited: AwaitedTask = { token, obj_id: undefined, listeners: new Set() }
      let is_open = true
      const close = (): void => {
        if (!is_open) return
        is_open = false
        awaited.listeners.delete(listener)
        if (awaited.listeners.size === 0) forget(awaited)
        count(-1)
      }
      const listener = (answer: SyncAnswer): void => {
        close()
        onAnswer(answer)
      }
      awaited.listeners.add(listener)
      by_token.set(token, awaited)
      count(1)
      return {
        token,
        close,
        onCreated(obj_id, same) {
          if (!is_open) return
          const others = by_id.get(obj_id)
          if (others !== undefined) {
            by_token.delete(token)
            others.listeners.add(listener)
            awaited = others
            return
          }
          awaited.obj_id = obj_id
          by_id.set(obj_id, awaited)
          const ended = recent.get(obj_id) ?? (same && is_over[same.status] ? same : undefined)
          if (ended !== undefined) finish(awaited, answerOf(ended))
          else if (same !== undefined) adopt(awaited, same)
        },
      }
    },
    isOpen: (token) => by_token.has(token),
    answer(token, data_text) {
      const awaited = by_token.get(token)
      if (awaited !== undefined) finish(awaited, { proc: 'ok', data_text })
      return awaited !== undefined
    },
  }
}

/** The answer of a task that ends or fails before one is posted. */
function answerOf({ status, status_details, data_text }: Task): SyncAnswer {
  if (status === 'processed') return { proc: 'ok', data_text }
  return { proc: 'error', description: status_details?.tag ?? status }
}
