/**
 * What runs in a thread for code: takes one piece at a time from the thread that started it,
 * runs it in the sandbox, and answers. It looks at nothing else of the process, and it never
 * ends by itself.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type CodeBounds, type CodeResult, newSandbox } from './code-sandbox.ts'
import type { WasmModule } from './code-wasm.ts'

/** Handed over as the thread starts. */
export interface CodeWorkerData {
  readonly wasm: WasmModule
  readonly bounds: CodeBounds
}

export interface CodeRequest {
  readonly src: string
  readonly data_text: string
}

/** `ready` once, then a reply to each question. */
export type CodeWorkerMessage = 'ready' | CodeResult

const port = parentPort
if (port !== null) {
  const { wasm, bounds } = workerData as CodeWorkerData
  const sandbox = newSandbox(wasm, bounds)
  const answer = (to: CodeWorkerMessage): void => port.postMessage(to)
  // In line, for one question may come while the room for it is still being made. A rejection ends
  // the thread, as it should.
  let turn = sandbox.prepare().then(() => answer('ready'))
  port.on('message', ({ src, data_text }: CodeRequest) => {
    turn = turn
      .then(() => sandbox.run(src, data_text))
      .then(answer)
      .then(() => sandbox.prepare())
  })
}
