/**
 * The script of a code thread: takes one request at a time, runs it in the sandbox and posts the
 * result. It never ends by itself.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { CodeLibrary } from '../process/logics/code-libraries.ts'
import { type CodeLimits, type CodeRequest, type CodeResult, newSandbox } from './code-sandbox.ts'
import type { WasmModule } from './code-wasm.ts'

export interface CodeWorkerData {
  readonly wasm: WasmModule
  readonly limits: CodeLimits
}

/** Library texts that the thread does not have yet, sent before a run that needs them. */
export interface CodeLibraries {
  readonly libraries: readonly CodeLibrary[]
  readonly texts: ReadonlyMap<CodeLibrary, string>
}

/** `ready` after the start and after libraries, then a result per request. */
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

  // A chain: a request may arrive while its memory is being prepared. A rejection ends the thread;
  // code-thread.ts then starts a new one.
  let last = sandbox.prepare([]).then(() => post('ready'))
  port.on('message', (message: CodeLibraries | CodeRequest) => {
    last = last.then(() => answer(message))
  })
}
