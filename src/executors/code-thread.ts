/**
 * One thread for code, kept warm: started when it is first needed, and started anew when one was
 * lost. A run that does not answer in its time and a little more is ended with its thread, for
 * there are steps that the sandbox cannot interrupt.
 *
 *     none ──run──▶ starting ──ready──▶ idle ◀──reply── busy
 *                       │                └────run───────▶ │
 *                       └──────────── lost, late ─────────┴──▶ none
 *
 * An idle thread does not keep the process alive; one that starts or runs does.
 */
import { Worker } from 'node:worker_threads'
import { systemClock } from '../core/clock.ts'
import type { CodeBounds, CodeResult } from './code-sandbox.ts'
import { codeScript } from './code-script.ts'
import { compileWasm } from './code-wasm.ts'
import type { CodeRequest, CodeWorkerData, CodeWorkerMessage } from './code-worker.ts'

export interface CodeThread {
  /** One at a time. Never rejects: `lost` tells of a thread that could not start or died. */
  run(question: CodeRequest): Promise<CodeResult | { readonly end: 'lost'; readonly why: string }>
  /** Ends the thread; a run under way is lost. */
  close(): Promise<void>
}

/** How long after its time a run may still answer. */
const grace_ms = 500
const stack_mb = 16
/** JavaScript's own heap of a thread; what code may take is bounded in WebAssembly's memory. */
const heap_mb = 128

export function newCodeThread(bounds: CodeBounds): CodeThread {
  let worker: Worker | undefined
  let closed = false
  let answered: ((answer: CodeWorkerMessage) => void) | undefined
  let lost: ((error: Error) => void) | undefined

  /** The next answer, or the end of the worker. */
  function answer(): Promise<CodeWorkerMessage> {
    return new Promise((resolve, reject) => {
      answered = resolve
      lost = reject
    })
  }

  async function start(): Promise<Worker> {
    const { script, options, wasm } = await codeScript()
    const compiled = await compileWasm(wasm)
    if (closed) throw new Error('closed')
    const made = new Worker(script, {
      ...options,
      workerData: { wasm: compiled, bounds } satisfies CodeWorkerData,
      resourceLimits: { stackSizeMb: stack_mb, maxOldGenerationSizeMb: heap_mb },
      env: {},
    })
    made.on('message', (message: CodeWorkerMessage) => answered?.(message))
    made.on('error', (error: Error) => drop(made, error))
    made.on('exit', () => drop(made, new Error('the thread has ended')))
    worker = made
    await answer()
    return made
  }

  function drop(gone: Worker, error: Error): void {
    if (worker !== gone) return
    worker = undefined
    lost?.(error)
  }

  async function end(): Promise<void> {
    const gone = worker
    if (gone === undefined) return
    drop(gone, new Error('the thread was ended'))
    // Whoever waits for the end may have nothing else to keep the process alive.
    gone.ref()
    await gone.terminate()
  }

  return {
    async run(question) {
      let is_late = false
      try {
        const mine = worker ?? (await start())
        mine.ref()
        const disarm = after(bounds.time_ms_max + grace_ms, () => {
          is_late = true
          void end()
        })
        try {
          const reply = answer()
          mine.postMessage(question)
          return (await reply) as CodeResult
        } finally {
          disarm()
          if (worker === mine) mine.unref()
        }
      } catch (error) {
        if (is_late) return { end: 'timeout' }
        return { end: 'lost', why: error instanceof Error ? error.message : String(error) }
      }
    },
    async close() {
      closed = true
      await end()
    },
  }
}

/** Calls `fn` once so much time has passed, even if the system's clock is set meanwhile. */
function after(wait_ms: number, fn: () => void): () => void {
  const ends_at_ms = performance.now() + wait_ms
  let disarm: () => void
  const arm = (): void => {
    const left_ms = ends_at_ms - performance.now()
    if (left_ms <= 0) fn()
    else disarm = systemClock.wake_at(systemClock.now_ms() + Math.ceil(left_ms), arm)
  }
  arm()
  return () => disarm()
}
