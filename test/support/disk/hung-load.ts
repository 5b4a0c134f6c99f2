/**
 * How a hold begins, and more requests than the program may hold: which of them wait, and how the
 * others are refused.
 */
import { pause, steadyClock } from '../../../src/core/clock.ts'
import { later_ms, soon_ms, until } from '../waits.ts'
import { must } from './harness.ts'
import { type Protocol, protocols } from './hung-callers.ts'
import { answered, bytesOf, type Hold, isOk, opsOf, sendBoth, waiting } from './hung-hold.ts'
import { timeOfDay } from './serve.ts'

/** From `began_at` on a write of the kind hangs, and no commit ends. */
export async function begin(one: Hold): Promise<void> {
  const { kind } = one.plan
  if (kind !== 'log') await holdData(one)
  if (kind !== 'data') await holdLog(one)
  else await fillLog(one)
}

async function holdLog(one: Hold): Promise<void> {
  const { holds, callers } = one
  const is_held = (): boolean => holds.heldAt('log').length > 0
  holds.hold('log')
  one.began_at = timeOfDay()
  const sent = callers.send('http', 1, 10)
  await until(() => answered(sent) || is_held(), later_ms())
  must(!answered(sent), `the commit log hangs, and a request got ${sent.answer?.code}`)
  must(is_held(), 'no write has hung')
}

/** Until a checkpoint has begun to hang. */
async function holdData({ plan, holds, callers }: Hold): Promise<void> {
  const is_held = (): boolean => holds.heldAt('data').length > 0
  holds.hold('data')
  let bytes = 0
  const in_time = await until(async () => {
    const sent = callers.send('http', 20, 1_000)
    bytes += sent.data_bytes
    await until(() => answered(sent) || is_held(), later_ms())
    const is_wrong = answered(sent) && !isOk(sent)
    must(!is_wrong, `the data file hangs, and a request got ${sent.answer?.code}`)
    // The checkpoint process starts meanwhile.
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
    if (!is_waiting && open < 4) sendBoth(callers, 20, 1_000)
    return is_waiting && performance.now() - since_ms > soon_ms() / 4
  }, later_ms())
  must(in_time !== undefined, 'the data file hangs, and the commit log never became full')
  one.began_at = timeOfDay()
}

/** Sends in three waves, each of smaller requests, more than the queue takes. */
export async function flood(one: Hold): Promise<void> {
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
  if (plan.is_of_memory) return
  const batch = Math.ceil(queue_ops_max / 16)
  const small = Math.ceil(batch / 10)
  for (const ops of [batch, small]) {
    for (let n = 0; n < 10; n++) sendBoth(callers, ops, 10)
    await settle(one)
  }
  for (let n = 0; n < small + 2; n++) sendBoth(callers, 1, 10)
  await settle(one)
  // The queue is full by now, be it of bytes.
  for (const protocol of protocols) await judgeLast(one, protocol)
}

/** Resolves once each request that was sent is refused or in the queue, of which there is a bound. */
async function settle({ plan, callers, counts }: Hold): Promise<void> {
  const { queue_ops_max, queue_bytes_max } = plan.bounds
  let reported = 0
  const in_time = await until(async () => {
    const { text } = await callers.ask('/metrics')
    reported = Number(/^conveyor_queue_ops (\S+)$/m.exec(text)?.[1])
    const is_settled = reported === opsOf(waiting(callers))
    if (!is_settled) await pause(steadyClock, 20)
    return is_settled
  }, later_ms())
  const ops = opsOf(waiting(callers))
  must(in_time !== undefined, `${ops} ops have no answer, and ${reported} wait`)
  if (plan.is_of_memory) return
  counts.waiting_ops_max = Math.max(counts.waiting_ops_max, ops)
  must(ops <= queue_ops_max, `${ops} ops wait, of ${queue_ops_max} that may`)
  const bytes = bytesOf(waiting(callers))
  must(bytes <= queue_bytes_max, `${bytes} bytes wait, of ${queue_bytes_max} that may`)
}

/** One more is refused at once. */
async function judgeLast({ callers }: Hold, protocol: Protocol): Promise<void> {
  const last = callers.send(protocol, 1, 10)
  await until(() => answered(last), soon_ms())
  must(
    last.answer?.code === 'overloaded',
    `${protocol}: ${last.answer?.code ?? 'no answer'}: queue full`,
  )
}

export async function judgeRefusals(one: Hold): Promise<void> {
  judgeAnswers(one)
  const refused = one.callers.sent.filter(({ answer }) => answer?.code === 'overloaded')
  for (const { protocol, answer, refs } of refused) {
    const { status, retry_after, ms } = answer as NonNullable<typeof answer>
    const is_right =
      protocol === 'http' ? status === '503' && retry_after === '1' : status === 'UNAVAILABLE'
    must(is_right, `${protocol}: overloaded is ${status}, Retry-After ${retry_after}`)
    must(ms < later_ms(), `${protocol}: ${refs.length} ops were refused after ${Math.round(ms)} ms`)
  }
}

/** Of what was sent since the hold began. */
export function judgeAnswers({ plan, callers, began_at }: Hold): void {
  for (const { protocol, sent_at, answer } of callers.sent) {
    if (sent_at < began_at || answer === undefined) continue
    const says = `${protocol}: a request got ${answer.code} ${answer.status} while the ${plan.kind} hung`
    must(answer.code === 'overloaded', says)
  }
}
