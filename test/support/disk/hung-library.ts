/**
 * A hold under a program that embeds the library, with its default options or with
 * `blocking_commits: false`. No call that began while a write hung is answered before it went on;
 * calls beyond the queue wait, up to `waiting_bytes_max`, and are `overloaded` beyond that. By
 * default the write that begins to hang may keep the event loop, the next one does not while writes
 * are slow; without blocking commits none does.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { pause, steadyClock } from '../../../src/core/clock.ts'
import { builtOnce } from '../store-child.ts'
import { later_ms, slower, soon_ms, until } from '../waits.ts'
import { type DiskHarness, type Holds, holdsOf, must } from './harness.ts'
import type { HungOrder, HungReport } from './hung-child.ts'
import type { Plan } from './hung-hold.ts'
import { judgeFile, ledgerOf, type SentOnce } from './ledger.ts'
import { rssOf, timeOfDay } from './serve.ts'

const mb = 1024 * 1024
const limits = { queue_bytes_max: 2 * mb, waiting_bytes_max: 8 * mb, slow_commit_ms: 150 }
const flood = { flood: 200, text_bytes: 100_000 }
/** As in hung-harness: what waits is there in several copies. */
const rss_mb_more = 96 + (6 * limits.queue_bytes_max + 4 * limits.waiting_bytes_max) / mb
/** So many answers before a hold. */
const between = 8

interface Call extends SentOnce {
  readonly sent_at: number
  answer: { readonly code: string; readonly at: number } | undefined
}

/** Throws what is wrong. */
export async function holdLibrary(harness: DiskHarness, plan: Plan): Promise<void> {
  const { script } = await builtOnce('disk/hung-child.ts')
  const path = harness.putFile()
  const holds = holdsOf(harness, path)
  const is_blocking = plan.hold_ms % 2 === 0
  const options = { limits, ...(is_blocking ? {} : { blocking_commits: false }) }
  const child = spawn(process.execPath, [script, path, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...holds.env },
  })
  const closed = once(child, 'close')
  const calls = new Map<string, Call>()
  const reported = { late_ms: -1, is_open: false, lines: 0 }
  createInterface({ input: child.stdout as Readable }).on('line', (line) => {
    const report = JSON.parse(line) as HungReport
    if ('sent' in report) {
      calls.set(report.sent, { refs: [report.sent], sent_at: report.at, answer: undefined })
    } else if ('ref' in report) {
      const call = calls.get(report.ref) as Call
      call.answer = { code: report.code, at: report.at }
    } else if ('late_ms' in report) reported.late_ms = report.late_ms
    else if ('event' in report) reported.lines++
    else reported.is_open = true
  })
  const count = (code: string): number =>
    [...calls.values()].filter(({ answer }) => answer?.code === code).length
  const one: Held = { child, calls, count, holds, reported, hold_ms: plan.hold_ms, is_blocking }
  try {
    await until(() => count('ok') >= between, later_ms())
    must(count('ok') >= between, 'the library answers nothing on a disk that works')
    const first = await holdOne(one)
    const ok = count('ok')
    await until(() => count('ok') >= ok + between, later_ms())
    must(count('ok') >= ok + between, 'no call was answered once the disk worked again')
    const second = await holdOne(one, async () => {
      order(child, flood)
      await until(() => count('overloaded') > 0, later_ms())
      must(count('overloaded') > 0, 'calls beyond what may wait were not refused')
      if (plan.end === 'kill') child.kill('SIGKILL')
    })
    if (plan.end !== 'kill') {
      order(child, { do: 'close' })
      const ended = await Promise.race([
        closed,
        pause(steadyClock, later_ms()).then(() => ['hung']),
      ])
      must(ended[0] === 0, `it ended with ${ended}`)
      const open = [...calls.values()].filter(({ answer }) => answer === undefined)
      must(open.length === 0, `${open.length} calls have no answer`)
    }
    for (const hold of [first, second]) judgeCalls(one, hold)
  } finally {
    holds.release()
    child.kill('SIGKILL')
    await closed
  }
  await judgeFile(path, ledgerOf(calls.values()))
  rmSync(join(path, '..'), { recursive: true, force: true })
}

interface Held {
  readonly child: ChildProcess
  readonly calls: ReadonlyMap<string, Call>
  readonly count: (code: string) => number
  readonly holds: Holds
  readonly reported: { late_ms: number; readonly is_open: boolean; readonly lines: number }
  readonly hold_ms: number
  readonly is_blocking: boolean
}

interface Times {
  readonly from_at: number
  readonly until_at: number
}

async function holdOne(one: Held, meanwhile?: () => Promise<void>): Promise<Times> {
  const { child, holds, hold_ms, is_blocking, reported } = one
  // A blocked loop takes no order, so its disk is slow then, and the second write hangs.
  const is_slow = is_blocking && meanwhile !== undefined
  const nth = is_slow ? 1 : 0
  const before = holds.heldAt('log').length
  const rss_mb = rssOf(child.pid)
  await emitLate(one)
  holds.hold('log', is_slow ? hold_ms : undefined)
  const is_held = (): boolean => holds.heldAt('log').length > before + nth
  must((await until(is_held, later_ms())) !== undefined, 'no write has hung')
  const from_at = holds.heldAt('log')[before + nth] as number
  const lines = reported.lines
  await meanwhile?.()
  await pause(steadyClock, hold_ms - 20 - (timeOfDay() - from_at))
  const more_mb = rssOf(child.pid) - rss_mb
  must(more_mb < rss_mb_more, `${more_mb} MB more of memory, over ${rss_mb_more}`)
  const until_at = Math.min(timeOfDay(), from_at + hold_ms)
  if (child.signalCode === null && !child.killed) {
    holds.release()
    const is_reported = (): boolean => reported.lines > lines
    must((await until(is_reported, soon_ms())) !== undefined, 'no line slow_commit')
    const late_ms = await emitLate(one)
    // By default for one write.
    const is_stuck = late_ms > (is_blocking ? hold_ms : 0) + soon_ms() / 2
    must(!is_stuck, `its event loop was blocked for ${Math.round(late_ms)} ms`)
  }
  return { from_at, until_at }
}

/** For how long its event loop was blocked since it was asked last. */
async function emitLate({ child, reported }: Held): Promise<number> {
  reported.late_ms = -1
  order(child, { do: 'emit' })
  must(
    (await until(() => reported.late_ms >= 0, 2_000 * slower())) !== undefined,
    'its event loop is blocked',
  )
  return reported.late_ms
}

function judgeCalls({ calls }: Held, { from_at, until_at }: Times): void {
  for (const { refs, sent_at, answer } of calls.values()) {
    if (sent_at < from_at || answer === undefined || answer.at > until_at) continue
    const { code } = answer
    must(code === 'overloaded', `${refs[0]} got ${code} while the commit log hung`)
  }
}

function order(child: ChildProcess, what: HungOrder): void {
  child.stdin?.write(`${JSON.stringify(what)}\n`)
}
