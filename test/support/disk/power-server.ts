/**
 * The trace of a server under load: its file is made, callers of both its servers work on it, and it
 * is killed, started again, stopped and started again. With it, from which line of the trace on each
 * request was answered: the one at which the server began to send the last byte of the answer.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Relay, startRelay } from '../relay.ts'
import { builtOnce, builtProgram, type Edit } from '../store-child.ts'
import { newSequence, type Sequence, type SequenceKind } from '../workload.ts'
import { openCallers, sendSequence, sendSteadily, type Target } from '../workload-callers.ts'
import { diskHarness } from './harness.ts'
import { type DiskEvent, type DiskTrace, newDiskTrace } from './power-trace.ts'
import { firstLine, type Listening, serveWords } from './serve.ts'

export interface AnsweredSequence {
  /** `acked` counts nothing here: `answered_at` says from when on. */
  readonly sequence: Sequence
  /** By request, the line of the trace; some of the last may be missing. */
  readonly answered_at: readonly number[]
}

export interface ServerTrace {
  readonly events: readonly DiskEvent[]
  readonly sequences: readonly AnsweredSequence[]
  /** The line from which on the file has its processes and its user. */
  readonly ready_at: number
}

export interface TraceOptions {
  readonly edits: readonly Edit[]
  readonly checkpoint_bytes: number
  /** How each life ends, and after how many answers; a kill in a checkpoint has its own time. */
  readonly lives: readonly (readonly [end: LifeEnd, answers: number])[]
}

export type LifeEnd = 'SIGKILL' | 'SIGTERM' | 'SIGKILL in a checkpoint'

const killed_in: LifeEnd = 'SIGKILL in a checkpoint'
/**
 * The process that writes kills itself in this one, in the sync of its last commit. The segment of an odd one is
 * the first, into which the next process writes where the other has nothing.
 */
const last_checkpoint = 5
/**
 * It does so right after it, which the reader of the trace corrects, together with the process that
 * it writes for, and before the record of the sums of its pages.
 */
const kills_itself: readonly Edit[] = [
  {
    file: 'store/commit-log/checkpoint.ts',
    from: 'commitSlice(tree, own, slice, manifest)\n',
    to: `process.env.CHECKPOINTS_LEFT = String(Number(process.env.CHECKPOINTS_LEFT ?? 0) - 1)
    commitSlice(tree, own, slice, manifest)\n`,
  },
  {
    file: 'store/lmdb/commits.ts',
    from: 'if (!goes_on) sums.mark()',
    to: `if (!goes_on && process.env.CHECKPOINTS_LEFT === '0') {
        process.kill(process.ppid, 'SIGKILL')
        process.kill(process.pid, 'SIGKILL')
      }
      if (!goes_on) sums.mark()`,
  },
]

export async function traceServer(options: TraceOptions): Promise<ServerTrace> {
  const { edits, checkpoint_bytes, lives } = options
  const { access, certificate_name } = await diskHarness()
  const [server, setup] = await Promise.all([
    builtProgram([...edits, ...kills_itself]),
    builtOnce('disk/power-setup-child.ts', edits.filter(isInStore)),
  ])
  const folder = mkdtempSync(join(server.folder, 'disk-'))
  const path = join(folder, 'db')
  const trace = newDiskTrace(folder)
  try {
    const made = trace.start([setup.script, path, certificate_name])
    const user = await firstLine<Pick<Target, 'user' | 'secret'>>(made)
    await trace.end()
    const ready_at = trace.events.findLast(({ what }) => what === 'said')?.began ?? 0
    const target = { ...user, folder: access.folder }
    const listeners = ['http', 'grpc'] as const
    const limits = { checkpoint_bytes, drain_ms_max: 2_000 }
    const { script } = server
    const args = serveWords({ script, path, listeners, tls: target.folder, limits })
    const sequences: AnsweredSequence[] = []
    for (const [place, [end, answers]] of lives.entries()) {
      const life = { place, end, answers, target }
      sequences.push(...(await traceLife(trace, args, life)))
    }
    return { events: trace.events, sequences, ready_at }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const sequence_kinds: readonly SequenceKind[] = ['http_path', 'grpc', 'stream', 'single']

const isInStore = ({ file }: Edit): boolean => file.startsWith('store/')

interface Life {
  readonly place: number
  readonly end: LifeEnd
  readonly answers: number
  readonly target: Omit<Target, 'url' | 'address'>
}

interface Caller {
  readonly sequence: Sequence
  readonly taps: readonly Relay[]
  /** By request, what the caller had received by then. */
  readonly received: ReadonlyMap<number, number>[]
}

async function traceLife(trace: DiskTrace, args: readonly string[], life: Life) {
  const first_event = trace.events.length
  const is_own_kill = life.end === killed_in
  const env = is_own_kill ? { CHECKPOINTS_LEFT: String(last_checkpoint) } : {}
  const { http, grpc, pid } = await firstLine<Listening>(trace.start(args, env))
  const callers: Caller[] = []
  const stop = new AbortController()
  let answers = 0
  const onAck = (caller: Caller): void => {
    caller.received.push(new Map(caller.taps.flatMap((tap) => [...tap.counts()])))
    if (++answers !== life.answers || is_own_kill) return
    if (life.end === 'SIGKILL') process.kill(pid, 'SIGKILL')
    else stop.abort()
  }
  const is_stopped = life.end === 'SIGTERM'
  const kinds = is_stopped ? sequence_kinds.filter((kind) => kind !== 'stream') : sequence_kinds
  await Promise.all(
    kinds.map(async (kind) => {
      const ports = [new URL(http).port, grpc.split(':')[1]].map(Number)
      const taps = await Promise.all(ports.map((port) => startRelay({ host: '127.0.0.1', port })))
      const [url = '', address = ''] = taps.map(({ host, port }) => `${host}:${port}`)
      const sequence = newSequence(`${kind} ${life.place}`, kind)
      const caller: Caller = { sequence, taps, received: [] }
      callers.push(caller)
      const clients = await openCallers({ ...life.target, url: `http://${url}`, address })
      try {
        if (is_stopped) {
          await sendSteadily(sequence, clients, { signal: stop.signal, onAck: () => onAck(caller) })
        } else await sendSequence(sequence, clients, () => onAck(caller))
      } finally {
        await clients.close()
        for (const tap of taps) tap.close()
      }
    }),
  )
  if (is_stopped) process.kill(pid, 'SIGTERM')
  const last_line = await trace.end(is_own_kill ? 'db' : undefined)
  const sent = sentBy(trace.events.slice(first_event))
  return callers.map(({ sequence, received }) => ({
    sequence,
    answered_at: received.map((counts) => lineOf(counts, sent, last_line)),
  }))
}

/** By port of the peer, what was sent up to each line. */
function sentBy(events: readonly DiskEvent[]): Map<number, { line: number; count: number }[]> {
  const sent = new Map<number, { line: number; count: number }[]>()
  for (const event of events) {
    if (event.what !== 'sent') continue
    const all = sent.get(event.port) ?? []
    all.push({ line: event.began, count: (all.at(-1)?.count ?? 0) + event.count })
    sent.set(event.port, all)
  }
  return sent
}

/** The line at which the last byte of all that was received was being sent. */
function lineOf(
  counts: ReadonlyMap<number, number>,
  sent: ReturnType<typeof sentBy>,
  last_line: number,
): number {
  const lines = [...counts].map(([port, count]) => {
    const own = sent.get(port)?.find((one) => one.count >= count)
    // The kill has cut that call off.
    return own?.line ?? last_line
  })
  return Math.max(...lines)
}
