/**
 * What an operator sees of a program whose disk hangs: its probes, its log, its metrics, and its
 * memory.
 */

import { pause, steadyClock } from '../../../src/core/clock.ts'
import { soon_ms, until } from '../waits.ts'
import { must } from './harness.ts'
import { eventsOf, type Hold, linesOf } from './hung-hold.ts'

export type HealthWatch = ReturnType<typeof watchHealth>

/** Asks the probes again and again. */
export function watchHealth({ callers }: Hold) {
  const seen = {
    began_ms: 0,
    not_ready_ms: 0,
    reasons: '',
    is_ready: true,
    slowest_ms: 0,
    wrong: '',
  }
  let is_over = false
  const look = async (): Promise<void> => {
    while (!is_over) {
      try {
        const { status, ms } = await callers.ask('/healthz')
        if (status !== 200) seen.wrong = `/healthz says ${status}`
        seen.slowest_ms = Math.max(seen.slowest_ms, ms)
        const ready = await callers.ask('/readyz')
        seen.is_ready = ready.status === 200
        if (/the disk hangs/.test(ready.text)) seen.reasons = ready.text
        if (!seen.is_ready && seen.began_ms > 0 && seen.not_ready_ms === 0) {
          seen.not_ready_ms = performance.now() - seen.began_ms
        }
      } catch (error) {
        if (!is_over) seen.wrong = `a probe has no answer: ${error}`
      }
      await pause(steadyClock, 20)
    }
  }
  const looking = look()
  return {
    seen,
    begin() {
      seen.began_ms = performance.now()
    },
    /** From here on the program may end. */
    leave() {
      is_over = true
    },
    async stop() {
      is_over = true
      await looking
    },
  }
}

export async function judgeHealth(one: Hold, { seen }: HealthWatch): Promise<void> {
  const { plan, callers, counts, began_at } = one
  const { ready_ms_max, slow_commit_ms } = plan.bounds
  const refused_ms_max = ready_ms_max + soon_ms()
  await until(() => seen.not_ready_ms > 0 && seen.reasons !== '', refused_ms_max)
  must(seen.not_ready_ms > 0, `/readyz says 200 after ${refused_ms_max} ms`)
  must(seen.reasons !== '', `/readyz does not say that the disk hangs`)
  must(seen.wrong === '', seen.wrong)
  must(seen.slowest_ms < soon_ms(), `/healthz took ${Math.round(seen.slowest_ms)} ms`)
  counts.not_ready_ms_max = Math.max(counts.not_ready_ms_max, Math.round(seen.not_ready_ms))
  for (const event of eventsOf(plan)) {
    // The data file hangs for longer than the commits that wait for it.
    const from_at = event === 'slow_commit' ? began_at : 0
    const line_ms_max = slow_commit_ms + soon_ms()
    await until(() => linesOf(one, event, from_at, true).length > 0, line_ms_max)
    const [line] = linesOf(one, event, from_at, true)
    must(line !== undefined, `no line ${event} while the disk hangs`)
    if (event === 'slow_commit') {
      const line_ms = Math.round(Date.parse(line.time) - began_at)
      counts.line_ms_max = Math.max(counts.line_ms_max, line_ms)
      must(line_ms < line_ms_max, `the line ${event} came after ${line_ms} ms`)
    }
    const { text } = await callers.ask('/metrics')
    const count = new RegExp(`^conveyor_events_total\\{event="${event}"\\} (\\S+)$`, 'm').exec(
      text,
    )?.[1]
    must(Number(count) > 0, `the metric counts ${count} ${event}`)
  }
}

const mb = 1024 * 1024

/** What the heap of a busy program takes beside its bounds, and a connection. */
const [heap_mb, connection_mb] = [96, 0.1]

/**
 * A byte that waits is there as its text, in the body that this is a part of, in its changes and in
 * the frame that is written next; the memory of these two doubles when it grows.
 */
const copies = 6

const op_bytes = 8 * 1024

const look_ms = 25

export function watchMemory({ plan, server, callers, counts }: Hold) {
  const { queue_ops_max, queue_bytes_max, unverified_bytes_max, checkpoint_bytes } = plan.bounds
  const quiet_mb = server.rss_mb()
  let peak_mb = quiet_mb
  const look = (): void => {
    peak_mb = Math.max(peak_mb, server.rss_mb())
  }
  const timer = setInterval(look, look_ms)
  return {
    stop() {
      look()
      clearInterval(timer)
    },
    judge() {
      const bytes =
        copies * queue_bytes_max +
        op_bytes * queue_ops_max +
        unverified_bytes_max +
        4 * checkpoint_bytes
      const max_mb = quiet_mb + heap_mb + connection_mb * callers.sent.length + bytes / mb
      counts.rss_mb_max = Math.max(counts.rss_mb_max, peak_mb)
      counts.rss_of_bound_max = Math.max(
        counts.rss_of_bound_max,
        Math.round((100 * peak_mb) / max_mb) / 100,
      )
      must(peak_mb <= max_mb, `${peak_mb} MB of memory, over ${Math.round(max_mb)}`)
    },
  }
}
