/**
 * One run of the soak: starts a server with its load and its readers, samples what it holds and how
 * fast it answers, and ends it.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { fractionsOf } from './fractions.ts'
import { top } from './package-folder.ts'
import { type Callers, openCallers } from './soak-lives.ts'
import { livesPerSecond, type Rate, startLoad } from './soak-load.ts'
import { startReaders } from './soak-readers.ts'
import {
  type Held,
  type HeldName,
  held_names,
  type ServerOptions,
  type SoakServer,
  startServer,
} from './soak-server.ts'
import type { BuiltChild } from './store-child.ts'

export interface Form {
  readonly server: Omit<ServerOptions, 'stub'>
  /** The rate; undefined: half of what the server gives, and no more than `per_s_max`. */
  readonly rate: Rate | undefined
  /** How many times are judged as one value each, and of how many samples each is. */
  readonly times: number
  readonly samples_each: number
  /** Memory is looked at without its garbage. */
  readonly is_collected: boolean
  /** How long the time is whose p99 is one value. */
  readonly p99_s: number
  /** Waits in the end until only the tasks that stand are left. */
  readonly is_left_judged: boolean
  readonly readers: { readonly every_ms: number; readonly stay_ms: number }
}

export interface Measured {
  readonly per_s: number
  /** Undefined where it was not asked for. */
  readonly per_s_max: number | undefined
  readonly sums: { readonly lives: number; readonly requests: number; readonly faults: number }
  readonly changes: number
  /** Sentences. */
  readonly wrong: readonly string[]
  readonly held: Readonly<Record<HeldName, readonly number[]>>
  /** Of the answers and of the machine, by time. */
  readonly latencies_ms: readonly (readonly number[])[]
  readonly machine_ms: readonly (readonly number[])[]
  readonly events: ReadonlyMap<string, number>
}

const per_s_max = 200
const under_way_max = 5_000
const trial = { callers_count: 32, ms: 10_000 }
const left_ms_max = 120_000

/** Of these the smallest sample of a time counts, as after a collection; of the others the largest. */
const smallest: ReadonlySet<string> = new Set([
  'heap_bytes',
  'external_bytes',
  'array_buffer_bytes',
])

export async function runSoak(
  built: BuiltChild,
  form: Form,
  given: { readonly seconds: number; readonly seed: number; emit(line: string): void },
): Promise<Measured> {
  const stub = createServer((request, response) => {
    request.resume().once('end', () => response.end('{"stub":true}'))
  })
  await new Promise<void>((resolve) => stub.listen(0, '127.0.0.1', resolve))
  const { port } = stub.address() as AddressInfo
  const server = await startServer(built, { ...form.server, stub: `http://127.0.0.1:${port}/` })
  const machine = new Worker(join(top, 'test/support/soak-machine.cjs'), {
    workerData: join(built.folder, 'synced'),
  })
  try {
    const callers = await openCallers(server.target, form.server.standing_tasks)
    const measured = await measure(server, callers, machine, form, given)
    if (form.server.worse !== undefined) {
      await callers.close().catch(() => {})
      return measured
    }
    await callers.close()
    const wrong = await server.stop()
    return { ...measured, wrong: [...measured.wrong, ...(wrong === undefined ? [] : [wrong])] }
  } finally {
    await server.kill()
    await machine.terminate()
    stub.close()
    stub.closeAllConnections()
  }
}

async function measure(
  server: SoakServer,
  callers: Callers,
  machine: Worker,
  form: Form,
  { seconds, seed, emit }: Parameters<typeof runSoak>[2],
): Promise<Measured> {
  const fraction = fractionsOf(seed)
  const { worse } = form.server
  const most = form.rate === undefined && (await livesPerSecond(callers, { ...trial, fraction }))
  const half = Math.min(per_s_max, Math.ceil(Number(most) / 2))
  const rate = form.rate ?? { per_s: half, under_way_max, is_yielding: false }
  const { per_s } = rate
  emit(
    `${per_s} lives a second${most ? `, of ${Math.round(most)} that callers reach who wait` : ''}`,
  )
  const readers = startReaders(server.target, callers.grpc, form.readers)
  let machine_now: number[] = []
  machine.on('message', (ms: number) => machine_now.push(ms))
  const load = startLoad(callers, rate, fraction)

  const held = Object.fromEntries(held_names.map((name) => [name, [] as number[]])) as Record<
    HeldName,
    number[]
  >
  const latencies_ms: number[][] = []
  const machine_ms: number[][] = []
  const began_ms = performance.now()
  const samples = form.times * form.samples_each
  const sample_ms = (seconds * 1_000) / samples
  let taken: Held[] = []
  for (let n = 1; n <= samples; n++) {
    await sleep(began_ms + n * sample_ms - performance.now())
    taken.push(await server.held(callers.grpc, form.is_collected))
    if (taken.length === form.samples_each) {
      for (const name of held_names) held[name].push(ofTime(name, taken))
      taken = []
    }
    if (n * sample_ms < (latencies_ms.length + 1) * form.p99_s * 1_000 - 1) continue
    latencies_ms.push(load.takeLatencies_ms())
    machine_ms.push(machine_now)
    machine_now = []
  }
  const { sums } = load
  if (worse === undefined) await load.end()
  const wrong = [...load.wrong]
  await readers.close().catch((error: Error) => wrong.push(`a reader: ${error.message}`))
  if (worse !== undefined) {
    await server.kill()
    await load.end()
  }
  if (worse === undefined && form.is_left_judged) {
    const left = await leftOver(() => server.held(callers.grpc, false), form)
    if (left > 0) wrong.push(`${left} tasks are left`)
  }
  return {
    ...{ per_s, per_s_max: most || undefined, sums: { ...sums }, changes: readers.changes() },
    ...{ wrong, held, latencies_ms, machine_ms, events: server.events },
  }
}

function ofTime(name: HeldName, samples: readonly Held[]): number {
  const values = samples.map((sample) => sample[name])
  return smallest.has(name) ? Math.min(...values) : Math.max(...values)
}

/** Waits until only those stand that stand for ever, and what the schedule makes meanwhile. */
async function leftOver(hold: () => Promise<Held>, { server }: Form): Promise<number> {
  const { standing_tasks, ended_kept_ms } = server
  const most = standing_tasks + 2 * (ended_kept_ms / 1_000 + 2)
  const end_ms = performance.now() + left_ms_max
  for (;;) {
    const { tasks } = await hold()
    if (tasks <= most) return 0
    if (performance.now() > end_ms) return tasks - standing_tasks
    await sleep(100)
  }
}
