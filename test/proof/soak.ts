/**
 * `npm run proof:soak -- [--n SECONDS]`: a server under everything at once, at a fixed rate and with a
 * constant population, for an hour. What it holds stays flat, and its answers stay as fast.
 *
 * The load is HTTP signed in both ways, gRPC with streams and waits, webhooks, synchronous requests,
 * timers, code, calls, a schedule, failed tasks, new connections, broken ones, and readers of the
 * feed, of metrics and of the admin socket (test/support/soak-lives, soak-readers). Its rate is half
 * of what callers reach here who wait for each answer, and at most 200 lives a second.
 *
 * In less than four minutes neither is the population constant nor has the heap found its size. Then
 * memory is looked at without its garbage, and neither the whole memory of the process nor the time
 * of answers is judged.
 */
import { rmSync } from 'node:fs'
import { type Bound, growthOf, median, shareOf, short, slowdownOf } from '../support/soak-judge.ts'
import { type Form, type Measured, runSoak } from '../support/soak-run.ts'
import { type HeldName, held_names, type Worse } from '../support/soak-server.ts'
import { type BuiltChild, buildChild } from '../support/store-child.ts'
import type { Given, Outcome, Proof } from './proof.ts'

const mib = 2 ** 20
const long_s_min = 240

/** By how much each may grow over three quarters of the run. */
const bounds: Readonly<Record<HeldName, Bound>> = {
  rss_bytes: { share: 0.05, floor: 16 * mib },
  anonymous_bytes: { share: 0.05, floor: 16 * mib },
  heap_bytes: { share: 0.05, floor: 4 * mib },
  external_bytes: { share: 0.05, floor: 4 * mib },
  array_buffer_bytes: { share: 0.05, floor: 4 * mib },
  descriptors: { share: 0.05, floor: 32 },
  threads: { share: 0, floor: 2 },
  file_bytes: { share: 0.05, floor: 4 * mib },
  log_bytes: { share: 0.05, floor: 4 * mib },
  tasks: { share: 0.05, floor: 30 },
}

const long: Form = {
  server: {
    ...{ ended_kept_ms: 10_000, changes_kept_ms: 30_000, checkpoint_bytes: 2 * mib },
    standing_tasks: 1_000,
  },
  ...{ rate: undefined, times: 40, samples_each: 6, is_collected: false, p99_s: 60 },
  is_left_judged: true,
  readers: { every_ms: 1_000, stay_ms: 10_000 },
}

const quick: Form = {
  server: {
    ...{
      ended_kept_ms: 200,
      changes_kept_ms: 1_000,
      checkpoint_bytes: mib / 4,
      standing_tasks: 100,
    },
  },
  ...{ times: 12, samples_each: 1, is_collected: true, p99_s: 0.25 },
  // On a machine that is busy with other tests it is less.
  rate: { per_s: 100, under_way_max: 30, is_yielding: true },
  is_left_judged: false,
  readers: { every_ms: 100, stay_ms: 300 },
}
/** Is built once, for the claim and the control. */
let built: Promise<BuiltChild> | undefined

function builtServer(): Promise<BuiltChild> {
  built ??= buildChild('../../bin/conveyor.ts').then((child) => {
    process.once('exit', () => rmSync(child.folder, { recursive: true, force: true }))
    return child
  })
  return built
}

/** How much memory a new process has is no sign of what it needs. */
const not_quick: ReadonlySet<string> = new Set(['rss_bytes', 'anonymous_bytes'])

/** One that slows down answers them to its end: the control is to be slow, and not to fall silent. */
const slow_rate = { per_s: 3, under_way_max: 5_000, is_yielding: false }

async function soak({ n: seconds, seed, emit }: Given, worse?: Worse): Promise<Outcome> {
  const is_long = seconds >= long_s_min
  const form = is_long ? long : { ...quick, p99_s: seconds / 4 }
  const { server, rate } = form
  const found = await runSoak(
    await builtServer(),
    worse === undefined
      ? form
      : { ...form, server: { ...server, worse, ended_kept_ms: 1e9 }, rate: rate ?? slow_rate },
    { seconds, seed, emit },
  )
  const grown = held_names
    .filter((name) => is_long || !not_quick.has(name))
    .map((name) => growthOf({ name, bound: bounds[name], values: found.held[name] }))
  const p99 = (all: readonly (readonly number[])[]): number[] =>
    all.map((one) => shareOf(one, 0.99))
  const speed = { p99_ms: p99(found.latencies_ms), machine_ms: p99(found.machine_ms) }
  const slowdown = is_long ? slowdownOf(speed) : undefined
  const says = [...found.wrong, ...grown, slowdown].filter((one) => one !== undefined)
  return {
    ...{ tried: seconds, faults: found.sums.faults, figures: figuresOf(found, speed) },
    failures: says.map((sentence) => ({ seed, says: sentence })),
  }
}

type Figures = Record<string, number | string>

function figuresOf(
  { per_s, per_s_max, sums, changes, held, latencies_ms, events }: Measured,
  { p99_ms, machine_ms }: { p99_ms: readonly number[]; machine_ms: readonly number[] },
): Figures {
  const secondAndLast = (all: readonly number[]): string =>
    [all[1], all.at(-1)].map((value) => (value ?? 0).toFixed(2)).join(' → ')
  const quarter = Math.floor(held.tasks.length / 4)
  const flat = held_names.map((name) => {
    const second = held[name].slice(quarter, 2 * quarter)
    return [name, `${short(median(second))} → ${short(median(held[name].slice(-quarter)))}`]
  })
  return {
    lives_per_s: per_s_max === undefined ? per_s : `${per_s} of ${Math.round(per_s_max)}`,
    ...{ lives: sums.lives, requests: sums.requests, changes_read: changes },
    p50_ms: secondAndLast(latencies_ms.map((one) => median(one))),
    p99_ms: secondAndLast(p99_ms),
    p99_machine_ms: secondAndLast(machine_ms),
    p99_all_ms: p99_ms.map((value) => value.toFixed(1)).join(' '),
    p99_machine_all_ms: machine_ms.map((value) => value.toFixed(1)).join(' '),
    ...Object.fromEntries(flat),
    events: [...events].map(([name, count]) => `${name} ${count}`).join(', ') || 'none',
  }
}

/** What the control must be told of: the ways in which its server is worse. */
const worse_seen = [/^array_buffer_bytes grew/, /^descriptors grew/, /^tasks grew/]
/** In the long form. */
const slower_seen = /^p99 grew/

export const proof: Proof = {
  name: 'soak',
  unit: 'seconds',
  says: 'what a server holds stays flat under constant load, and its answers as fast',
  quick: 1,
  long: 3_600,
  missing: () => (process.platform === 'linux' ? undefined : 'it reads /proc'),
  run: (given) => soak(given),
  controls: [
    {
      says: 'a server that leaks memory and descriptors, keeps ended tasks and slows down',
      // In one second a busy machine may serve too few requests for the leaks to pass the bounds.
      quick: 2,
      long: long_s_min,
      async run(given) {
        const is_long = given.n >= long_s_min
        const worse = is_long
          ? { bytes: 16_384, descriptor_every: 10, us_more: 150, ms_max: 250 }
          : { bytes: 262_144, descriptor_every: 1, us_more: 0, ms_max: 0 }
        const outcome = await soak(given, worse)
        const wanted = is_long ? [...worse_seen, slower_seen] : worse_seen
        const unseen = wanted.filter((one) => !outcome.failures.some(({ says }) => one.test(says)))
        for (const { says } of outcome.failures) given.emit(`  seen: ${says}`)
        if (unseen.length === 0) return outcome
        given.emit(`  unseen: ${unseen.join()}`)
        return { ...outcome, failures: [] }
      },
    },
  ],
}
