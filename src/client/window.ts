/**
 * A stream of batches through a window: at most `size` batches are sent and not yet read by the
 * caller, in order in both directions. A full window takes nothing from the source, which bounds
 * memory. Source and answers progress independently, so a source may wait for an answer before it
 * yields its next batch.
 */
import { type Cancellation, throwIfCancelled } from './cancellation.ts'

export interface WindowOptions<In, Out> {
  readonly source: AsyncIterable<In>
  readonly size: number
  /** Starts an item. Called in order; the answers are yielded in order. */
  send(item: In): Promise<Out>
  /** Called when the source has ended. */
  finish?(): void
  /** Called when the reader leaves or an error occurs: nothing more is sent or read. */
  abandon?(): void
  /** Ends the stream with its reason, even while the source is silent. */
  readonly cancellation: Cancellation
}

export async function* windowed<In, Out>(
  options: WindowOptions<In, Out>,
): AsyncGenerator<Out, void, undefined> {
  const { source, size, send, cancellation } = options
  const iterator = source[Symbol.asyncIterator]()
  const answers: Promise<Out>[] = []
  const notifier = newNotifier()
  let state: 'open' | 'ended' | 'left' = 'open'
  let failure: { readonly error: unknown } | undefined

  const pump = async (): Promise<void> => {
    try {
      while (state === 'open') {
        if (answers.length >= size) {
          await notifier.next()
          continue
        }
        const next = await iterator.next()
        if (state !== 'open') return
        if (next.done === true) {
          state = 'ended'
          options.finish?.()
          break
        }
        const answer = send(next.value)
        answer.catch(() => {})
        answers.push(answer)
        notifier.notify()
      }
    } catch (error) {
      failure = { error }
    }
    if (state === 'open') state = 'ended'
    notifier.notify()
  }

  const removeListener = cancellation.onCancel(notifier.notify)
  void pump()
  let is_complete = false
  try {
    for (;;) {
      throwIfCancelled(cancellation)
      const [first] = answers
      if (first !== undefined) {
        const answer = await first
        answers.shift()
        notifier.notify()
        yield answer
      } else if (state === 'open') await notifier.next()
      else if (failure !== undefined) throw failure.error
      else break
    }
    is_complete = true
  } finally {
    state = 'left'
    removeListener()
    notifier.notify()
    if (!is_complete) {
      options.abandon?.()
      // Not awaited: a source that waits for its own next batch would block the reader.
      void iterator.return?.().catch(() => {})
    }
  }
}

/** `notify` resolves every pending `next`. */
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
