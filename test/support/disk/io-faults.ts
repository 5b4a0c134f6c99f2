/**
 * A server whose system calls on its data files fail (io-faults.c): one try of 500 requests, and a
 * judgement of their answers, how the server ended, and what is in the file.
 *
 * The server works on a file that was closed, or on one that a killed server has left. Whatever
 * fails, no answer is wrong; the server goes on, or ends by itself within a second with code 3 and
 * one sentence or event; and the file opens then, with everything that was answered.
 */

import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../src/client/api.ts'
import { isClientFault } from '../../../src/client/faults.ts'
import { connect } from '../../../src/client.ts'
import { openEngine } from '../../../src/open.ts'
import { builtProgram, type Edit } from '../store-child.ts'
import { slower } from '../waits.ts'
import { newSequence, requestOf, type Sequence, type SequenceKind } from '../workload.ts'
import { noteOf } from '../workload-callers.ts'
import { pathIn, type WorkloadFile } from '../workload-file.ts'
import { judgeWorkload, wrongBy } from '../workload-judge.ts'
import { type DiskHarness, diskHarness, ioEnv } from './harness.ts'
import { type Listening, type Running, startServing, timeOfDay } from './serve.ts'

/** The n-th such call of the process on the file whose path ends like this. */
export interface Point {
  readonly call: string
  readonly end: string
  readonly n: number
  readonly kind: 'reads' | 'writes' | 'other'
}

type FaultName = 'EIO' | 'ENOSPC' | 'EINTR' | 'short'

export interface IoFault extends Pick<Point, 'call' | 'end' | 'n'> {
  readonly error: FaultName
  readonly how: 'once' | 'ever'
  /** What the server begins with. */
  readonly on: State
}

export const states = ['closed', 'killed'] as const
export type State = (typeof states)[number]

/**
 * LMDB kills the process when it cannot open a file. No failing write may: those of LMDB are the
 * checkpoint process's.
 */
type IoEnd = 'went on' | 'stopped' | 'did not start' | 'killed by LMDB'

interface IoResult {
  readonly is_reached: boolean
  /** What is wrong with it. */
  readonly wrong?: string
  readonly end: IoEnd
  readonly answered: number
  readonly refused: number
  /** From the fault to the end of a server that ended by itself. */
  readonly stopped_ms?: number
  readonly points: readonly Point[]
  /** What the server wrote to standard error. */
  readonly said: string
}

/** Most requests are one op: what costs time is the start and the end. */
const kinds: readonly SequenceKind[] = [
  'http_path',
  'http_path',
  ...new Array<SequenceKind>(8).fill('single'),
]
const requests_of_sequence = 50
const limits = { checkpoint_bytes: 64 * 1024, drain_ms_max: 500 }
/** A server that neither answers nor ends for so long hangs. */
const silentMsMax = (): number => 60_000 * slower()
/** A second, or two where a child is replaced. */
const stopMsMax = (): number => 2_000 * slower()
/** A full disk may be so for good. */
const refused_max = 3
const client_options = { retries_max: 0, timeout_ms: 600_000 }

/** Of a control: what else is in the environment of its server. */
export interface IoProgram {
  readonly edits?: readonly Edit[]
  readonly env?: Readonly<Record<string, string>>
}

/** The folders of the files that a server may begin with. */
let begun: Readonly<Record<State, Promise<string>>> | undefined

/** Without a fault, the result has all points. */
export async function attempt(
  fault: IoFault | undefined,
  on: State,
  { edits = [], env = {} }: IoProgram = {},
): Promise<IoResult> {
  const harness = await diskHarness()
  begun ??= { closed: makeClosed(harness), killed: makeClosed(harness).then(killOn) }
  const own = harness.newFolder()
  cpSync(await begun[on], own, { recursive: true })
  const path = pathIn(own)
  const log = `${own}.log`
  const sequences = kinds.map((kind, at) => newSequence(`${kind} ${at}`, kind))
  try {
    const of_library = ioEnv(harness, { path, log, ...(fault && { fault: textOf(fault) }) })
    const preloaded = [of_library.LD_PRELOAD, env.LD_PRELOAD].filter((one) => one !== undefined)
    const { script } = await builtProgram(edits)
    const all_env = { ...of_library, ...env, LD_PRELOAD: preloaded.join(':') }
    const server = watch(serveFile(script, path, all_env))
    const loaded = await load(server, sequences, harness.access)
    const { code, ended_ms, is_hung, said } = await server.ended
    const reached = existsSync(log) ? readFileSync(log, 'utf8') : ''
    const faults_ms = [...reached.matchAll(/^fault (\d+)$/gm)].map(([, ns]) => Number(ns) / 1e6)
    const stopped_ms = stopTime(faults_ms, ended_ms, loaded, said)
    const wrong =
      loaded.wrong ??
      (is_hung
        ? `it hung: ${said.slice(-500)}`
        : wrongEnd(code, loaded, said, { stopped_ms, fault })) ??
      (await wrongIn(path, sequences))
    return {
      is_reached: faults_ms.length > 0,
      end: endOf(code, loaded),
      answered: sequences.reduce((sum, sequence) => sum + sequence.acked, 0),
      ...{ refused: loaded.refused, said },
      points: fault === undefined ? pointsIn(reached) : [],
      ...(wrong !== undefined && { wrong }),
      ...(stopped_ms !== undefined && { stopped_ms }),
    }
  } finally {
    rmSync(own, { recursive: true, force: true })
    rmSync(log, { force: true })
  }
}

const makeClosed = async ({ putFile }: DiskHarness): Promise<string> => dirname(putFile())

async function killOn(folder: string): Promise<string> {
  const { script } = await builtProgram()
  const { first_line, child, ended } = serveFile(script, pathIn(folder), {})
  await first_line
  child.kill('SIGKILL')
  await ended
  return folder
}

const serveFile = (script: string, path: string, env: NodeJS.ProcessEnv): Running =>
  startServing({ script, path, listeners: ['http'], limits }, env)

function textOf({ call, end, n, error, how }: IoFault): string {
  const named = error === 'short' ? 'short' : constants.errno[error]
  return `${call} ${end} ${n} ${named} ${how}`
}

function pointsIn(log: string): Point[] {
  const kinds = ['reads', 'writes', 'other'] as const
  return log.split('\n').flatMap((line) => {
    const [call, end, n, kind] = line.split(' ')
    if (call === undefined || end === undefined || kind === undefined) return []
    return [{ call, end, n: Number(n), kind: kinds[Number(kind)] ?? 'other' }]
  })
}

interface Server {
  /** Undefined where it ended before it listened. */
  readonly url: Promise<string | undefined>
  onAnswer(): void
  stop(): void
  /** Whether it goes on and refuses signed requests, until its key file can be read. */
  hasNoKey(): boolean
  readonly ended: Promise<{
    readonly code: number | string
    /** Of the time of day. */
    readonly ended_ms: number
    readonly is_hung: boolean
    readonly said: string
  }>
}

/** Ends a server that hangs. */
function watch({ child, first_line, ended, said }: Running): Server {
  let is_hung = false
  const timer = setTimeout(() => {
    is_hung = true
    child.kill('SIGKILL')
  }, silentMsMax())
  return {
    url: first_line.then((line) => line && (JSON.parse(line) as Listening).http),
    onAnswer: () => void timer.refresh(),
    stop: () => void child.kill('SIGTERM'),
    hasNoKey: () => without_key.test(said()),
    ended: ended.then(({ code, signal, ended_ms }) => {
      clearTimeout(timer)
      return { code: code ?? signal ?? '', ended_ms, is_hung, said: said() }
    }),
  }
}

interface Loaded {
  readonly is_served: boolean
  /** When the first request was sent. */
  readonly served_ms: number
  /** Whether each request was answered or refused for want of space. */
  readonly is_done: boolean
  readonly refused: number
  readonly wrong?: string
}

/** Sends the requests of all sequences, and stops the server if they were taken. */
async function load(
  server: Server,
  sequences: readonly Sequence[],
  access: WorkloadFile['access'],
): Promise<Loaded> {
  const url = await server.url
  if (url === undefined) return { is_served: false, served_ms: 0, is_done: false, refused: 0 }
  const served = { is_served: true, served_ms: timeOfDay() }
  server.onAnswer()
  const { user, secret } = access
  const client = await connect({ url, user, secret, ...client_options })
  try {
    const ended = await Promise.all(
      sequences.map((sequence) => sendSequence(sequence, client, server.onAnswer)),
    )
    const refused = ended.reduce((sum, one) => sum + one.refused, 0)
    const is_done = ended.every((one) => one.is_done)
    if (is_done || server.hasNoKey()) server.stop()
    return { ...served, is_done, refused }
  } catch (error) {
    server.stop()
    const wrong = `a caller got a wrong answer: ${(error as Error).message}`
    return { ...served, is_done: false, refused: 0, wrong }
  } finally {
    await client.close()
  }
}

/** Rejects where an answer is wrong. */
async function sendSequence(sequence: Sequence, client: Client, onAnswer: () => void) {
  const note = noteOf(sequence, onAnswer)
  let refused = 0
  /** Whether it was answered; a refused request is sent again. */
  const send = async (work: () => Promise<void>): Promise<boolean> => {
    for (;;) {
      try {
        await work()
        return true
      } catch (error) {
        if (!isClientFault(error)) throw error
        if (error.code !== 'no_space' || ++refused >= refused_max) return false
        await sleep(50)
      }
    }
  }
  while (sequence.sent < requests_of_sequence) {
    sequence.sent++
    const parts = requestOf(sequence, sequence.sent)
    const is_answered = await send(async () =>
      note(parts, await client.apply(parts.map(({ op }) => op))),
    )
    if (!is_answered) return { refused, is_done: refused >= refused_max }
  }
  return { refused, is_done: true }
}

const lmdb_signals: readonly unknown[] = ['SIGSEGV', 'SIGABRT', 'SIGBUS']

function endOf(code: number | string, { is_served }: Loaded): IoEnd {
  if (lmdb_signals.includes(code)) return 'killed by LMDB'
  return code === 0 ? 'went on' : is_served ? 'stopped' : 'did not start'
}

const without_key = /^{.*"event":"key_missing".*"works":false.*$/m
const failures = /^{.*"time":"([^"]+)".*"event":"store_failed".*$/gm

/** From the call that has failed last before the event, unless it failed before all requests. */
function stopTime(
  faults_ms: readonly number[],
  ended_ms: number,
  { served_ms, is_done }: Loaded,
  said: string,
): number | undefined {
  const [[, time] = []] = said.matchAll(failures)
  // What fails in the close that was asked for does not hurry it.
  if (time === undefined || is_done) return undefined
  const logged_ms = Date.parse(time) + 1
  const fault_ms = faults_ms.findLast((at_ms) => at_ms <= logged_ms)
  return fault_ms === undefined || fault_ms < served_ms ? undefined : ended_ms - fault_ms
}

/** The code of a refusal to start, where it is one line. */
function refusalIn(said: string): string | undefined {
  const lines = said.split('\n').filter((line) => line.startsWith('{"error":'))
  const [line] = lines
  if (lines.length !== 1 || line === undefined) return undefined
  return (JSON.parse(line) as { readonly error: string }).error
}
const refusals: readonly unknown[] = ['not_possible', 'not_a_database', 'no_space', 'store_failed']

/** Whether the call changes a file. */
export const isWrite = ({ call }: Pick<Point, 'call'>): boolean =>
  /^(child\.|probe\.)?(p?write|p?writev|fsync|fdatasync|ftruncate)$/.test(call)

/** It goes on, or stops with one event, or does not start with one sentence. */
function wrongEnd(
  code: number | string,
  { is_served, is_done }: Loaded,
  said: string,
  {
    stopped_ms,
    fault,
  }: { readonly stopped_ms?: number | undefined; readonly fault?: IoFault | undefined },
): string | undefined {
  const events = [...said.matchAll(failures)].length
  const what = `exit ${code}, ${events} of the event: ${said.slice(-1_500)}`
  if (lmdb_signals.includes(code)) {
    return fault === undefined || isWrite(fault) ? `it was killed, ${what}` : undefined
  }
  if (!is_served) {
    const is_refused = code === 3 && refusals.includes(refusalIn(said))
    return is_refused ? undefined : `it did not start, ${what}`
  }
  const goes_on = is_done || without_key.test(said)
  if (code === 0) return goes_on && events === 0 ? undefined : `it lost callers, ${what}`
  if (code !== 3 || events !== 1) return `it did not stop as it should, ${what}`
  return (stopped_ms ?? 0) > stopMsMax() ? `it took ${stopped_ms} ms, ${what}` : undefined
}

/** What is wrong in the file, opened again on a disk that works. */
async function wrongIn(path: string, sequences: readonly Sequence[]): Promise<string | undefined> {
  try {
    const engine = await openEngine(path, { background: false })
    try {
      const { verdict } = await judgeWorkload(engine, sequences)
      const wrong = wrongBy({ ...verdict })
      return wrong === undefined ? undefined : `the file: ${wrong.slice(0, 1_000)}`
    } finally {
      await engine.close()
    }
  } catch (error) {
    return `the file cannot be opened again: ${(error as Error).message}`
  }
}
