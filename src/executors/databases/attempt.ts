/**
 * What ends an attempt of a query: its time, the bytes of its answer, or an abort. The socket in
 * use is destroyed then, and whatever is awaited rejects at once, also where a server never
 * answers.
 */
import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'

export type AttemptEnd = 'late_to_connect' | 'late' | 'large' | 'aborted'

export interface Attempt {
  /** The socket to destroy; the bytes that it has already got do not count. */
  use(socket: Socket): void
  endAfter(ms: number, as: AttemptEnd): void
  /** From now on, until the answer is there. */
  watch(bytes_max: number): void
  /** What has ended it. */
  ended(): AttemptEnd | undefined
  unlessEnded<T>(work: Promise<T>): Promise<T>
  destroy(): void
  /** Nothing is watched any more. */
  dispose(): void
}

/** Between two looks at the bytes that have come: one row may have any length. */
const look_ms = 20

export function newAttempt(clock: Clock, signal: AbortSignal): Attempt {
  let socket: Socket | undefined
  let bytes_before = 0
  let ended: AttemptEnd | undefined
  let reject = (_reason: Error): void => {}
  const end = new Promise<never>((_resolve, rejectEnd) => {
    reject = rejectEnd
  })
  end.catch(() => {})
  let disarm = (): void => {}
  let stopLooking = (): void => {}

  function endAs(as: AttemptEnd): void {
    ended ??= as
    socket?.destroy()
    reject(new Error(as))
  }

  // A driver may wait on when the server closes the connection in the middle of an answer.
  const onClose = (): void => reject(new Error('the connection was closed'))
  const onAbort = (): void => endAs('aborted')
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  return {
    use(used) {
      socket = used
      bytes_before = used.bytesRead
      if (ended !== undefined) used.destroy()
    },
    endAfter(ms, as) {
      disarm()
      disarm = clock.wake_at(clock.now_ms() + ms, () => endAs(as))
    },
    watch(bytes_max) {
      socket?.once('close', onClose)
      const look = (): void => {
        if ((socket?.bytesRead ?? 0) - bytes_before > bytes_max) endAs('large')
        else stopLooking = clock.wake_at(clock.now_ms() + look_ms, look)
      }
      look()
    },
    ended: () => ended,
    unlessEnded: (work) => Promise.race([work, end]),
    destroy: () => void socket?.destroy(),
    dispose() {
      disarm()
      stopLooking()
      socket?.off('close', onClose)
      signal.removeEventListener('abort', onAbort)
    },
  }
}
