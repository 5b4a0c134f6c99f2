/**
 * A stream of batches through a window: up to so many are sent and not yet read by the caller, in
 * order both ways. While the window is full nothing is taken from the source, so a slow reader
 * slows the source and memory stays bounded.
 *
 * Taking from the source and handing out answers go on side by side, so a source that waits for an
 * answer before it gives its next batch gets it.
 */
import { type Cancellation, throwIfCancelled } from './cancellation.ts'

export interface WindowParts<In, Out> {
  readonly source: AsyncIterable<In>
  readonly size: number
  /** Starts an item; called in order, and the answers are handed out in order. */
  send(item: In): Promise<Out>
  /** The source has ended. */
  finish?(): void
  /** The reader has gone, or something failed: nothing more is sent or read. */
  abandon?(): void
  /** Ends the stream with its reason, also while the source is silent. */
  readonly cancellation: Cancellation
}

export async function* windowed<In, Out>(
  parts: WindowParts<In, Out>,
): AsyncGenerator<Out, void, undefined> {
  const { source, size, send, cancellation } = parts
  const iterator = source[Symbol.asyncIterator]()
  const waiting: Promise<Out>[] = []
  const notifier = newNotifier()
  let state: 'open' | 'ended' | 'left' = 'open'
  let failure: { readonly error: unknown } | undefined

  const pump = async (): Promise<void> => {
    try {
      while (state === 'open') {
        if (waiting.length >= size) {
          await notifier.next()
          continue
        }
        const next = await iterator.next()
        if (state !== 'open') return
        if (next.done === true) {
          state = 'ended'
          parts.finish?.()
          break
        }
        const answer = send(next.value)
        answer.catch(() => {})
        waiting.push(answer)
        notifier.notify()
      }
    } catch (error) {
      failure = { error }
    }
    if (state === 'open') state = 'ended'
    notifier.notify()
  }

  const forget = cancellation.onCancel(notifier.notify)
  void pump()
  let is_whole = false
  try {
    for (;;) {
      throwIfCancelled(cancellation)
      const [first] = waiting
      if (first !== undefined) {
        const answer = await first
        waiting.shift()
        notifier.notify()
        yield answer
      } else if (state === 'open') await notifier.next()
      else if (failure !== undefined) throw failure.error
      else break
    }
    is_whole = true
  } finally {
    state = 'left'
    forget()
    notifier.notify()
    if (!is_whole) {
      parts.abandon?.()
      // Not awaited: a source that is waiting for its own next batch would hold the reader up.
      void iterator.return?.().catch(() => {})
    }
  }
}

/** Wakes all who wait. */
function newNotifier(): { notify(): void; next(): Promise<void> } {
  let waiters: (() => void)[] = []
  return {
    notify() {
      const woken = waiters
      waiters = []
      for (const wake of woken) wake()
    },
    next: () => new Promise((resolve) => waiters.push(resolve)),
  }
}
