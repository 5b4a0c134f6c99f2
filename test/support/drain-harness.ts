/**
 * A file whose program, with all servers, is ended by SIGTERM again and again, under load and with
 * calls open that wait: WaitTask, a feed of changes, requests that wait for their process. What a
 * caller may see:
 *
 * - a request whose last byte was sent before the signal is answered, whole: with its results, or
 *   with `shutting_down`, and then it was not applied;
 * - one that is behind an answer with `Connection: close` has none, as HTTP says;
 * - a later one is answered so too, or its connection ends without a byte of an answer, and then it
 *   was not applied either;
 * - no answer is ever cut, unless its reader takes longer than the drain may;
 * - a call that waits ends with `shutting_down`.
 *
 * The program ends with 0 within `drain_ms_max`, and a handler that was done by then is not called
 * again.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServiceError } from '@grpc/grpc-js'
import { faultOfStatus } from '../../src/client/grpc-messages.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { openEngine } from '../../src/open.ts'
import { loadSchema } from '../../src/server/grpc/schema.ts'
import { type CallServer, callServer } from './call-server.ts'
import { large_bytes, large_count, type RawRequest, startRawCallers } from './drain-callers.ts'
import type { TestClient } from './grpc-client.ts'
import { type End, sequencesOf, startProgram } from './program.ts'
import type { BuiltChild } from './store-child.ts'
import { slower } from './waits.ts'
import { plain, type Sequence, type SequenceKind } from './workload.ts'
import { type Callers, type Cut, openCallers, sendSequence } from './workload-callers.ts'
import { makeWorkloadFile, type WorkloadFile } from './workload-file.ts'
import { judgeWorkload, wrongBy } from './workload-judge.ts'

const callers: Readonly<Record<SequenceKind, number>> = {
  ...{ http_path: 2, http_headers: 1, grpc: 2, stream: 1, embedded: 1 },
  ...{ single: 2, webhook: 1, callback: 1, sync: 2 },
}
const drain_long_ms = 10_000
/** For the close of the file behind the drain. */
const closeMsMax = (): number => 500 * slower()
/** Answers before the signal, and so long behind them. */
const answers_max = 100
const handler_ms_max = 400
/** One program in so many has a reader who never reads, and drains for as long as it may. */
const [never_every, drain_short_ms] = [10, 4_000]

export interface DrainCounts {
  answered: number
  refused: number
  closed_later: number
  handlers_done: number
  exit_ms_max: number
}

export const newDrainCounts = (): DrainCounts => ({
  ...{ answered: 0, refused: 0, closed_later: 0, handlers_done: 0, exit_ms_max: 0 },
})

export interface DrainHarness {
  /** Ends the program once. Resolves with what was wrong, if anything was. */
  round(fraction: () => number): Promise<string | undefined>
  close(): Promise<void>
}

let harnesses = 0

export async function openDrainHarness(
  child: BuiltChild,
  counts: DrainCounts,
): Promise<DrainHarness> {
  const folder = join(child.folder, `drained-${harnesses++}`)
  await mkdir(folder)
  const file = await makeWorkloadFile(folder)
  const large = Array.from({ length: large_count }, (_, at) => `large ${at}`)
  const engine = await openEngine(file.path)
  for (const ref of large) {
    await engine.create({ conv_id: plain, ref, data: { text: 'x'.repeat(large_bytes) } })
  }
  await engine.close()
  const server = await callServer((_asked, _request, response) => {
    response.writeHead(200).end('{"answer":1}')
  })
  const known: Sequence[] = []
  const done = new Set<string>()
  let life = 0
  return {
    async round(fraction) {
      life++
      const sequences = sequencesOf(life, callers)
      known.push(...sequences)
      const ended = await serveAndEnd({ child, file, server, sequences, large, life, fraction })
      const wrong = [...ended.wrong]
      for (const { handled, done: id } of ended.reports) {
        if (handled !== undefined && done.has(handled))
          wrong.push(`${handled} was done, and begun again`)
        if (id !== undefined) ended.done.push(id)
      }
      for (const id of ended.done) done.add(id)
      counts.handlers_done += ended.done.length
      counts.exit_ms_max = Math.max(counts.exit_ms_max, Math.round(ended.exit_ms))
      const judged = await openEngine(file.path, { background: false })
      try {
        wrong.push(...(await wrongInFile(judged, ended, sequences, known)))
        for (const { ending, was_sent } of ended.requests) {
          if (ending === 'ok') counts.answered++
          if (ending === 'shutting_down') counts.refused++
          if (ending === 'closed' && !was_sent) counts.closed_later++
        }
        for (const { acked } of sequences) counts.answered += acked
      } finally {
        await judged.close()
      }
      return wrong.length === 0 ? undefined : wrong.join('; ').slice(0, 4_000)
    },
    close: () => server.close(),
  }
}

interface Life {
  readonly child: BuiltChild
  readonly file: WorkloadFile
  readonly server: CallServer
  readonly sequences: readonly Sequence[]
  readonly large: readonly string[]
  readonly life: number
  readonly fraction: () => number
}

async function serveAndEnd({ child, file, server, sequences, large, life, fraction }: Life) {
  let answers = 0
  const wanted = 1 + Math.floor(fraction() * answers_max)
  let onWanted = (): void => {}
  const loaded = new Promise<void>((resolve) => {
    onWanted = resolve
  })
  const onAnswer = (): void => {
    if (++answers === wanted) onWanted()
  }
  const never = fraction() * never_every < 1
  const drain_ms_max = never ? drain_short_ms : drain_long_ms
  const blocking_commits = fraction() < 0.5
  const options = { url: server.url, checks: false, blocking_commits, drain_ms_max, handler_ms_max }
  const program = startProgram({ child, file, options, sequences, onAnswer })
  const target = await program.listening
  if (target === undefined) throw new Error(`never listened: ${(await program.ended).said}`)
  const all = await openCallers(target)
  const others = sequences.filter(({ kind }) => kind !== 'embedded')
  const sequence_ends = Promise.allSettled(
    others.map((sequence) => sendSequence(sequence, all, onAnswer)),
  )
  const waits = openWaits(all, large[0] as string)
  // Behind them on their connection: once it is answered, they have arrived.
  await all.single.call('GetTask', { conv_id: plain, ref: large[0] as string })
  await loaded
  const raw = startRawCallers({ target, name: String(life), large, fraction, never })
  await sleep(2 + fraction() * 40)
  raw.noteSignal()
  const signalled_ms = performance.now()
  program.running.kill('SIGTERM')
  const { code, signal, said } = await program.ended
  const exit_ms = performance.now() - signalled_ms
  await raw.ended()
  const settled = await sequence_ends
  const wrong = [
    ...wrongEnd({ code, signal, said }, exit_ms - drain_ms_max),
    ...(await waits.ended()),
  ]
  const embedded_wrong = program.wrong()
  if (embedded_wrong !== undefined) wrong.push(embedded_wrong)
  await all.close()
  const cuts: Cut[] = []
  for (const one of settled) {
    if (one.status === 'fulfilled') cuts.push(one.value)
    else wrong.push(String(one.reason))
  }
  const { reports } = program
  return { wrong, cuts, reports, exit_ms, requests: raw.requests, done: [] as string[] }
}

function wrongEnd({ code, signal, said }: End, late_ms: number): string[] {
  const wrong: string[] = []
  if (code !== 0) wrong.push(`ended with ${code} ${signal}`)
  if (late_ms > closeMsMax()) wrong.push(`ended ${Math.round(late_ms)} ms late`)
  if (said !== '') wrong.push(said)
  return wrong
}

/** Calls that wait; each must end with `shutting_down`. */
function openWaits({ single }: Callers, ref: string): { ended(): Promise<string[]> } {
  const codeOf = (error: unknown): string => faultOfStatus(error as ServiceError).code
  const deadline = Date.now() + 100_000
  const task = single
    .call('WaitTask', { conv_id: plain, ref }, undefined, { deadline })
    .then(() => 'ok', codeOf)
  const feed = watch(single).then(codeOf)
  return {
    async ended() {
      const ends = { WaitTask: await task, WatchTasks: await feed }
      return Object.entries(ends).flatMap(([name, end]) =>
        end === 'shutting_down' ? [] : [`${name} ended with ${end}`],
      )
    },
  }
}

/** Resolves with what ended a feed of all changes. */
function watch({ client }: TestClient): Promise<unknown> {
  const { path, requestSerialize, responseDeserialize } = loadSchema().service.WatchTasks
  return new Promise((resolve) => {
    const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, {})
    call.on('data', () => {})
    call.on('error', resolve)
  })
}

interface Ended {
  readonly cuts: readonly Cut[]
  readonly requests: readonly RawRequest[]
}

async function wrongInFile(
  engine: Engine,
  { cuts, requests }: Ended,
  sequences: readonly Sequence[],
  known: readonly Sequence[],
): Promise<string[]> {
  const { verdict, there } = await judgeWorkload(engine, sequences, known)
  const found = wrongBy({ ...verdict })
  const wrong = found === undefined ? [] : [found]
  for (const { sequence, cause, outcome } of cuts) {
    // A wait that was ended may have made its task, and says so.
    if (sequence.kind === 'sync' && outcome === 'unknown') continue
    if (there.get(sequence) !== sequence.acked)
      wrong.push(`${sequence.name} was cut off: ${cause} ${outcome}`)
  }
  for (const { caller, ref, ending, was_sent, answer } of requests) {
    if (caller === 'never') continue
    const is_there = ref !== undefined && (await engine.task({ conv_id: plain, ref })) !== undefined
    const what = `${caller}: a request ${was_sent ? 'before' : 'behind'} the signal`
    if (ending === 'cut' || ending === 'other') wrong.push(`${what} was ${ending} ${answer ?? ''}`)
    if (ending === undefined) wrong.push(`${what} has no end`)
    if (ending === 'closed' && was_sent) wrong.push(`${what} has no answer`)
    if (ref !== undefined && is_there !== (ending === 'ok')) {
      wrong.push(`${what} was ${ending}, and is ${is_there ? 'there' : 'not there'}`)
    }
  }
  return wrong
}
