/** Waits for what a test expects, and how long that may take on a machine with other work. */
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** As many processes as want each core make everything so much longer. */
export const slower = (): number => Math.max(1, (loadavg()[0] ?? 0) / availableParallelism())

export const soon_ms = (): number => 1_000 * slower()

export const later_ms = (): number => 10_000 * slower()

const look_ms = 5

/** Resolves with the milliseconds until `isSo` holds; undefined where it does not in time. */
export async function until(isSo: () => unknown, ms_max: number): Promise<number | undefined> {
  const began_ms = performance.now()
  for (;;) {
    if (await isSo()) return performance.now() - began_ms
    if (performance.now() - began_ms > ms_max) return undefined
    await sleep(look_ms)
  }
}

/** Resolves once `isSo` holds; rejects with what was waited for. */
export async function becomes(what: string, isSo: () => unknown, ms_max = 30_000): Promise<void> {
  if ((await until(isSo, ms_max)) === undefined) throw new Error(`not within ${ms_max} ms: ${what}`)
}

/** Resolves once `isSo` holds; rejects with its source where it does not for long. */
export function eventually(isSo: () => unknown): Promise<void> {
  return becomes(String(isSo), isSo)
}
