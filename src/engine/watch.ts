/**
 * Watchers: async iterators over changes, which are published in order after their commit.
 *
 * Each watcher has a queue of its own, so a slow one delays nobody. A watcher that lags more than
 * `watch_changes_max` changes ends with a throw, so memory stays bounded.
 */
import { fault } from '../core/faults.ts'
import type { Change } from '../core/model.ts'

export interface Watchers {
  isWatched(): boolean
  publish(changes: readonly Omit<Change, 'seq'>[]): void
  watch(conv_id: string | undefined): AsyncIterableIterator<Change>
  /** Ends each watcher once it has read its queue. */
  close(): void
}

interface Watcher {
  readonly conv_id: string | undefined
  readonly queue: Change[]
  /** Resolves the calls of `next` that wait for a change. */
  readonly waiting: (() => void)[]
  ended: 'no' | 'closed' | 'lagged'
}

export function newWatchers(changes_max: number): Watchers {
  const watchers = new Set<Watcher>()
  let seq = 0
  let closed = false

  function end(watcher: Watcher, how: 'closed' | 'lagged'): void {
    if (watcher.ended === 'no') watcher.ended = how
    watchers.delete(watcher)
    wake(watcher)
  }

  function wake(watcher: Watcher): void {
    for (const resume of watcher.waiting.splice(0)) resume()
  }

  async function next(watcher: Watcher): Promise<IteratorResult<Change>> {
    for (;;) {
      if (watcher.ended === 'lagged') {
        throw fault('overloaded', `the watcher fell more than ${changes_max} changes behind`)
      }
      const change = watcher.queue.shift()
      if (change !== undefined) return { done: false, value: change }
      if (watcher.ended === 'closed') return { done: true, value: undefined }
      await new Promise<void>((resolve) => watcher.waiting.push(resolve))
    }
  }

  return {
    isWatched: () => watchers.size > 0,
    publish(changes) {
      for (const change of changes) {
        const published = { seq: ++seq, ...change }
        for (const watcher of watchers) {
          if (watcher.conv_id !== undefined && watcher.conv_id !== change.conv_id) continue
          watcher.queue.push(published)
          if (watcher.queue.length > changes_max) end(watcher, 'lagged')
          else wake(watcher)
        }
      }
    },
    watch(conv_id) {
      const ended = closed ? 'closed' : 'no'
      const watcher: Watcher = { conv_id, queue: [], waiting: [], ended }
      if (!closed) watchers.add(watcher)
      return {
        next: () => next(watcher),
        return: async () => {
          watcher.queue.length = 0
          end(watcher, 'closed')
          return { done: true, value: undefined }
        },
        [Symbol.asyncIterator]() {
          return this
        },
      }
    },
    close() {
      closed = true
      for (const watcher of [...watchers]) end(watcher, 'closed')
    },
  }
}
