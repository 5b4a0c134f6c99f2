/**
 * One thread for code: started on demand, kept while idle, restarted after a loss. A run that
 * exceeds its time by the grace period ends with its thread, because some steps cannot be
 * interrupted. Only a starting or busy thread keeps the Node process alive.
 *
 *     none ──run──▶ starting ──ready──▶ idle ◀─result── busy
 *                       │                └────run───────▶ │
 *                       └──────────── lost, late ─────────┴──▶ none
 */
import { Worker } from 'node:worker_threads'
import { steadyClock } from '../core/clock.ts'
import type { CodeLibrary } from '../process/logics/code-libraries.ts'
import type { CodeLimits, CodeRequest, CodeResult } from './code-sandbox.ts'
import { codeScript, libraryText } from './code-script.ts'
import { compileWasm } from './code-wasm.ts'
import type { CodeLibraries, CodeWorkerData, CodeWorkerMessage } from './code-worker.ts'

export interface CodeThread {
  /** One run at a time. Never rejects: `lost` means that the thread did not start or died. */
  run(request: CodeRequest): Promise<CodeResult | { readonly end: 'lost'; readonly why: string }>
  /** Ends the thread; a run in progress is lost. */
  close(): Promise<void>
}

const grace_ms = 500
const stack_mb = 16
/** JavaScript heap of the thread; WebAssembly bounds the memory of the code. */
const heap_mb = 128

export function newCodeThread(limits: CodeLimits): CodeThread {
  let worker: Worker | undefined
  /** The libraries whose texts the worker has. */
  const sent = new Set<CodeLibrary>()
  let closed = false
  let received: ((message: CodeWorkerMessage) => void) | undefined
  let lost: ((error: Error) => void) | undefined

  /** Rejects if the worker ends first. */
  function nextMessage(): Promise<CodeWorkerMessage> {
    return new Promise((resolve, reject) => {
      received = resolve
      lost = reject
    })
  }

  async function start(): Promise<Worker> {
    const { script, options, wasm } = await codeScript()
    const compiled = await compileWasm(wasm)
    if (closed) throw new Error('closed')
    const made = new Worker(script, {
      ...options,
      workerData: { wasm: compiled, limits } satisfies CodeWorkerData,
      resourceLimits: { stackSizeMb: stack_mb, maxOldGenerationSizeMb: heap_mb },
      env: {},
    })
    made.on('message', (message: CodeWorkerMessage) => received?.(message))
    made.on('error', (error: Error) => drop(made, error))
    made.on('exit', () => drop(made, new Error('the thread has ended')))
    worker = made
    sent.clear()
    await nextMessage()
    return made
  }

  /** Not bounded by the run's time: loading is not the task's code. */
  async function sendLibraries(to: Worker, libraries: readonly CodeLibrary[]): Promise<void> {
    const missing = libraries.filter((name) => !sent.has(name))
    if (missing.length === 0) return
    const texts = new Map<CodeLibrary, string>()
    for (const name of missing) texts.set(name, await libraryText(name))
    if (worker !== to) throw new Error('the thread has ended')
    const loaded = nextMessage()
    to.postMessage({ libraries, texts } satisfies CodeLibraries)
    await loaded
    for (const name of missing) sent.add(name)
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
    // The caller may await the end while nothing else keeps the Node process alive.
    gone.ref()
    await gone.terminate()
  }

  return {
    async run(request) {
      let is_late = false
      try {
        const mine = worker ?? (await start())
        mine.ref()
        let disarm = (): void => {}
        try {
          await sendLibraries(mine, request.libraries)
          const late_ms = steadyClock.now_ms() + limits.time_ms_max + grace_ms
          disarm = steadyClock.wake_at(late_ms, () => {
            is_late = true
            void end()
          })
          const result = nextMessage()
          mine.postMessage(request)
          return (await result) as CodeResult
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
