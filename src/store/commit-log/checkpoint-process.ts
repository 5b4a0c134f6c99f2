/**
 * Writes into the data file, in a child process: a failed write of LMDB may corrupt the memory of
 * its process, so this one only reads. The child starts with the first write and ends after some
 * idle seconds, or with this process. It inherits the descriptor of the file's lock, so no other
 * process opens the file before it has ended. A child that dies is replaced once, and the write
 * repeated: until it is complete the commit log has all of it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { parsePlain } from '../../codec/json.ts'
import { keepAlive, pause, systemClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import { full_disk_bytes } from '../lmdb/disk-space.ts'
import type { WriteJob } from '../lmdb/lmdb-tree.ts'
import { freeBytesAt } from '../lmdb/tree.ts'
import type { ChildMessage, JobHead } from './checkpoint-child.ts'
import { checkpointScript } from './checkpoint-script.ts'

export interface CheckpointProcess {
  /** As `LmdbTree.write`. One job at a time. */
  write(job: WriteJob, onCommit?: () => void): Promise<void>
  /** The child has ended once this resolves. */
  close(): Promise<void>
}

/** Sent at a time, so that callers get their turns. */
const chunk_bytes = 256 * 1024
/** Characters kept of the child's standard error. */
const said_chars = 500
/** The system may lack these for a moment, such as descriptors under many connections. */
const transient: readonly unknown[] = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM']
const starts = { tries_max: 60, pause_ms: 500 }

type Outcome = Extract<ChildMessage, { readonly says: 'done' | 'failed' }>

interface Child {
  kill(): void
  readonly ended: Promise<void>
  /** Undefined if it ended without an answer. */
  run(job: WriteJob, onCommit: () => void): Promise<Outcome | undefined>
  /** How it ended, with its output. */
  end(): string
}

/** Throws `not_possible` where Node's permission model forbids child processes. */
export function checkMayStart(path: string): void {
  const { permission } = process as { permission?: { has(scope: string): boolean } }
  if (permission === undefined || permission.has('child')) return
  const says = `${path} is written by a child process, which Node's --permission does not allow`
  throw fault('not_possible', `${says}; add --allow-child-process`)
}

/** `lock_fd` holds the lock of the data file at `path`. */
export function newCheckpointProcess(path: string, lock_fd?: number): CheckpointProcess {
  let child: Child | undefined

  async function started(): Promise<Child> {
    for (let tries = 1; ; tries++) {
      try {
        return await startChild(path, lock_fd)
      } catch (error) {
        const { code, message } = error as { code?: unknown; message?: unknown }
        if (tries === starts.tries_max || !transient.includes(code))
          throw new Error(`the checkpoint process cannot start: ${message}`, { cause: error })
        await pause(systemClock, starts.pause_ms).finally(keepAlive())
      }
    }
  }

  async function outcomeOf(job: WriteJob, onCommit: () => void): Promise<Outcome> {
    for (let tries = 0; ; tries++) {
      child ??= await started()
      const current = child
      const outcome = await current.run(job, onCommit)
      if (outcome !== undefined) return outcome
      await current.ended
      child = undefined
      if (tries === 0) continue
      // A write without space may end the child too.
      return {
        ...{ says: 'failed', error: current.end() },
        no_space: freeBytesAt(path) < full_disk_bytes,
      }
    }
  }

  return {
    async write(job, onCommit = () => {}) {
      const outcome = await outcomeOf(job, onCommit)
      if (outcome.says === 'done') return
      throw outcome.no_space === true ? fault('no_space') : new Error(outcome.error)
    },
    async close() {
      // Idle: nothing is lost.
      child?.kill()
      await child?.ended
      child = undefined
    },
  }
}

async function startChild(path: string, lock_fd: number | undefined): Promise<Child> {
  const { args, text = '' } = checkpointScript()
  const process_of = spawn(process.execPath, [...args, path, String(process.pid)], {
    stdio: ['pipe', 'pipe', 'pipe', lock_fd ?? 'ignore'],
    env: { ...process.env, NODE_OPTIONS: '', ELECTRON_RUN_AS_NODE: '1' },
    windowsHide: true,
  })
  await once(process_of, 'spawn')
  const streams = process_of.stdio.slice(0, 3) as Socket[]
  const [stdin, stdout, stderr] = streams as [Socket, Socket, Socket]
  let how = ''
  let said = ''
  let rest = ''
  let onMessage: ((message: ChildMessage | undefined) => void) | undefined
  let onRoom = (): void => {}
  let has_ended = false
  const ended = new Promise<void>((resolve) => {
    process_of.on('close', (exit, signal) => {
      how = `the checkpoint process ended with ${signal ?? `exit code ${exit}`}`
      has_ended = true
      resolve()
      onRoom()
      onMessage?.(undefined)
    })
  })
  // A signal or job that cannot be sent; `close` follows.
  for (const one of [process_of, stdin]) one.on('error', () => {})
  stdin.on('drain', () => onRoom())
  const onSaid = (text: string): void => {
    said = (said + text).slice(-said_chars)
  }
  stderr.setEncoding('utf8').on('data', onSaid)
  stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const message = messageIn(line)
      if (message === undefined) onSaid(line)
      else onMessage?.(message)
    }
  })
  const holdLoop = (is_busy: boolean): void => {
    for (const one of [process_of, ...streams]) is_busy ? one.ref() : one.unref()
  }
  holdLoop(false)
  stdin.write(text)

  async function send(job: WriteJob): Promise<void> {
    const { frames, ...head } = job
    const bytes = frames.reduce((sum, { length }) => sum + length, 0)
    stdin.write(`${JSON.stringify({ ...headOf(head), bytes } satisfies JobHead)}\n`)
    for (const all of frames) {
      for (let at = 0; at < all.length && !has_ended; at += chunk_bytes) {
        // Streams reject shared memory, which the commit log uses (segment-file).
        const chunk = Buffer.from(all.subarray(at, at + chunk_bytes))
        if (stdin.write(chunk)) continue
        await new Promise<void>((resolve) => {
          onRoom = resolve
          if (has_ended) resolve()
        })
      }
    }
  }

  return {
    kill() {
      holdLoop(true)
      process_of.kill('SIGKILL')
    },
    ended,
    end: () => (said === '' ? how : `${how}: ${said.replace(/[\s\p{Cc}]+/gu, ' ').trim()}`),
    run(job, onCommit) {
      if (has_ended) return Promise.resolve(undefined)
      holdLoop(true)
      return new Promise<Outcome | undefined>((resolve) => {
        onMessage = (message) => {
          if (message?.says === 'committed') return onCommit()
          onMessage = undefined
          resolve(message)
        }
        void send(job)
      }).finally(() => holdLoop(false))
    },
  }
}

/** Undefined for output of native code or a preloaded module. */
function messageIn(line: string): ChildMessage | undefined {
  if (!line.startsWith('{"says":')) return undefined
  try {
    return parsePlain(line) as ChildMessage
  } catch {
    return undefined
  }
}

function headOf({
  commit_log,
  manifest,
  ...rest
}: Omit<WriteJob, 'frames'>): Omit<JobHead, 'bytes'> {
  return {
    ...(commit_log && { commit_log: { ...commit_log, id: commit_log.id.toString('hex') } }),
    ...(manifest && { manifest: { ...manifest, id: manifest.id.toString('hex') } }),
    ...rest,
  }
}
