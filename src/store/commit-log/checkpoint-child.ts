/**
 * The script of the checkpoint process: opens LMDB and does one job at a time. A job on standard
 * input is a line of JSON, then its frames; answers on standard output are lines of JSON. It ends
 * at most one LMDB commit after its parent, because another process may open the data file then.
 */
import { writeSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { parsePlain } from '../../codec/json.ts'
import { newAlarm, systemClock } from '../../core/clock.ts'
import { isFull } from '../disk/file-system.ts'
import { openWritableTree } from '../lmdb/commits.ts'
import type { SliceBounds } from './bounds.ts'
import { runWriteJob } from './checkpoint.ts'

/** A job without its frames; ids in hex. */
export interface JobHead {
  readonly bytes: number
  readonly commit_log?: {
    readonly id: string
    readonly first_seq: number
    readonly last_seq: number
  }
  readonly manifest?: { readonly id: string; readonly seq: number; readonly is_open: boolean }
  readonly goes_on?: boolean
  readonly slice?: SliceBounds
}

export type ChildMessage =
  /** After each commit of a job but the last. */
  | { readonly says: 'committed' }
  | { readonly says: 'done' }
  /** `no_space`: nothing of the job counts, and it may be repeated. */
  | { readonly says: 'failed'; readonly error: string; readonly no_space?: boolean }

/** It ends after this time without a job, to free its memory. */
const idle_ms = 10_000

const [path = '', parent = ''] = process.argv.slice(-2)
// Signals of a terminal or a service manager are for the parent.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
try {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
} catch {
  // Then it runs at the usual priority.
}
const opening = openWritableTree(path)
opening.catch(() => {})
const idle = newAlarm(systemClock, end)
wait()
let head: JobHead | undefined
let head_text: Buffer[] = []
/** Kept for the next job: this process ends when it has none. */
let frames = Buffer.alloc(0)
let filled = 0

process.stdin.on('end', end)
process.stdin.on('error', end)
process.stdin.on('data', (chunk: Buffer) => {
  idle.clear()
  const rest = head === undefined ? takeHead(chunk) : chunk
  if (head === undefined || rest === undefined) return
  frames.set(rest, filled)
  filled += rest.length
  if (filled < head.bytes) return
  const job = head
  head = undefined
  void run(job, frames.subarray(0, job.bytes))
})

/** The bytes after the head; undefined while it is incomplete. */
function takeHead(chunk: Buffer): Buffer | undefined {
  const end_at = chunk.indexOf('\n')
  head_text.push(end_at < 0 ? chunk : chunk.subarray(0, end_at))
  if (end_at < 0) return undefined
  head = parsePlain(Buffer.concat(head_text).toString('utf8')) as JobHead
  head_text = []
  if (frames.length < head.bytes) frames = Buffer.allocUnsafeSlow(head.bytes)
  filled = 0
  return chunk.subarray(end_at + 1)
}

async function run({ commit_log, manifest, ...rest }: JobHead, bytes: Buffer): Promise<void> {
  try {
    const tree = await opening
    endIfAlone()
    runWriteJob(
      tree,
      {
        frames: [bytes],
        ...(commit_log && { commit_log: { ...commit_log, id: Buffer.from(commit_log.id, 'hex') } }),
        ...(manifest && { manifest: { ...manifest, id: Buffer.from(manifest.id, 'hex') } }),
        ...rest,
      },
      () => {
        say({ says: 'committed' })
        endIfAlone()
      },
    )
    say({ says: 'done' })
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    say({ says: 'failed', error: text, no_space: isFull(error) })
    // Nothing was written if its own check found too little space. If LMDB has failed, memory may
    // be corrupt.
    if (!isFull(error) || (error as Error).cause !== undefined) process.exit()
  }
  wait()
}

function wait(): void {
  idle.ringBy(systemClock.now_ms() + idle_ms)
}

function endIfAlone(): void {
  if (process.ppid !== Number(parent)) process.exit()
}

function end(): void {
  process.exit()
}

/** Synchronous: between two commits the event loop gets no turn. */
function say(message: ChildMessage): void {
  const line = Buffer.from(`${JSON.stringify(message)}\n`)
  for (let at = 0; at < line.length; ) {
    try {
      at += writeSync(1, line, at)
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'EAGAIN') process.exit()
    }
  }
}
