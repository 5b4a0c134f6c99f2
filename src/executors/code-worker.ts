/**
 * The script of a code thread: takes one request at a time from the thread that started it, runs
 * the code in the sandbox and posts the result. It reads nothing else of the process and never ends
 * by itself.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type CodeLimits, type CodeResult, newSandbox } from './code-sandbox.ts'
import type { WasmModule } from './code-wasm.ts'

/** Posted to the thread when it starts. */
export interface CodeWorkerData {
  readonly wasm: WasmModule
  readonly limits: CodeLimits
}

export interface CodeRequest {
  readonly src: string
  readonly data_text: string
}

/** `ready` once, then a result for each request. */
export type CodeWorkerMessage = 'ready' | CodeResult

const port = parentPort
if (port !== null) {
  const { wasm, limits } = workerData as CodeWorkerData
  const sandbox = newSandbox(wasm, limits)
  const post = (message: CodeWorkerMessage): void => port.postMessage(message)
  // A chain, because a request may arrive while the runtime for it is still being prepared. A
  // rejection ends the thread; code-thread.ts then starts a new one.
  let last = sandbox.prepare().then(() => post('ready'))
  port.on('message', ({ src, data_text }: CodeRequest) => {
    last = last
      .then(() => sandbox.run(src, data_text))
      .then(post)
      .then(() => sandbox.prepare())
  })
}
