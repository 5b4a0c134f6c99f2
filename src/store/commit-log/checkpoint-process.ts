/**
 * Writes into the data file, each in a child process: LMDB may corrupt the memory of a process in
 * which a write of its fails, and ends it for a page that is damaged. So this process only reads.
 *
 * The child starts with the first write, ends itself after some seconds without one, and ends at the
 * latest with this process: it inherits the descriptor that holds the lock of the data file, so no
 * other process opens the file before it has ended. A child that dies is replaced once, because a
 * write that broke off is simply repeated: until it is complete the commit log has all of it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { fault } from '../../core/faults.ts'
import type { WriteJob } from '../lmdb/lmdb-tree.ts'
import type { ChildMessage, JobHead } from './checkpoint-child.ts'
import { checkpointScript } from './checkpoint-script.ts'

export interface CheckpointProcess {
  /** As `write` of LmdbTree. One job at a time. */
  write(job: WriteJob, onCommit?: () => void): Promise<void>
  /** The child has ended once this resolves. */
  close(): Promise<void>
}

/** Sent at a time, so that callers get their turns. */
const chunk_bytes = 256 * 1024
/** Of what the child wrote to its standard error. */
const said_chars = 500

type Outcome = Extract<ChildMessage, { readonly says: 'done' | 'failed' }>

interface Child {
  readonly process: ChildProcess
  readonly ended: Promise<void>
  /** Undefined if it ended without an answer. */
  run(job: WriteJob, onCommit: () => void): Promise<Outcome | undefined>
  /** How it ended, and what it said. */
  end(): string
}

/** `lock_fd` holds the lock of the data file at `path`. */
export function newCheckpointProcess(path: string, lock_fd?: number): CheckpointProcess {
  let child: Child | undefined

  async function outcomeOf(job: WriteJob, onCommit: () => void): Promise<Outcome> {
    for (let tries = 0; ; tries++) {
      child ??= startChild(path, lock_fd)
      const current = child
      const outcome = await current.run(job, onCommit)
      if (outcome !== undefined) return outcome
      await current.ended
      child = undefined
      if (tries > 0) return { says: 'failed', error: current.end() }
    }
  }

  return {
    async write(job, onCommit = () => {}) {
      const outcome = await outcomeOf(job, onCommit)
      if (outcome.says === 'done') return
      throw outcome.no_space === true ? fault('no_space') : new Error(outcome.error)
    },
    async close() {
      // Between two jobs nothing is lost with it.
      child?.process.ref()
      child?.process.kill('SIGKILL')
      await child?.ended
      child = undefined
    },
  }
}

function startChild(path: string, lock_fd: number | undefined): Child {
  const process_of = spawn(process.execPath, [...checkpointScript(), path, String(process.pid)], {
    stdio: ['pipe', 'pipe', 'pipe', lock_fd ?? 'ignore'],
    env: { ...process.env, NODE_OPTIONS: '', ELECTRON_RUN_AS_NODE: '1' },
    windowsHide: true,
  })
  const [stdin, stdout, stderr] = process_of.stdio as unknown as [Writable, Readable, Readable]
  let how = ''
  let said = ''
  let rest = ''
  let onMessage: ((message: ChildMessage | undefined) => void) | undefined
  let has_ended = false
  const ended = new Promise<void>((resolve) => {
    const end = (text: string): void => {
      has_ended = true
      how ||= text
      resolve()
      onMessage?.(undefined)
    }
    process_of.on('error', (error) => end(`the checkpoint process cannot start: ${error.message}`))
    process_of.on('close', (exit, signal) => {
      end(`the checkpoint process ended with ${signal ?? `exit code ${exit}`}`)
    })
  })
  // It ends while a job is sent; `close` says so.
  stdin.on('error', () => {})
  stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-said_chars)
  })
  stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onMessage?.(JSON.parse(line) as ChildMessage)
  })
  const streams = [stdin, stdout, stderr] as unknown as { ref(): void; unref(): void }[]
  const keepAlive = (is_busy: boolean): void => {
    for (const one of [process_of, ...streams]) is_busy ? one.ref() : one.unref()
  }
  keepAlive(false)

  async function send(job: WriteJob): Promise<void> {
    const { frames, ...told } = job
    const bytes = frames.reduce((sum, { length }) => sum + length, 0)
    stdin.write(`${JSON.stringify({ ...headOf(told), bytes } satisfies JobHead)}\n`)
    for (const all of frames) {
      for (let at = 0; at < all.length && !has_ended; at += chunk_bytes) {
        // The memory of the commit log is shared with threads, which streams do not take.
        const chunk = Buffer.from(all.subarray(at, at + chunk_bytes))
        if (stdin.write(chunk)) continue
        await Promise.race([ended, new Promise((resolve) => stdin.once('drain', resolve))])
      }
    }
  }

  return {
    process: process_of,
    ended,
    end: () => (said === '' ? how : `${how}: ${said.replace(/[\s\p{Cc}]+/gu, ' ').trim()}`),
    run(job, onCommit) {
      if (has_ended) return Promise.resolve(undefined)
      keepAlive(true)
      return new Promise<Outcome | undefined>((resolve) => {
        onMessage = (message) => {
          if (message?.says === 'committed') return onCommit()
          onMessage = undefined
          resolve(message)
        }
        void send(job)
      }).finally(() => keepAlive(false))
    },
  }
}

function headOf({ log, manifest, slice }: Omit<WriteJob, 'frames'>): Omit<JobHead, 'bytes'> {
  return {
    ...(log && { log: { ...log, id: log.id.toString('hex') } }),
    ...(manifest && { manifest: { ...manifest, id: manifest.id.toString('hex') } }),
    ...(slice && { slice }),
  }
}
