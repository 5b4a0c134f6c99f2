/** How a hold ends: the disk works again, or the program is told to end, or is killed. */

import { pause, steadyClock } from '../../../src/core/clock.ts'
import { later_ms, soon_ms, until } from '../waits.ts'
import { ways } from './hung-callers.ts'
import type { HealthWatch } from './hung-health.ts'
import { answered, type Hold, isOk, linesOf, must, probe_every_ms, waiting } from './hung-hold.ts'
import { timeOfDay } from './serve.ts'

export async function end(one: Hold, health: HealthWatch): Promise<void> {
  const { plan, server } = one
  const { drain_ms_max } = plan.bounds
  switch (plan.end) {
    case 'release':
      await goOn(one, health)
      return stop(one, health)
    case 'kill':
      health.leave()
      server.child.kill('SIGKILL')
      await server.ended
      return
    case 'SIGTERM':
      health.leave()
      server.child.kill('SIGTERM')
      return judgeKilled(one, drain_ms_max + 2 * soon_ms())
    case 'SIGTERM twice':
      health.leave()
      return signalTwice(one)
    case 'SIGTERM, then release': {
      health.leave()
      server.child.kill('SIGTERM')
      await pause(steadyClock, drain_ms_max / 4)
      server.release()
      const ended = await endOf(one, 7 * drain_ms_max + soon_ms())
      // Too late for so much to be written, it is killed, and says so.
      const is_told = linesOf(one, 'write_hangs', 0, false).length === 1
      must(ended.code === 0 || is_told, `it ended with ${ended.code ?? ended.signal}`)
      return
    }
  }
}

export async function signalTwice(one: Hold): Promise<void> {
  const { child } = one.server
  child.kill('SIGTERM')
  const is_told = (): boolean => linesOf(one, 'draining', 0, false).length > 0
  must((await until(is_told, soon_ms())) !== undefined, 'it does not take a signal')
  child.kill('SIGTERM')
  await endOf(one, soon_ms())
}

/** The disk works again. */
async function goOn(one: Hold, { seen }: HealthWatch): Promise<void> {
  const { plan, server, callers, began_at } = one
  const waited = waiting(callers)
  const hung = [
    ...(plan.kind === 'data' ? [] : (['slow_commit'] as const)),
    ...(plan.kind === 'log' ? [] : (['slow_checkpoint'] as const)),
  ]
  for (const event of hung) {
    const from_at = event === 'slow_commit' ? began_at : 0
    const told = linesOf(one, event, from_at, true).length
    must(told === 1, `${told} lines ${event} of one hold`)
  }
  const released_at = timeOfDay()
  server.release()
  await until(() => waited.every(answered), later_ms())
  const wrong = waited.find((one) => !isOk(one))
  must(wrong === undefined, `what waited got ${wrong?.answer?.code ?? 'no answer'} in the end`)
  for (const event of hung) {
    const is_told = (): boolean => linesOf(one, event, released_at - 1, false).length > 0
    must((await until(is_told, soon_ms())) !== undefined, `no line of the end of ${event}`)
  }
  const ready_ms = await until(() => seen.is_ready, probe_every_ms + 2 * soon_ms())
  must(ready_ms !== undefined, 'it is not ready, though the disk works again')
  const again = ways.map((way) => callers.send(way, 1, 10))
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
