/**
 * Checks every second that the files in use still have their names: writes to a removed, replaced
 * or truncated file would be lost.
 */
import { type BigIntStats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { systemClock } from '../../core/clock.ts'

const period_ms = 1_000

/**
 * Calls `onCheck` after each check without a change, or `onLost` once with the file that is gone,
 * replaced or shorter. The returned function ends the watch.
 */
export function watchFiles(
  paths: readonly string[],
  onCheck: () => void,
  onLost: (path: string) => void,
): () => void {
  const known = new Map(paths.map((path) => [path, statSync(path, { bigint: true })]))
  let has_ended = false
  let cancel = (): void => {}

  async function check(): Promise<void> {
    for (const [path, before] of known) {
      const now = await statOf(path)
      if (has_ended) return
      if (now === undefined) continue
      if (
        now === 'gone' ||
        now.ino !== before.ino ||
        now.dev !== before.dev ||
        now.size < before.size
      ) {
        has_ended = true
        return onLost(path)
      }
      known.set(path, now)
    }
    onCheck()
    arm()
  }

  function arm(): void {
    cancel = systemClock.wake_at(systemClock.now_ms() + period_ms, () => void check())
  }
  arm()
  return () => {
    has_ended = true
    cancel()
  }
}

/** Undefined if the check fails for a reason that is not about the file. */
async function statOf(path: string): Promise<BigIntStats | 'gone' | undefined> {
  try {
    return await stat(path, { bigint: true })
  } catch (error) {
    return (error as { code?: unknown }).code === 'ENOENT' ? 'gone' : undefined
  }
}
