/** How a hold ends: the disk works again, or the program gets SIGTERM or SIGKILL. */

import { pause, steadyClock } from '../../../src/core/clock.ts'
import { later_ms, soon_ms, until } from '../waits.ts'
import { must } from './harness.ts'
import type { HealthWatch } from './hung-health.ts'
import {
  answered,
  eventsOf,
  type Hold,
  isOk,
  killed,
  linesOf,
  probe_every_ms,
  sendBoth,
  waiting,
} from './hung-hold.ts'
import { timeOfDay } from './serve.ts'

export async function end(one: Hold, health: HealthWatch): Promise<void> {
  const { plan, server } = one
  const { drain_ms_max } = plan.bounds
  if (plan.end === 'release') {
    await goOn(one, health)
    return stop(one, health)
  }
  health.leave()
  if (plan.end === 'kill') return killed(server)
  if (plan.end === 'SIGTERM twice') return signalTwice(one)
  server.child.kill('SIGTERM')
  if (plan.end === 'SIGTERM') return judgeKilled(one, drain_ms_max + 2 * soon_ms())
  await pause(steadyClock, drain_ms_max / 4)
  one.holds.release()
  return endsOrSays(one, 7 * drain_ms_max + soon_ms())
}

/** It ends with 0; where the disk leaves too little time for the close, it is killed and says so. */
export async function endsOrSays(one: Hold, ms_max: number): Promise<void> {
  const { code, signal } = await endOf(one, ms_max)
  const says_so = linesOf(one, 'write_hangs', 0, false).length === 1
  must(code === 0 || says_so, `it ended with ${code ?? signal}`)
}

export async function signalTwice(one: Hold): Promise<void> {
  const { child } = one.server
  child.kill('SIGTERM')
  const drains = (): boolean => linesOf(one, 'draining', 0, false).length > 0
  must((await until(drains, soon_ms())) !== undefined, 'it does not take a signal')
  child.kill('SIGTERM')
  await endOf(one, soon_ms())
}

/** The disk works again. */
async function goOn(one: Hold, { seen }: HealthWatch): Promise<void> {
  const { plan, holds, callers, began_at } = one
  const waited = waiting(callers)
  for (const event of eventsOf(plan)) {
    const from_at = event === 'slow_commit' ? began_at : 0
    const { length } = linesOf(one, event, from_at, true)
    must(length === 1, `${length} lines ${event} of one hold`)
  }
  const released_at = timeOfDay()
  holds.release()
  await until(() => waited.every(answered), later_ms())
  const wrong = waited.find((one) => !isOk(one))
  must(wrong === undefined, `what waited got ${wrong?.answer?.code ?? 'no answer'} in the end`)
  for (const event of eventsOf(plan)) {
    const is_over = (): boolean => linesOf(one, event, released_at - 1, false).length > 0
    must((await until(is_over, soon_ms())) !== undefined, `no line of the end of ${event}`)
  }
  const ready_ms = await until(() => seen.is_ready, probe_every_ms + 2 * soon_ms())
  must(ready_ms !== undefined, 'it is not ready, though the disk works again')
  const again = sendBoth(callers, 1, 10)
  await until(() => again.every(answered), soon_ms())
  must(again.every(isOk), 'it takes nothing, though the disk works again')
}

/** On a disk that works. */
export async function stop(one: Hold, health?: HealthWatch): Promise<void> {
  health?.leave()
  one.server.child.kill('SIGTERM')
  const { code, signal } = await endOf(one, later_ms())
  must(code === 0, `it ended with ${code ?? signal} on a disk that works`)
}

export async function judgeKilled(one: Hold, ms_max: number): Promise<void> {
  const { signal, code } = await endOf(one, ms_max)
  must(signal === 'SIGKILL', `SIGTERM on a disk that hangs ended it with ${code ?? signal}`)
  must(linesOf(one, 'write_hangs', 0, false).length === 1, 'it did not say why it ended')
}

export async function endOf({ server }: Hold, ms_max: number) {
  const late = pause(steadyClock, ms_max).then(() => undefined)
  const ended = await Promise.race([server.ended, late])
  must(ended !== undefined, `SIGTERM has not ended it in ${Math.round(ms_max)} ms`)
  return ended
}
