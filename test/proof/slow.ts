/**
 * Slow and half-open clients, and readers that never read, all at once from a process of their own
 * against a server in another one. An honest caller is measured in turn without them and beside them, so that both figures
 * are of one run and of one machine.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { pause, steadyClock } from '../../src/core/clock.ts'
import type { LimitName } from '../../src/core/limits.ts'
import { conv_id } from '../support/http-server.ts'
import type { OpenedClient, SlowOrder } from '../support/slow-child.ts'
import { signed } from '../support/slow-clients.ts'
import { type Attacked, makeSlowFile, type SlowFile } from '../support/slow-server.ts'
import { type BuiltChild, buildChild } from '../support/store-child.ts'
import type { Failure, Given, Outcome, Proof } from './proof.ts'

type SomeLimits = Partial<Record<LimitName, number>>

interface Form {
  readonly tasks: number
  readonly limits: SomeLimits
  /** Milliseconds after which no slow client may be connected. */
  readonly dropped_ms_max: number
  readonly rounds: number
  /** Requests of the honest caller in a phase. */
  readonly requests: number
  /** What a busy machine may add to a percentile of few requests. */
  readonly noise_ms: number
}

const mb = 1024 * 1024

const quick: Form = {
  tasks: 140,
  limits: {
    ...{ header_ms_max: 500, request_ms_max: 600, idle_ms_max: 800, reader_stalled_ms_max: 500 },
    ...{ grpc_ping_ms: 300, grpc_idle_ms_max: 500, reader_beat_ms: 100_000 },
    ...{ answer_bytes_max: 4 * mb, connection_answer_bytes_max: 8 * mb },
    ...{ caller_answer_bytes_max: 16 * mb, answers_bytes_max: 32 * mb },
    ...{ body_bytes_max: 2 * mb, unverified_bytes_max: 8 * mb },
  },
  ...{ dropped_ms_max: 8_000, rounds: 1, requests: 50, noise_ms: 1_000 },
}

const long: Form = {
  tasks: 140,
  limits: {
    ...{ header_ms_max: 3_000, request_ms_max: 5_000, idle_ms_max: 8_000 },
    ...{ reader_stalled_ms_max: 8_000, grpc_ping_ms: 4_000, grpc_idle_ms_max: 8_000 },
  },
  ...{ dropped_ms_max: 20_000, rounds: 3, requests: 5_000, noise_ms: 2 },
}

/** From so many clients on the long form is tried. */
const long_n_min = 1_000
/** What a connection may take beside bodies and answers. */
const connection_mb = 0.1
/** What the heap of a busy server takes beside its bounds. */
const heap_mb = 96
const look_ms = 100

interface Measured {
  readonly p50_ms: number
  readonly p99_ms: number
  readonly refused: readonly string[]
}

async function run(given: Given, unbounded: SomeLimits = {}, ms_max?: number): Promise<Outcome> {
  const of_n = given.n >= long_n_min ? long : quick
  const form = { ...of_n, dropped_ms_max: ms_max ?? of_n.dropped_ms_max }
  const [file, { script }] = await prepared(form.tasks)
  const server = await file.start({ ...form.limits, ...unbounded })
  const attackers = fork(script, { serialization: 'advanced' })
  try {
    return await attack(server, attackers, form, given)
  } finally {
    attackers.disconnect()
    await server.stop()
  }
}

/** Are made once, for the claim and the controls. */
let made: Promise<readonly [SlowFile, BuiltChild]> | undefined

function prepared(tasks: number): Promise<readonly [SlowFile, BuiltChild]> {
  made ??= Promise.all([makeSlowFile(tasks), buildChild('slow-child.ts')]).then((both) => {
    process.once('exit', () => {
      for (const { folder } of both) rmSync(folder, { recursive: true, force: true })
    })
    return both
  })
  return made
}

async function attack(
  server: Attacked,
  attackers: ChildProcess,
  form: Form,
  { n, seed, emit }: Given,
): Promise<Outcome> {
  const failures: Failure[] = []
  const fail = (says: string): void => void failures.push({ seed, says })
  const times = { quiet: [] as number[], attacked: [] as number[] }
  const { answers_bytes_max = 256 * mb, unverified_bytes_max = 64 * mb } = form.limits
  await measure(server, form.requests, [])
  const quiet_mb = server.rss_mb()
  const rss_mb_max =
    quiet_mb + heap_mb + connection_mb * n + (answers_bytes_max + unverified_bytes_max) / mb
  let peak_mb = 0
  let dropped_ms = 0
  let left_count = 0
  for (let round = 0; round < form.rounds; round++) {
    const before = await measure(server, form.requests, times.quiet)
    const began_ms = performance.now()
    const stopLooking = every(look_ms, () => {
      peak_mb = Math.max(peak_mb, server.rss_mb())
    })
    const opened = await open(attackers, server, n, seed + round)
    const opened_ms = performance.now() - began_ms
    const during = await measure(server, form.requests, times.attacked)
    for (const code of [...before.refused, ...during.refused]) fail(`an honest request: ${code}`)
    const measured_ms = performance.now() - began_ms
    let left: OpenedClient[]
    do {
      await pause(steadyClock, look_ms)
      const still = server.connections()
      left = opened.filter(([, connection]) => connection !== undefined && still.has(connection))
      dropped_ms = Math.round(performance.now() - began_ms - opened_ms)
    } while (left.length > 0 && performance.now() - began_ms < measured_ms + form.dropped_ms_max)
    left_count = left.length
    if (left_count > 0) {
      const kinds = [...new Set(left.map(([kind]) => kind))]
      fail(`${left_count} of ${n} are connected after ${dropped_ms} ms: ${kinds.join('; ')}`)
    }
    stopLooking()
    attackers.send('leave')
    peak_mb = Math.max(peak_mb, server.rss_mb())
    emit(`round ${round + 1}: p99 ${before.p99_ms} ms quiet, ${during.p99_ms} ms beside ${n}`)
    if (failures.length > 0) break
  }
  if (peak_mb > rss_mb_max) fail(`${peak_mb} MB of memory, over ${Math.round(rss_mb_max)}`)
  const quiet = percentiles(times.quiet)
  const attacked = percentiles(times.attacked)
  if (attacked.p99_ms > 2 * quiet.p99_ms + form.noise_ms) {
    fail(`p99 ${attacked.p99_ms} ms beside them, ${quiet.p99_ms} ms without`)
  }
  return {
    ...{ tried: n * form.rounds, faults: n * form.rounds, failures },
    figures: {
      ...{ p50_quiet_ms: quiet.p50_ms, p50_attacked_ms: attacked.p50_ms },
      ...{ p99_quiet_ms: quiet.p99_ms, p99_attacked_ms: attacked.p99_ms },
      ...{ rss_quiet_mb: quiet_mb, rss_peak_mb: peak_mb, rss_mb_max: Math.round(rss_mb_max) },
      ...{ rss_after_mb: server.rss_mb(), dropped_ms, left: left_count },
    },
  }
}

async function open(
  attackers: ChildProcess,
  { http_port, grpc_port, operator_port, honest, hostile, keys, tasks }: Attacked,
  n: number,
  seed: number,
): Promise<readonly OpenedClient[]> {
  const target = { http_port, grpc_port, operator_port, honest, hostile, keys, tasks }
  attackers.send({ target, n, seed } satisfies SlowOrder)
  const [opened] = (await once(attackers, 'message')) as [readonly OpenedClient[]]
  return opened
}

let refs = 0

/** Sends creates and shows one after another, some on new connections. */
async function measure(server: Attacked, requests: number, times: number[]): Promise<Measured> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const own: number[] = []
  const refused: string[] = []
  for (let at = 0; at < requests; at++) {
    const type = at % 2 === 0 ? 'create' : 'show'
    const ref = `honest-${process.pid}-${type === 'create' ? ++refs : refs}`
    const op = { type, obj: 'task', conv_id, ref, ...(type === 'create' ? { data: {} } : {}) }
    const began_ms = performance.now()
    const code = await send(server, JSON.stringify({ ops: [op] }), at % 10 === 0 ? false : agent)
    own.push(performance.now() - began_ms)
    if (code !== 'ok') refused.push(`${type} ${code}`)
  }
  agent.destroy()
  times.push(...own)
  return { ...percentiles(own), refused }
}

function send(server: Attacked, text: string, agent: Agent | false): Promise<string> {
  const { path, body } = signed(server.honest, text)
  const where = { host: '127.0.0.1', port: server.http_port, method: 'POST', path, agent }
  return new Promise((resolve) => {
    const asked = request(where, (response) => {
      let answer = ''
      response.setEncoding('utf8').on('data', (chunk) => {
        answer += chunk
      })
      response.on('end', () => {
        const { request_proc, ops } = JSON.parse(answer)
        resolve(request_proc === 'ok' ? ops[0].proc : request_proc)
      })
    })
    asked.setTimeout(20_000, () => asked.destroy(new Error('no answer in 20 s')))
    asked.on('error', ({ message }) => resolve(message))
    asked.end(body)
  })
}

function percentiles(times: readonly number[]): { p50_ms: number; p99_ms: number } {
  const sorted = [...times].sort((one, other) => one - other)
  const at = (share: number): number =>
    Math.round(10 * (sorted[Math.floor(share * sorted.length)] ?? 0)) / 10
  return { p50_ms: at(0.5), p99_ms: at(0.99) }
}

function every(ms: number, fn: () => void): () => void {
  const timer = setInterval(fn, ms)
  return () => clearInterval(timer)
}

const hour_ms = 3_600_000
const without_times: SomeLimits = {
  ...{ header_ms_max: hour_ms, request_ms_max: hour_ms, idle_ms_max: hour_ms },
  ...{ reader_stalled_ms_max: hour_ms, grpc_ping_ms: hour_ms, grpc_idle_ms_max: hour_ms },
}
/** The answers stay as long as anybody wants. */
const without_bounds: SomeLimits = {
  ...without_times,
  answer_bytes_max: 64 * mb,
  ...{ answers_bytes_max: 64 * 1024 * mb, caller_answer_bytes_max: 64 * 1024 * mb },
  ...{ connection_answer_bytes_max: 64 * 1024 * mb, unverified_bytes_max: 64 * 1024 * mb },
}

/** Of a control what it is about. */
async function onlyOf(wanted: RegExp, ran: Promise<Outcome>): Promise<Outcome> {
  const { failures, ...outcome } = await ran
  return { ...outcome, failures: failures.filter(({ says }) => wanted.test(says)) }
}

export const proof: Proof = {
  name: 'slow',
  unit: 'clients',
  says: 'clients that are slow, half open or do not read are dropped in time, cost bounded memory, and at most double the p99 of an honest caller',
  quick: 80,
  long: 2_000,
  missing: () => (existsSync('/proc/self/status') ? undefined : 'it reads /proc'),
  run: (given) => run(given),
  controls: [
    {
      ...{ says: 'no limits of time', quick: 20, long: 400 },
      run: (given) => {
        const ms_max = given.n < 400 ? 1_500 : long.dropped_ms_max
        return onlyOf(/are connected/, run(given, without_times, ms_max))
      },
    },
    {
      ...{ says: 'no bounds of unread answers', quick: 80, long: 1_000 },
      run: (given) => onlyOf(/MB of memory/, run(given, without_bounds, 0)),
    },
  ],
}
