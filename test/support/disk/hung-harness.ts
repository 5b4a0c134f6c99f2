/**
 * One hold: a program whose disk hangs, or is slow, while callers send more than it may hold, and
 * what must be true of it meanwhile and afterwards.
 *
 * - No request that was sent after the commit log began to hang is answered `ok` before it goes on.
 * - As many ops wait as the queue takes; every other request is answered `overloaded`, soon, and its
 *   memory stays within its limits.
 * - Reads that see nothing but what is on disk go on. `/healthz` says 200, `/readyz` soon says 503,
 *   one line reports it while it lasts, and one its end.
 * - Once the disk works everything that waits is answered, and the program is ready without a
 *   restart. SIGTERM meanwhile ends it within `drain_ms_max`, six times as long where nothing but a
 *   checkpoint is left, and it says why; a second one ends it at once.
 * - The file has then, and after a kill, what was answered, nothing that was refused, and no half.
 */
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { pause, steadyClock } from '../../../src/core/clock.ts'
import { later_ms, soon_ms, until } from '../waits.ts'
import { type DiskHarness, holdsOf, must } from './harness.ts'
import { openHungCallers, type Protocol, protocols } from './hung-callers.ts'
import { end, endOf, endsOrSays, judgeKilled, signalTwice, stop } from './hung-end.ts'
import { judgeHealth, watchHealth, watchMemory } from './hung-health.ts'
import {
  answered,
  type Hold,
  type HungCounts,
  isOk,
  killed,
  opsOf,
  type Plan,
  type Program,
  sendBoth,
} from './hung-hold.ts'
import { begin, flood, judgeAnswers, judgeRefusals } from './hung-load.ts'
import { judgeFile, ledgerOf } from './ledger.ts'
import { timeOfDay } from './serve.ts'

/** Of a request. */
const ops_max = 1_000

/** Throws what is wrong. */
export async function holdOnce(
  harness: DiskHarness,
  plan: Plan,
  program: Program,
  counts: HungCounts,
): Promise<void> {
  const path = harness.putFile()
  const holds = holdsOf(harness, path)
  const limits = { ...plan.bounds, ...program.limits }
  const server = await harness.serve(path, limits, { edits: program.edits, env: holds.env })
  const callers = await openHungCallers(server)
  const one: Hold = { plan, server, holds, callers, counts, began_at: 0 }
  try {
    await warm(one)
    if (plan.kind.startsWith('slow')) await slowDown(one)
    else if (plan.kind === 'close') await hangAtClose(one)
    else await hangUp(one)
  } finally {
    holds.release()
    await killed(server)
    callers.close()
  }
  await judgeFile(path, ledgerOf(callers.sent))
  rmSync(dirname(path), { recursive: true, force: true })
  for (const { answer } of callers.sent) {
    if (answer?.code === 'ok') counts.answered++
    if (answer?.code === 'overloaded') counts.overloaded++
  }
}

async function warm({ callers }: Hold): Promise<void> {
  const first = [...sendBoth(callers, 1, 10), ...sendBoth(callers, 20, 10)]
  await until(() => first.every(answered), later_ms())
  const wrong = first.find((one) => !isOk(one))
  must(wrong === undefined, `before the hold: ${wrong?.answer?.code} ${wrong?.answer?.status}`)
  must((await callers.ask('/readyz')).status === 200, 'it was not ready before the hold')
}

async function hangUp(one: Hold): Promise<void> {
  const { plan, server, callers } = one
  const memory = watchMemory(one)
  const health = watchHealth(one)
  try {
    await begin(one)
    health.begin()
    await flood(one)
    if (plan.is_of_memory) return memory.judge()
    await judgeRefusals(one)
    must((await callers.list()) < soon_ms(), 'a list of tasks took long while the disk hung')
    await judgeHealth(one, health)
    await pause(steadyClock, plan.hold_ms - (timeOfDay() - one.began_at))
    judgeAnswers(one)
    must(server.child.exitCode === null, 'it ended by itself')
    await end(one, health)
  } finally {
    await health.stop()
    memory.stop()
  }
  memory.judge()
}

/** The thread that ends the program must not be the one that waits. */
async function hangAtClose(one: Hold): Promise<void> {
  const { plan, server, holds, callers } = one
  const { drain_ms_max } = plan.bounds
  holds.hold('data')
  const few = sendBoth(callers, 20, 1_000)
  await until(() => few.every(answered), later_ms())
  must(few.every(isOk), 'the data file hangs, and a commit that does not need it waits')
  if (plan.end === 'SIGTERM twice') return signalTwice(one)
  server.child.kill('SIGTERM')
  const is_held = (): boolean => holds.heldAt('data').length > 0
  must((await until(is_held, later_ms())) !== undefined, 'the close writes nothing')
  const times = 6
  if (plan.end === 'SIGTERM') return judgeKilled(one, times * drain_ms_max + 2 * soon_ms())
  if (plan.end === 'kill') return killed(server)
  await pause(steadyClock, Math.min(plan.hold_ms, drain_ms_max))
  holds.release()
  const { code, signal } = await endOf(one, times * drain_ms_max + 2 * soon_ms())
  must(code === 0, `it ended with ${code ?? signal} though the disk worked again`)
}

/** Each sync takes a while: everything is answered, and no more waits than may. */
async function slowDown(one: Hold): Promise<void> {
  const { plan, server, holds, callers } = one
  const { kind, slow_ms, hold_ms, bounds, end: how } = plan
  const memory = watchMemory(one)
  try {
    holds.hold(kind === 'slow log' ? 'log' : 'data', slow_ms)
    one.began_at = timeOfDay()
    do {
      const batch = Math.min(ops_max, Math.ceil(bounds.queue_ops_max / 8))
      const requests = Math.ceil((1.5 * bounds.queue_ops_max) / batch)
      const wave = Array.from({ length: requests }, (_, n) =>
        callers.send(protocols[n % 2] as Protocol, batch, n % 4 === 0 ? 1_000 : 10),
      )
      await until(() => wave.every(answered), 12 * slow_ms + later_ms())
      for (const { answer, protocol } of wave) {
        const { code = 'no answer', ms = 0 } = answer ?? {}
        must(code === 'ok' || code === 'overloaded', `${protocol}: a request got ${code}`)
        const is_early = kind === 'slow log' && code === 'ok' && ms < slow_ms - 2
        must(!is_early, `${protocol}: ok after ${ms} ms, and a sync takes ${slow_ms}`)
      }
      // They are more than may wait at once, so the last of them entered after a commit had ended.
      const answered_at = wave.map(({ sent_at, answer }) => sent_at + (answer?.ms ?? 0))
      const ms = Math.max(...answered_at) - Math.min(...wave.map(({ sent_at }) => sent_at))
      const is_over = kind === 'slow log' && wave.every(isOk) && ms < 2 * slow_ms - 5
      must(!is_over, `${opsOf(wave)} ops all entered in one commit`)
    } while (timeOfDay() - one.began_at < hold_ms)
    const last = sendBoth(callers, 20, 10)
    if (how === 'kill') {
      await until(() => last.some(answered), slow_ms / 2)
      return await killed(server)
    }
    if (how !== 'SIGTERM') holds.release()
    await until(() => last.every(answered), 12 * slow_ms + later_ms())
    must(last.every(isOk), `the last requests got ${last.map(({ answer }) => answer?.code)}`)
    if (how !== 'SIGTERM') {
      // A sync that is slow already stays so.
      await pause(steadyClock, slow_ms)
      return await stop(one)
    }
    server.child.kill('SIGTERM')
    await endsOrSays(one, 7 * bounds.drain_ms_max + 2 * soon_ms())
  } finally {
    memory.stop()
  }
  memory.judge()
}
