/**
 * A file on which a program with all servers is killed again and again, under load: at a moment of
 * chance while it starts, while it works, or while it ends. After most kills the file is opened and
 * judged; after the others the next program takes up what was left, which may be killed over that.
 * In the end the work that was cut off is finished and judged.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openEngine } from '../../src/open.ts'
import { type CallServer, callServer } from './call-server.ts'
import { commitLogLeft } from './commit-log-crash.ts'
import type { KillReport } from './kill-child.ts'
import { doubleSteps, finishWork, handled, handlerThat, newWorkSeen } from './kill-jobs.ts'
import { sequencesOf, startProgram } from './program.ts'
import { type BuiltChild, buildChild, type Edit } from './store-child.ts'
import { type Sequence, type SequenceKind, sequence_kinds } from './workload.ts'
import { type Callers, type Cut, openCallers, sendSequence } from './workload-callers.ts'
import { makeWorkloadFile, type WorkloadFile } from './workload-file.ts'
import { judgeWorkload, wrongBy } from './workload-judge.ts'

/** A stream has several batches under way, any other caller one request. */
const callers: Readonly<Record<SequenceKind, number>> = {
  ...{ http_path: 2, http_headers: 2, grpc: 2, stream: 1, embedded: 2 },
  ...{ single: 1, webhook: 1, callback: 1, sync: 2 },
}
/** A kill under load comes so many answers, and then so long, behind the start. */
const answers_max = 200
const load_ms_max = 20
const close_ms_max = 80
const [drain_ms_max, handler_ms_max] = [100, 10]
const first_start_ms = 600

export interface KillCounts {
  acknowledged: number
  /** Requests whose outcome their callers do not know, and those of them that are there. */
  unknown: number
  came_through: number
  /** Kills before the servers listened, and behind the signal to end. */
  in_start: number
  in_close: number
  in_checkpoint: number
  /** Groups of commits that a kill left to the commit log alone. */
  unmerged: number
}

export interface KillHarness {
  /**
   * Kills once, at a moment of chance, or at this one and judges for certain. Resolves with what was
   * lost, halved or doubled, if anything was.
   */
  round(fraction: () => number, moment?: 'load'): Promise<string | undefined>
  /** Lets all work be done, and resolves with what was wrong with it. */
  finish(): Promise<string | undefined>
  close(): Promise<void>
}

export const newKillCounts = (): KillCounts => ({
  ...{ acknowledged: 0, unknown: 0, came_through: 0 },
  ...{ in_start: 0, in_close: 0, in_checkpoint: 0, unmerged: 0 },
})

export const buildKillChild = (edits: readonly Edit[]): Promise<BuiltChild> =>
  buildChild('kill-child.ts', edits)

let harnesses = 0

export async function openKillHarness(child: BuiltChild, counts: KillCounts): Promise<KillHarness> {
  const folder = join(child.folder, `harness-${harnesses++}`)
  await mkdir(folder)
  const file = await makeWorkloadFile(folder)
  const { path } = file
  const seen = newWorkSeen()
  let life = 0
  let start_ms = first_start_ms
  let unjudged: Sequence[] = []
  let cuts: Cut[] = []
  const known: Sequence[] = []
  const server = await callServer((asked, _request, response) => {
    const { id } = JSON.parse(asked.body) as { id: string }
    const calls = seen.called.get(id) ?? { by: [], keys: new Set() }
    seen.called.set(id, calls)
    calls.by.push(life)
    calls.keys.add(asked.headers['idempotency-key'])
    setTimeout(() => response.writeHead(200).end('{"answer":1}'), Math.random() * 20)
  })

  async function judge(): Promise<string | undefined> {
    const engine = await openEngine(path, { background: false })
    try {
      const { verdict, there } = await judgeWorkload(engine, unjudged, known)
      const double_steps = await doubleSteps(engine)
      for (const sequence of unjudged) {
        counts.acknowledged += sequence.acked
        counts.unknown += sequence.sent - sequence.acked
        counts.came_through += Math.max(0, (there.get(sequence) ?? 0) - sequence.acked)
      }
      const applied = cuts
        .filter(
          ({ sequence, outcome }) =>
            outcome === 'not_applied' && there.get(sequence) !== sequence.acked,
        )
        .map(({ sequence, cause }) => `${sequence.name} is there, and was refused: ${cause}`)
      unjudged = []
      cuts = []
      return wrongBy({ ...verdict, double_steps, applied })
    } finally {
      await engine.close()
    }
  }

  return {
    async round(fraction, moment) {
      life++
      const sequences = sequencesOf(life, callers)
      unjudged.push(...sequences)
      known.push(...sequences)
      const moments = ['start', 'close', 'load', 'load', 'load', 'load'] as const
      const plan: Plan = {
        moment: moment ?? (moments[Math.floor(fraction() * moments.length)] as Plan['moment']),
        start_ms: fraction() * start_ms,
        answers: 1 + Math.floor(fraction() * answers_max),
        // Half of them when callers by every way in have had an answer.
        all_kinds: fraction() < 0.5,
        load_ms: fraction() * load_ms_max,
        close_ms: fraction() * close_ms_max,
        ...{ checks: fraction() < 0.25, blocking_commits: fraction() < 0.5 },
      }
      const ended = await liveAndDie({ child, file, server, sequences, plan })
      if (ended.wrong !== undefined) return ended.wrong
      if (ended.start_ms !== undefined) start_ms = (start_ms * 3 + ended.start_ms) / 4
      for (const { made = [], handled } of ended.reports) {
        for (const obj_id of made) seen.made.add(obj_id)
        if (handled !== undefined) seen.handled.add(handled)
      }
      cuts.push(...ended.cuts)
      if (ended.start_ms === undefined) counts.in_start++
      else if (plan.moment === 'close') counts.in_close++
      const left = await commitLogLeft(path)
      counts.unmerged += left.unmerged
      if (left.in_checkpoint) counts.in_checkpoint++
      // Now and then the next program takes up what this one left.
      return moment === undefined && fraction() < 0.25 ? undefined : judge()
    },
    async finish() {
      const wrong = await judge()
      if (wrong !== undefined) return wrong
      life++
      const engine = await openEngine(path, {
        allow_hosts: [server.host],
        handlers: { [handled]: handlerThat((obj_id) => seen.handled.add(obj_id)) },
      })
      try {
        const unfinished = await finishWork(engine, seen)
        unfinished.push(...(await engine.check()).breaches)
        return unfinished.length === 0 ? undefined : `in the end: ${unfinished.join('; ')}`
      } finally {
        await engine.close()
      }
    },
    close: () => server.close(),
  }
}

interface Plan {
  readonly moment: 'start' | 'load' | 'close'
  readonly start_ms: number
  readonly answers: number
  readonly all_kinds: boolean
  readonly load_ms: number
  readonly close_ms: number
  readonly checks: boolean
  readonly blocking_commits: boolean
}

interface Life {
  readonly child: BuiltChild
  readonly file: WorkloadFile
  readonly server: CallServer
  readonly sequences: readonly Sequence[]
  readonly plan: Plan
}

interface Death {
  readonly wrong?: string
  readonly reports: readonly KillReport[]
  readonly cuts: readonly Cut[]
  /** How long it took to listen; undefined where it was killed before. */
  readonly start_ms?: number
}

async function liveAndDie({ child, file, server, sequences, plan }: Life): Promise<Death> {
  const began_ms = performance.now()
  const timers = new Set<NodeJS.Timeout>()
  let answers = 0
  const answered_kinds = new Set<SequenceKind>()
  const kill = (after_ms: number): void =>
    void timers.add(setTimeout(() => program.running.kill('SIGKILL'), after_ms))

  function onAnswer(kind: SequenceKind): void {
    answers++
    answered_kinds.add(kind)
    if (answers < plan.answers || timers.size > 0) return
    if (plan.all_kinds && answered_kinds.size < sequence_kinds.length) return
    if (plan.moment === 'close') {
      timers.add(setTimeout(() => program.running.kill('SIGTERM'), plan.load_ms))
      kill(plan.load_ms + plan.close_ms)
    } else kill(plan.load_ms)
  }

  const { checks, blocking_commits } = plan
  const options = { url: server.url, checks, blocking_commits, drain_ms_max, handler_ms_max }
  const program = startProgram({ child, file, options, sequences, onAnswer })
  if (plan.moment === 'start') kill(plan.start_ms)
  const target = await program.listening
  const start_ms = performance.now() - began_ms
  const opened = target && (await openCallers(target))
  const others = sequences.filter(({ kind }) => opened && kind !== 'embedded')
  const sending = others.map((sequence) =>
    sendSequence(sequence, opened as Callers, () => onAnswer(sequence.kind)),
  )
  const settling = Promise.allSettled(sending)
  // A caller who got a wrong answer sends no more, and nobody may wait for the next one.
  for (const one of sending) one.catch(() => kill(0))
  const { code, signal, said } = await program.ended
  for (const timer of timers) clearTimeout(timer)
  const settled = await settling
  await opened?.close()
  const cuts = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const rejected = settled.find((one) => one.status === 'rejected')
  const is_stopped = plan.moment === 'close' && code === 0
  const is_killed = signal === 'SIGKILL' || is_stopped
  const wrong = [
    ...(is_killed ? [] : [`ended by itself, ${code} ${signal}`]),
    ...[said, program.wrong(), rejected && String(rejected.reason)],
  ]
  const failure = wrong.filter(Boolean).join('; ')
  return {
    ...{ reports: program.reports, cuts },
    ...(failure !== '' && { wrong: failure }),
    ...(target !== undefined && { start_ms }),
  }
}
