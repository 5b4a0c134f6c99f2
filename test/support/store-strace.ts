/**
 * The system calls of a process, in order: was a commit on disk before its reply was sent?
 *
 * LMDB writes the changed pages, syncs them, and then writes one of its two meta pages through a
 * descriptor that syncs each write; only then do the pages count. `syncOrderMistakes` checks this
 * before every reply, which is a line on standard output or bytes on a socket.
 *
 * Calls of several threads interleave, so a call has a line where it began and one where it ended.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildChild, type Edit } from './store-child.ts'

export interface Call {
  readonly name: string
  /** As strace prints them; a file descriptor carries its path, `7</tmp/file>`. */
  readonly args: string
  readonly result: string
  /** Its number; of a thread and of a process these differ, but for the first of one. */
  readonly thread: string
  /** Line numbers of the trace. */
  readonly began: number
  readonly ended: number
}

export interface TracedRun {
  readonly calls: Call[]
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
}

export interface TraceOptions {
  /** Where the trace goes. */
  readonly trace: string
  readonly env?: Readonly<Record<string, string>>
  /** Makes a call fail, as strace's `-e inject` takes it. Counts go by thread. */
  readonly inject?: string
  /** Only calls on this file are traced, and made to fail. */
  readonly only?: string
}

const traced_calls =
  'openat,read,pread64,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,msync,sendto,sendmsg'
const writes = new Set(['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2'])
const syncs = new Set(['fsync', 'fdatasync', 'msync'])
const meta_pages = 2
const mark_at = 512

/** False on machines without strace, or where it may not trace. */
export function canTrace(): boolean {
  return spawnSync('strace', ['-f', '-o', '/dev/null', 'true']).status === 0
}

/** Runs `node` with `args` under strace until it ends. */
export async function runTraced(
  args: readonly string[],
  options: TraceOptions,
): Promise<TracedRun> {
  const inject = options.inject === undefined ? [] : ['-e', `inject=${options.inject}`]
  const only = options.only === undefined ? [] : ['-P', options.only]
  const child = spawn(
    'strace',
    [
      '-f',
      '-y',
      '-s',
      '80',
      '-e',
      `trace=${traced_calls}`,
      ...inject,
      ...only,
      '-o',
      options.trace,
    ].concat(process.execPath, args),
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...options.env } },
  )
  const out = { stdout: '', stderr: '' }
  child.stdout.on('data', (bytes) => {
    out.stdout += bytes
  })
  child.stderr.on('data', (bytes) => {
    out.stderr += bytes
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { ...out, code, calls: readTrace(await readFile(options.trace, 'utf8')) }
}

/** The calls of a trace in the order in which they ended; one that never ended is left out. */
export function readTrace(trace: string): Call[] {
  const reader = newTraceReader()
  return trace.split('\n').flatMap((line) => reader.take(line) ?? [])
}

export interface TraceReader {
  /** Takes the lines of a trace one by one, and answers the call that a line ends. */
  take(text: string): Call | undefined
  /** Calls that the end of their thread has cut off, as far as their lines were taken. */
  cutOff(): readonly Call[]
}

export function newTraceReader(): TraceReader {
  const begun = new Map<string, { text: string; began: number }>()
  const cut_off: Call[] = []
  let line = -1
  return {
    take(text) {
      line++
      const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(text) ?? []
      if (rest.endsWith('<unfinished ...>')) {
        begun.set(thread, { text: rest.slice(0, -'<unfinished ...>'.length), began: line })
        return undefined
      }
      const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
      const start = resumed === null ? undefined : begun.get(thread)
      if (start !== undefined) begun.delete(thread)
      if (resumed !== null && start === undefined) return undefined
      const whole = start === undefined || resumed === null ? rest : start.text + resumed[1]
      const [, name, args = '', result = ''] = /^(\w+)\((.*)\) += (.*)$/.exec(whole) ?? []
      if (name === undefined) return undefined
      const call = { name, args, result, thread, began: start?.began ?? line, ended: line }
      if (result !== '?') return call
      cut_off.push(call)
      return undefined
    },
    cutOff() {
      const open = [...begun].flatMap(([thread, { text, began }]) => {
        const [, name, args = ''] = /^(\w+)\((.*)$/.exec(text) ?? []
        return name === undefined ? [] : [{ name, args, result: '?', thread, began, ended: line }]
      })
      return [...cut_off, ...open]
    },
  }
}

export function isWrite(call: Call): boolean {
  return writes.has(call.name)
}

/** Text that a traced process wrote with one call. */
export function isWriteOf(call: Call, text: string): boolean {
  return isWrite(call) && call.args.includes(text)
}

/**
 * One sentence for each reply that was not preceded, since the reply before, by a whole commit of
 * the database at `path`, or was preceded by one done in the wrong order: pages written, then
 * synced, then the meta page written and synced. No sentence means that all is well; a trace
 * without a reply is a mistake itself.
 */
export function syncOrderMistakes(
  calls: readonly Call[],
  path: string,
  isReply: (call: Call) => boolean,
  page_bytes = 4096,
): string[] {
  const replies = calls.filter(isReply)
  if (replies.length === 0) return ['there is no reply in the trace']
  const commits = commitsOf(calls, path, page_bytes)
  const mistakes: string[] = []
  let since = -1
  for (const [index, reply] of replies.entries()) {
    const own = commits.filter(({ ended }) => ended > since && ended < reply.began)
    const mistake = own.length === 0 ? 'no meta page was written' : own.find(isMistaken)?.mistake
    if (mistake !== undefined) mistakes.push(`reply ${index}: ${mistake}`)
    since = reply.began
  }
  return mistakes
}

export interface Commit {
  /** When the write of its meta page began and ended. */
  readonly began: number
  readonly ended: number
  readonly mistake: string | undefined
}

const isMistaken = ({ mistake }: Commit): boolean => mistake !== undefined

/** Each write of a meta page ends a commit, of the pages written since the meta page before. */
export function commitsOf(calls: readonly Call[], path: string, page_bytes = 4096): Commit[] {
  const meta_bytes = meta_pages * page_bytes
  const synced = syncedHandles(calls, path)
  const onFile = calls.filter((call) => call.args.includes(`<${path}>`))
  const written = onFile.filter(isWrite)
  const isSynced = (from: number, to: number): boolean =>
    onFile.some((call) => isSync(call) && call.began > from && call.ended < to)
  const commits: Commit[] = []
  let pages: Call[] = []
  for (const [place, call] of written.entries()) {
    // LMDB creates a file with both meta pages in one write.
    if (offsetOf(call) === 0) continue
    // The records that are beside LMDB's own in its meta pages (lmdb/marks).
    if (offsetOf(call) < meta_bytes && offsetOf(call) % page_bytes >= mark_at) continue
    if (offsetOf(call) >= meta_bytes) {
      pages.push(call)
      continue
    }
    const lastPage = Math.max(-1, ...pages.map((page) => page.ended))
    const next = written[place + 1]?.began ?? Infinity
    let mistake: string | undefined
    if (pages.length === 0) mistake = 'no page was written before the meta page'
    else if (!isSynced(lastPage, call.began))
      mistake = 'the pages were not synced before the meta page'
    else if (!synced.has(handleOf(call)) && !isSynced(call.ended, next)) {
      mistake = 'the meta page was not synced'
    }
    commits.push({ began: call.began, ended: call.ended, mistake })
    pages = []
  }
  return commits
}

/** Offset of the write; infinite, so behind the meta pages, if it continues the last one. */
export function offsetOf(call: Call): number {
  if (call.name !== 'pwrite64') return Infinity
  return Number(/, (\d+) *$/.exec(call.args)?.[1] ?? Infinity)
}

export function isSync(call: Call): boolean {
  return syncs.has(call.name) && call.result.startsWith('0')
}

/** Handles of the file whose every write is synced. */
export function syncedHandles(calls: readonly Call[], path: string): Set<string> {
  const handles = new Set<string>()
  for (const call of calls) {
    if (call.name !== 'openat' || !call.args.includes(`"${path}"`)) continue
    const handle = /^\d+/.exec(call.result)?.[0]
    if (handle === undefined) continue
    if (/O_D?SYNC/.test(call.args)) handles.add(handle)
    else handles.delete(handle)
  }
  return handles
}

export function handleOf(call: Call): string {
  return /^\d+/.exec(call.args)?.[0] ?? ''
}

/**
 * Traces a build of the store with these edits through so many commits, and each says it is
 * durable.
 */
export async function traceCommits(
  edits: readonly Edit[],
  commits: number,
): Promise<{ readonly calls: readonly Call[]; readonly path: string }> {
  const built = await buildChild('store-sync-child.ts', edits)
  try {
    const path = join(built.folder, 'tasks.lmdb')
    const run = await runTraced([built.script, path, String(commits)], { trace: `${path}.trace` })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.calls.filter(isDurableSaid).length, commits)
    return { calls: run.calls, path }
  } finally {
    await built.remove()
  }
}

/** The child's word that a commit is on disk. */
export function isDurableSaid(call: Call): boolean {
  return isWriteOf(call, '"durable ')
}
