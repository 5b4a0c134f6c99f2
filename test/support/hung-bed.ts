/**
 * One hold: a program whose disk hangs, or is slow, while callers send more than it may hold, and
 * what must be true of it meanwhile and afterwards.
 *
 * - No request that was sent after the commit log began to hang is answered `ok` before it goes on.
 * - As many ops wait as the queue takes; every other request is answered `overloaded`, soon, and its
 *   memory stays within its limits.
 * - Reads that see nothing but what is on disk go on. `/healthz` says 200, `/readyz` soon says 503,
 *   one line tells of it while it lasts, and one of its end.
 * - Once the disk works everything that waits is answered, and the program is ready without a
 *   restart. SIGTERM meanwhile ends it within `drain_ms_max`, six times as long where nothing but a
 *   checkpoint is left, and it says why; a second one ends it at once.
 * - The file has then, and after a kill, what was answered, nothing that was refused, and no half.
 */
import { availableParallelism, loadavg } from 'node:os'
import { pause, steadyClock } from '../../src/core/clock.ts'
import {
  type HungCallers,
  openHungCallers,
  type SentRequest,
  timeOfDay,
  type Way,
  ways,
} from './hung-callers.ts'
import { wrongInFile } from './hung-file.ts'
import { type HungBed, type HungServer, type Limits, unedited, until } from './hung-server.ts'
import type { Edit } from './store-child.ts'

/** `close`: the data file hangs, and nothing waits for it before the program is to end. */
export const kinds = [
  ...(['log', 'data', 'both', 'slow log', 'slow data', 'close', 'library'] as const),
] as const
export const ends = [
  ...(['release', 'kill', 'SIGTERM', 'SIGTERM twice', 'SIGTERM, then release'] as const),
] as const

/** What a program holds at most. */
export interface Bounds {
  readonly queue_ops_max: number
  readonly queue_bytes_max: number
  readonly unverified_bytes_max: number
  readonly checkpoint_bytes: number
  readonly ready_ms_max: number
  readonly slow_commit_ms: number
  readonly drain_ms_max: number
}

export interface Plan {
  readonly kind: (typeof kinds)[number]
  readonly end: (typeof ends)[number]
  readonly hold_ms: number
  /** What a sync of a slow disk takes. */
  readonly slow_ms: number
  readonly bounds: Bounds
  /** So many bytes are sent at least beyond those that wait. */
  readonly flood_bytes: number
}

export interface Program {
  readonly edits: readonly Edit[]
  /** Beyond the bounds by which it is judged. */
  readonly limits: Limits
}

export const sound: Program = { edits: unedited, limits: {} }

export interface HungCounts {
  answered: number
  overloaded: number
  waiting_ops_max: number
  not_ready_ms_max: number
  line_ms_max: number
  rss_mb_max: number
  rss_of_bound_max: number
}

export const newHungCounts = (): HungCounts => ({
  ...{ answered: 0, overloaded: 0, waiting_ops_max: 0, not_ready_ms_max: 0, line_ms_max: 0 },
  ...{ rss_mb_max: 0, rss_of_bound_max: 0 },
})

const mb = 1024 * 1024
/** What the heap of a busy program takes beside its bounds, and a connection. */
const [heap_mb, connection_mb] = [96, 0.1]
/**
 * A byte that waits is there as its text, in the body that this is a part of, in its changes and in
 * the frame that is written next; the memory of these two doubles when it grows.
 */
const copies = 6
const op_bytes = 8 * 1024
/** Of a request. */
const ops_max = 1_000
const probe_every_ms = 1_000
/** As many processes as want each core make everything so much longer. */
export const slower = (): number => Math.max(1, (loadavg()[0] ?? 0) / availableParallelism())
export const soon_ms = (): number => 1_000 * slower()
export const later_ms = (): number => 10_000 * slower()

/** Throws what is wrong. */
export async function holdOnce(
  bed: HungBed,
  plan: Plan,
  program: Program,
  counts: HungCounts,
): Promise<void> {
  const server = await bed.start({ ...plan.bounds, ...program.limits }, program.edits)
  const callers = await openHungCallers(server.target)
  const one: Hold = { plan, server, callers, counts, began_at: 0, ended: new Set() }
  try {
    await warm(one)
    if (plan.kind.startsWith('slow')) await slowDown(one)
    else if (plan.kind === 'close') await hangAtClose(one)
    else await hangUp(one)
  } finally {
    server.release()
    server.child.kill('SIGKILL')
    await server.ended
    callers.close()
  }
  const wrong = await wrongInFile(server.path, callers.sent)
  if (wrong !== undefined) throw new Error(`${wrong} (${plan.kind}, ${plan.end})`)
  server.remove()
  for (const { answer } of callers.sent) {
    if (answer?.code === 'ok') counts.answered++
    if (answer?.code === 'overloaded') counts.overloaded++
  }
}

interface Hold {
  readonly plan: Plan
  readonly server: HungServer
  readonly callers: HungCallers
  readonly counts: HungCounts
  /** In the time of day. */
  began_at: number
  readonly ended: Set<string>
}

export function must(is_so: boolean, says: string): asserts is_so {
  if (!is_so) throw new Error(says)
}

const answered = ({ answer }: SentRequest): boolean => answer !== undefined
const isOk = ({ answer }: SentRequest): boolean => answer?.code === 'ok'
const waiting = ({ sent }: HungCallers): readonly SentRequest[] =>
  sent.filter(({ answer }) => answer === undefined)
const opsOf = (requests: readonly SentRequest[]): number =>
  requests.reduce((sum, { refs }) => sum + refs.length, 0)
const bytesOf = (requests: readonly SentRequest[]): number =>
  requests.reduce((sum, { data_bytes }) => sum + data_bytes, 0)

async function warm({ callers }: Hold): Promise<void> {
  const first = ways.flatMap((way) => [callers.send(way, 1, 10), callers.send(way, 20, 10)])
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

/** From `began_at` on a write of the kind hangs, and no commit ends. */
async function begin(one: Hold): Promise<void> {
  const { kind } = one.plan
  if (kind !== 'log') await holdData(one)
  if (kind !== 'data') await holdLog(one)
  else await fillLog(one)
}

async function holdLog(one: Hold): Promise<void> {
  const { server, callers } = one
  const is_held = (): boolean => server.heldAt('log').length > 0
  server.hold('log')
  one.began_at = timeOfDay()
  const sent = callers.send('http', 1, 10)
  await until(() => answered(sent) || is_held(), later_ms())
  must(!answered(sent), `the commit log hangs, and a request got ${sent.answer?.code}`)
  must(is_held(), 'no write has hung')
}

/** Until a checkpoint has begun to hang. */
async function holdData({ plan, server, callers }: Hold): Promise<void> {
  const is_held = (): boolean => server.heldAt('data').length > 0
  server.hold('data')
  let bytes = 0
  const in_time = await until(async () => {
    const sent = callers.send('http', 20, 1_000)
    bytes += sent.data_bytes
    await until(() => answered(sent) || is_held(), later_ms())
    const is_wrong = answered(sent) && !isOk(sent)
    must(!is_wrong, `the data file hangs, and a request got ${sent.answer?.code}`)
    // The thread of the checkpoints starts meanwhile.
    if (bytes > plan.bounds.checkpoint_bytes / 2) await until(is_held, soon_ms() / 4)
    return is_held()
  }, later_ms())
  must(in_time !== undefined, 'no checkpoint has begun')
}

/** Until commits wait for the checkpoint that hangs. */
async function fillLog(one: Hold): Promise<void> {
  const { server, callers } = one
  let [open, since_ms] = [0, 0]
  const in_time = await until(async () => {
    const line = server.lines().findLast(({ event }) => event === 'slow_commit')
    const now_open = waiting(callers).length
    const is_waiting = line?.is_under_way === true && now_open > 0
    if (!is_waiting || now_open !== open) since_ms = performance.now()
    open = now_open
    if (!is_waiting && open < 4) for (const way of ways) callers.send(way, 20, 1_000)
    return is_waiting && performance.now() - since_ms > soon_ms() / 4
  }, later_ms())
  must(in_time !== undefined, 'the data file hangs, and the commit log never became full')
  one.began_at = timeOfDay()
}

/** Sends in three waves, each of smaller requests, more than the queue takes. */
async function flood(one: Hold): Promise<void> {
  const { plan, callers } = one
  const { queue_ops_max, queue_bytes_max } = plan.bounds
  const large_ops = 10
  const text_bytes = Math.min(queue_bytes_max / 40, 100_000)
  for (let bytes = 0; bytes < queue_bytes_max + plan.flood_bytes; ) {
    // As many large bodies as may arrive at once from one address.
    for (let n = 0; n < 6; n++) bytes += callers.send('http', large_ops, text_bytes).data_bytes
    for (let n = 0; n < 2; n++) bytes += callers.send('grpc', large_ops, text_bytes).data_bytes
    await settle(one)
  }
  const batch = Math.ceil(queue_ops_max / 16)
  const small = Math.ceil(batch / 10)
  for (const ops of [batch, small]) {
    for (let n = 0; n < 10; n++) for (const way of ways) callers.send(way, ops, 10)
    await settle(one)
  }
  for (let n = 0; n < small + 2; n++) for (const way of ways) callers.send(way, 1, 10)
  await settle(one)
  // The queue is full by now, be it of bytes.
  for (const way of ways) await judgeLast(one, way)
}

/** Resolves once each request that was sent is refused or in the queue, of which there is a bound. */
async function settle({ plan, callers, counts }: Hold): Promise<void> {
  const { queue_ops_max, queue_bytes_max } = plan.bounds
  let told = 0
  const in_time = await until(async () => {
    const { text } = await callers.ask('/metrics')
    told = Number(/^conveyor_queue_ops (\S+)$/m.exec(text)?.[1])
    const is_settled = told === opsOf(waiting(callers))
    if (!is_settled) await pause(steadyClock, 20)
    return is_settled
  }, later_ms())
  const ops = opsOf(waiting(callers))
  must(in_time !== undefined, `${ops} ops have no answer, and ${told} wait`)
  counts.waiting_ops_max = Math.max(counts.waiting_ops_max, ops)
  must(ops <= queue_ops_max, `${ops} ops wait, of ${queue_ops_max} that may`)
  const bytes = bytesOf(waiting(callers))
  must(bytes <= queue_bytes_max, `${bytes} bytes wait, of ${queue_bytes_max} that may`)
}

/** One more is refused at once. */
async function judgeLast({ callers }: Hold, way: Way): Promise<void> {
  const last = callers.send(way, 1, 10)
  await until(() => answered(last), soon_ms())
  must(
    last.answer?.code === 'overloaded',
    `${way}: ${last.answer?.code ?? 'no answer'}: queue full`,
  )
}

async function judgeRefusals(one: Hold): Promise<void> {
  judgeAnswers(one)
  const refused = one.callers.sent.filter(({ answer }) => answer?.code === 'overloaded')
  for (const { way, answer, refs } of refused) {
    const { status, retry_after, ms } = answer as NonNullable<typeof answer>
    const is_right =
      way === 'http' ? status === '503' && retry_after === '1' : status === 'UNAVAILABLE'
    must(is_right, `${way}: overloaded is ${status}, Retry-After ${retry_after}`)
    must(ms < later_ms(), `${way}: ${refs.length} ops were refused after ${Math.round(ms)} ms`)
  }
}

/** Of what was sent since the hold began. */
function judgeAnswers({ plan, callers, began_at }: Hold): void {
  for (const { way, sent_at, answer } of callers.sent) {
    if (sent_at < began_at || answer === undefined) continue
    const says = `${way}: a request got ${answer.code} ${answer.status} while the ${plan.kind} hung`
    must(answer.code === 'overloaded', says)
  }
}

function linesOf({ server }: Hold, event: string, from_at: number, is_under_way: boolean) {
  return server
    .lines()
    .filter((line) => line.event === event && (line.is_under_way ?? false) === is_under_way)
    .filter(({ time }) => Date.parse(time) >= Math.floor(from_at))
}

type HealthWatch = ReturnType<typeof watchHealth>

/** Asks the probes again and again. */
function watchHealth({ callers }: Hold) {
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

async function judgeHealth(one: Hold, { seen }: HealthWatch): Promise<void> {
  const { plan, callers, counts, began_at } = one
  const { ready_ms_max, slow_commit_ms } = plan.bounds
  const told_ms_max = ready_ms_max + soon_ms()
  await until(() => seen.not_ready_ms > 0 && seen.reasons !== '', told_ms_max)
  must(seen.not_ready_ms > 0, `/readyz says 200 after ${told_ms_max} ms`)
  must(seen.reasons !== '', `/readyz does not say that the disk hangs`)
  must(seen.wrong === '', seen.wrong)
  must(seen.slowest_ms < soon_ms(), `/healthz took ${Math.round(seen.slowest_ms)} ms`)
  counts.not_ready_ms_max = Math.max(counts.not_ready_ms_max, Math.round(seen.not_ready_ms))
  const events = [
    ...(plan.kind === 'data' ? [] : (['slow_commit'] as const)),
    ...(plan.kind === 'log' ? [] : (['slow_checkpoint'] as const)),
  ]
  for (const event of events) {
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

async function end(one: Hold, health: HealthWatch): Promise<void> {
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

async function signalTwice(one: Hold): Promise<void> {
  const { child } = one.server
  child.kill('SIGTERM')
  const is_told = (): boolean => linesOf(one, 'draining', 0, false).length > 0
  must((await until(is_told, soon_ms())) !== undefined, 'it does not take a signal')
  child.kill('SIGTERM')
  await endOf(one, soon_ms())
}

/** Its thread must not be the one that waits, or nobody would end it. */
async function hangAtClose(one: Hold): Promise<void> {
  const { plan, server, callers } = one
  const { drain_ms_max } = plan.bounds
  server.hold('data')
  const few = ways.map((way) => callers.send(way, 20, 1_000))
  await until(() => few.every(answered), later_ms())
  must(few.every(isOk), 'the data file hangs, and a commit that does not need it waits')
  if (plan.end === 'SIGTERM twice') return signalTwice(one)
  server.child.kill('SIGTERM')
  const is_held = (): boolean => server.heldAt('data').length > 0
  must((await until(is_held, later_ms())) !== undefined, 'the close writes nothing')
  const times = 6
  if (plan.end === 'SIGTERM') return judgeKilled(one, times * drain_ms_max + 2 * soon_ms())
  if (plan.end === 'kill') {
    server.child.kill('SIGKILL')
    await server.ended
    return
  }
  await pause(steadyClock, Math.min(plan.hold_ms, drain_ms_max))
  server.release()
  const { code, signal } = await endOf(one, times * drain_ms_max + 2 * soon_ms())
  must(code === 0, `it ended with ${code ?? signal} though the disk worked again`)
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
async function stop(one: Hold, health?: HealthWatch): Promise<void> {
  health?.leave()
  one.server.child.kill('SIGTERM')
  const { code, signal } = await endOf(one, later_ms())
  must(code === 0, `it ended with ${code ?? signal} on a disk that works`)
}

async function judgeKilled(one: Hold, ms_max: number): Promise<void> {
  const { signal, code } = await endOf(one, ms_max)
  must(signal === 'SIGKILL', `SIGTERM on a disk that hangs ended it with ${code ?? signal}`)
  must(linesOf(one, 'write_hangs', 0, false).length === 1, 'it did not say why it ended')
}

async function endOf({ server }: Hold, ms_max: number) {
  const late = pause(steadyClock, ms_max).then(() => undefined)
  const ended = await Promise.race([server.ended, late])
  must(ended !== undefined, `SIGTERM has not ended it in ${Math.round(ms_max)} ms`)
  return ended
}

/** Each sync takes a while: everything is answered, and no more waits than may. */
async function slowDown(one: Hold): Promise<void> {
  const { plan, server, callers } = one
  const { kind, slow_ms, hold_ms, bounds, end: how } = plan
  const memory = watchMemory(one)
  try {
    server.hold(kind === 'slow log' ? 'log' : 'data', slow_ms)
    one.began_at = timeOfDay()
    do {
      const batch = Math.min(ops_max, Math.ceil(bounds.queue_ops_max / 8))
      const requests = Math.ceil((1.5 * bounds.queue_ops_max) / batch)
      const wave = Array.from({ length: requests }, (_, n) =>
        callers.send(ways[n % 2] as Way, batch, n % 4 === 0 ? 1_000 : 10),
      )
      await until(() => wave.every(answered), 12 * slow_ms + later_ms())
      for (const { answer, way } of wave) {
        const { code = 'no answer', ms = 0 } = answer ?? {}
        must(code === 'ok' || code === 'overloaded', `${way}: a request got ${code}`)
        const is_early = kind === 'slow log' && code === 'ok' && ms < slow_ms - 2
        must(!is_early, `${way}: ok after ${ms} ms, and a sync takes ${slow_ms}`)
      }
      if (kind === 'slow log') must(!wave.every(isOk), `${opsOf(wave)} ops at once all entered`)
    } while (timeOfDay() - one.began_at < hold_ms)
    const last = ways.map((way) => callers.send(way, 20, 10))
    if (how === 'kill') {
      await until(() => last.some(answered), slow_ms / 2)
      server.child.kill('SIGKILL')
      await server.ended
      return
    }
    if (how !== 'SIGTERM') server.release()
    await until(() => last.every(answered), 12 * slow_ms + later_ms())
    must(last.every(isOk), `the last requests got ${last.map(({ answer }) => answer?.code)}`)
    if (how !== 'SIGTERM') return await stop(one)
    // Where the close takes too long on the slow disk it is killed, and says so.
    server.child.kill('SIGTERM')
    const { code } = await endOf(one, 7 * bounds.drain_ms_max + 2 * soon_ms())
    must(code === 0 || linesOf(one, 'write_hangs', 0, false).length === 1, `it ended with ${code}`)
  } finally {
    memory.stop()
  }
  memory.judge()
}

const look_ms = 25

function watchMemory({ plan, server, callers, counts }: Hold) {
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
