/**
 * Slow and half-open clients, and readers that never read, all at once against a server in its own
 * process. An honest caller is measured in turn without them and beside them, so that both figures
 * are of one run and of one machine.
 */
import { existsSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { pause, steadyClock } from '../../src/core/clock.ts'
import type { LimitName } from '../../src/core/limits.ts'
import { conv_id } from '../support/http-server.ts'
import { type SlowClient, signed, slow_clients } from '../support/slow-clients.ts'
import { type Attacked, makeSlowFile } from '../support/slow-server.ts'
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
  ...{ dropped_ms_max: 20_000, rounds: 3, requests: 1_500, noise_ms: 2 },
}

/** From so many clients on the long form is tried. */
const long_n_min = 1_000
/** What a connection may take beside bodies and answers. */
const connection_mb = 0.1
/** What the heap of a busy server takes beside its bounds. */
const heap_mb = 96
const drip_ms = 100
/** Descriptors that come and go: those of the honest caller, and a look at a file. */
const other_descriptors = 6

interface Measured {
  readonly p50_ms: number
  readonly p99_ms: number
  readonly refused: readonly string[]
}

async function run(given: Given, unbounded: SomeLimits = {}, ms_max?: number): Promise<Outcome> {
  const of_n = given.n >= long_n_min ? long : quick
  const form = { ...of_n, dropped_ms_max: ms_max ?? of_n.dropped_ms_max }
  const file = await makeSlowFile(form.tasks)
  const server = await file.start({ ...form.limits, ...unbounded })
  try {
    return await attack(server, form, given)
  } finally {
    await server.stop()
    await file.remove()
  }
}

async function attack(server: Attacked, form: Form, { n, seed, tell }: Given): Promise<Outcome> {
  const failures: Failure[] = []
  const fail = (says: string): void => void failures.push({ seed, says })
  const times = { quiet: [] as number[], attacked: [] as number[] }
  const { answers_bytes_max = 256 * mb, unverified_bytes_max = 64 * mb } = form.limits
  await measure(server, form.requests, [])
  const quiet_mb = server.rss_mb()
  const quiet_descriptors = server.descriptors()
  const rss_mb_max =
    quiet_mb + heap_mb + connection_mb * n + (answers_bytes_max + unverified_bytes_max) / mb
  let peak_mb = 0
  let dropped_ms = 0
  let left = 0
  for (let round = 0; round < form.rounds; round++) {
    const before = await measure(server, form.requests, times.quiet)
    const began_ms = performance.now()
    const clients: SlowClient[] = []
    const stopDripping = every(drip_ms, () => {
      peak_mb = Math.max(peak_mb, server.rss_mb())
      for (const client of clients) client.drip()
    })
    const opening = openAll(server, n, seed + round, clients)
    await opening
    const during = await measure(server, form.requests, times.attacked)
    for (const code of [...before.refused, ...during.refused]) fail(`an honest request: ${code}`)
    const opened_ms = performance.now() - began_ms
    do {
      await pause(steadyClock, drip_ms)
      left = server.descriptors() - quiet_descriptors - other_descriptors
      dropped_ms = Math.round(performance.now() - began_ms)
    } while (left > 0 && dropped_ms < opened_ms + form.dropped_ms_max)
    if (left > 0) fail(`${left} of ${n} are still connected after ${dropped_ms} ms`)
    stopDripping()
    for (const client of clients) client.leave()
    peak_mb = Math.max(peak_mb, server.rss_mb())
    tell(`round ${round + 1}: p99 ${before.p99_ms} ms quiet, ${during.p99_ms} ms beside ${n}`)
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
      ...{ rss_after_mb: server.rss_mb(), dropped_ms, left: Math.max(0, left) },
    },
  }
}

/** Opens clients of each kind in turn, from one that the seed says. */
async function openAll(
  server: Attacked,
  n: number,
  seed: number,
  clients: SlowClient[],
): Promise<void> {
  const at_once = 16
  let next = 0
  const openSome = async (): Promise<void> => {
    for (let at = next++; at < n; at = next++) {
      const [, open] = slow_clients[(seed + at) % slow_clients.length] as (typeof slow_clients)[0]
      clients.push(await open(server))
    }
  }
  await Promise.all(Array.from({ length: at_once }, openSome))
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

export const proof: Proof = {
  name: 'slow',
  unit: 'clients',
  says: 'clients that are slow, half open or do not read are dropped in time, cost bounded memory, and at most double the p99 of an honest caller',
  quick: 160,
  long: 2_000,
  missing: () => (existsSync('/proc/self/status') ? undefined : 'it reads /proc'),
  run: (given) => run(given),
  controls: [
    {
      ...{ says: 'no limits of time', quick: 40, long: 400 },
      run: (given) => run(given, without_times, 500),
    },
    {
      ...{ says: 'no bounds of unread answers', quick: 80, long: 1_000 },
      run: (given) => run(given, without_bounds, 0),
    },
  ],
}
