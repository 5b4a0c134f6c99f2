/**
 * Looks now and then whether the files that are written are still those that their names mean: one
 * that was removed, replaced or cut is written to in vain, for no opening would find it.
 */
import { type BigIntStats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { systemClock } from '../../core/clock.ts'

const every_ms = 1_000

/**
 * Calls `onLook` each second, or once `onLost` with the file that is not there any more, or is
 * shorter than it was. The answer ends it. The files are those that have the names now.
 */
export function watchFiles(
  paths: readonly string[],
  onLook: () => void,
  onLost: (path: string) => void,
): () => void {
  const known = new Map(paths.map((path) => [path, statSync(path, { bigint: true })]))
  let has_ended = false
  let cancel = (): void => {}

  async function look(): Promise<void> {
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
    onLook()
    arm()
  }

  function arm(): void {
    cancel = systemClock.wake_at(systemClock.now_ms() + every_ms, () => void look())
  }
  arm()
  return () => {
    has_ended = true
    cancel()
  }
}

/** Undefined where the look fails for another reason, which tells nothing. */
async function statOf(path: string): Promise<BigIntStats | 'gone' | undefined> {
  try {
    return await stat(path, { bigint: true })
  } catch (error) {
    return (error as { code?: unknown }).code === 'ENOENT' ? 'gone' : undefined
  }
}
