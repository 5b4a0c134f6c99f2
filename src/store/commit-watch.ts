/**
 * Tells of slow commits: of each that took too long, and, once, of one that is still under way by
 * then, because a disk that hangs ends no commit.
 *
 * A single timer looks at whatever is under way, so a commit sets none of its own.
 */
import { systemClock } from '../core/clock.ts'
import type { Tell } from '../core/events.ts'
import type { ChangeBuffer } from './change-buffer.ts'

export interface CommitWatch {
  began(now_ms: number, changes: ChangeBuffer): void
  /** `write_ms` of it were the write alone. */
  ended(now_ms: number, write_ms: number): void
}

export function newCommitWatch(tell: Tell, slow_commit_ms: number): CommitWatch {
  let under_way: ChangeBuffer | undefined
  let began_ms = 0
  let is_armed = false

  function arm(wait_ms: number): void {
    is_armed = true
    systemClock.wake_at(systemClock.now_ms() + wait_ms, look)
  }

  function look(): void {
    is_armed = false
    if (under_way === undefined) return
    const ms = performance.now() - began_ms
    if (ms < slow_commit_ms) arm(slow_commit_ms - ms)
    else tellSlow(under_way, { ms: Math.round(ms), is_under_way: true })
  }

  function tellSlow(changes: ChangeBuffer, fields: Record<string, number | boolean>): void {
    tell('slow_commit', { ...fields, changes: changes.size, bytes: changes.bytes() })
  }

  return {
    began(now_ms, changes) {
      under_way = changes
      began_ms = now_ms
      if (!is_armed) arm(slow_commit_ms)
    },
    ended(now_ms, write_ms) {
      const ms = now_ms - began_ms
      if (ms > slow_commit_ms && under_way !== undefined) {
        tellSlow(under_way, { ms: Math.round(ms), write_ms: Math.round(write_ms) })
      }
      under_way = undefined
    },
  }
}
