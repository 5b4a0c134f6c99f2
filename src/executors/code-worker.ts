/**
 * The script of a code thread: takes one request at a time from the thread that started it, runs
 * the code in the sandbox and posts the result. It reads nothing else of the process and never ends
 * by itself.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { CodeLibrary } from '../process/logics/code-libraries.ts'
import { type CodeLimits, type CodeRequest, type CodeResult, newSandbox } from './code-sandbox.ts'
import type { WasmModule } from './code-wasm.ts'

/** Posted to the thread when it starts. */
export interface CodeWorkerData {
  readonly wasm: WasmModule
  readonly limits: CodeLimits
}

/** The texts of the libraries that a thread has not had yet, before the first run with them. */
export interface CodeLibraries {
  readonly libraries: readonly CodeLibrary[]
  readonly texts: ReadonlyMap<CodeLibrary, string>
}

/** `ready` when started and after libraries, then a result for each request. */
export type CodeWorkerMessage = 'ready' | CodeResult

const port = parentPort
if (port !== null) {
  const { wasm, limits } = workerData as CodeWorkerData
  const sandbox = newSandbox(wasm, limits)
  const post = (message: CodeWorkerMessage): void => port.postMessage(message)

  async function answer(message: CodeLibraries | CodeRequest): Promise<void> {
    if ('texts' in message) {
      for (const [name, text] of message.texts) sandbox.addLibrary(name, text)
      await sandbox.prepare(message.libraries)
      return post('ready')
    }
    post(await sandbox.run(message))
    await sandbox.prepare(message.libraries)
  }

  // A chain, because a request may arrive while the memory for it is still being prepared. A
  // rejection ends the thread; code-thread.ts then starts a new one.
  let last = sandbox.prepare([]).then(() => post('ready'))
  port.on('message', (message: CodeLibraries | CodeRequest) => {
    last = last.then(() => answer(message))
  })
}
