/**
 * The sandbox: runs one piece of code over one task's data in QuickJS, which sees only its
 * WebAssembly memory and gets no host function. Each run starts from a memory image in which no
 * code has run, one per set of libraries (code-wasm.ts).
 *
 * Time is checked every few thousand steps; a loop inside one step ends with its thread
 * (code-thread.ts). Memory is bounded by WebAssembly, because QuickJS's limit counts only headers
 * of allocations. A run that hit a bound or grew the memory discards the instance.
 */
import type { CodeLibrary } from '../process/logics/code-libraries.ts'
import {
  call,
  describeThrown,
  file_name,
  hasGrown,
  type Instance,
  newInstance,
  textOf,
} from './code-instance.ts'
import { library_scope } from './code-prelude.ts'
import type { WasmModule } from './code-wasm.ts'
import { imageOf, type MemoryImage, restore } from './code-wasm.ts'

export interface CodeLimits {
  readonly time_ms_max: number
  /** Of the whole instance, which needs 16 MiB at its start. */
  readonly memory_bytes_max: number
  /** Characters of the result. */
  readonly text_chars_max: number
}

export interface CodeRequest {
  readonly src: string
  /** JSON text of an object. */
  readonly data_text: string
  /** `addLibrary` must have been called for each. */
  readonly libraries: readonly CodeLibrary[]
  /** Four random integers of 32 bits for `Math.random`. */
  readonly seed: readonly number[]
}

export type CodeResult =
  /** JSON text of `data` after the code ran, an object. */
  | { readonly end: 'data'; readonly text: string }
  | { readonly end: 'timeout' }
  | { readonly end: 'exception'; readonly description: string }
  | { readonly end: 'format'; readonly description: string }

export interface Sandbox {
  run(request: CodeRequest): Promise<CodeResult>
  addLibrary(name: CodeLibrary, text: string): void
  /** Makes the memory ready for these libraries; a run reports where they do not fit. */
  prepare(libraries: readonly CodeLibrary[]): Promise<void>
}

/** Images with libraries; the oldest is dropped for a new one. */
const images_max = 4

/** `wasm` is the compiled module of the QuickJS variant. */
export function newSandbox(wasm: WasmModule, limits: CodeLimits): Sandbox {
  const texts = new Map<CodeLibrary, string>()
  let instance: Instance | undefined
  /** The image in the memory now; undefined after code has run. */
  let ready: string | undefined
  let ends_at_ms = Number.POSITIVE_INFINITY
  let is_late = false

  function discard(): void {
    instance = undefined
    ready = undefined
  }

  async function takeInstance(): Promise<Instance> {
    const isLate = (): boolean => {
      is_late ||= performance.now() >= ends_at_ms
      return is_late
    }
    instance ??= await newInstance(wasm, limits.memory_bytes_max, isLate)
    return instance
  }

  /** The instance with its image restored, or why a library cannot be loaded. */
  async function prepare(libraries: readonly CodeLibrary[]): Promise<Instance | string> {
    const taken = await takeInstance()
    const key = libraries.join()
    if (ready === key) return taken
    ready = undefined
    const { images, memory } = taken
    const image = images.get(key)
    restore(memory, image ?? (images.get('') as MemoryImage))
    if (image === undefined) {
      for (const name of libraries) {
        const why = load(taken, name)
        if (why === undefined) continue
        discard()
        return `the library ${name} cannot be loaded: ${why}`
      }
      const [, oldest] = images.keys()
      if (images.size > images_max && oldest !== undefined) images.delete(oldest)
      images.set(key, imageOf(memory))
    }
    taken.ready_bytes = memory.buffer.byteLength
    ready = key
    return taken
  }

  function load(taken: Instance, name: CodeLibrary): string | undefined {
    const { context } = taken
    const body = `(function (${library_scope}) {${texts.get(name)}\n})`
    try {
      const made = context.evalCode(body, `libs/${name}.js`, { type: 'global' })
      if (made.error !== undefined) return describeThrown(taken, made.error)
      const loaded = call(taken, 'load', context.newString(name), made.value)
      if ('thrown' in loaded) return describeThrown(taken, loaded.thrown)
      loaded.value.dispose()
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  async function runOnce(src: string, request: CodeRequest): Promise<CodeResult> {
    const taken = await prepare(request.libraries)
    if (typeof taken === 'string') return exception(taken)
    ready = undefined
    // Preparing is not charged to the code: a library may load longer than code may run.
    if (ends_at_ms === Number.POSITIVE_INFINITY) ends_at_ms = performance.now() + limits.time_ms_max
    let result: CodeResult
    let is_broken = false
    try {
      result = execute(taken, src, request, limits.text_chars_max)
    } catch (error) {
      is_broken = true
      result = exception(`the sandbox broke: ${messageOf(error)}`)
    }
    if (is_late) result = { end: 'timeout' }
    if (is_broken || is_late || hasGrown(taken) || hasOverflowed(result)) discard()
    return result
  }

  return {
    async run(request) {
      const { src } = request
      try {
        const result = await runOnce(src, request)
        if (result.end !== 'exception' || !returns_on_top.test(result.description)) return result
        // A syntax error: nothing has run. Some code is written as a function body.
        return await runOnce(`(function () {${src}\n})()`, request)
      } finally {
        ends_at_ms = Number.POSITIVE_INFINITY
        is_late = false
      }
    },
    addLibrary: (name, text) => void texts.set(name, text),
    async prepare(libraries) {
      await prepare(libraries)
    },
  }
}

const returns_on_top = /^SyntaxError: return not in a function/

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function hasOverflowed(result: CodeResult): boolean {
  return result.end === 'exception' && /stack overflow/.test(result.description)
}

function execute(
  taken: Instance,
  src: string,
  { data_text, seed }: CodeRequest,
  text_chars_max: number,
): CodeResult {
  const { context, runtime } = taken
  const given = [data_text, JSON.stringify(seed)].map((text) => context.newString(text))
  const begun = call(taken, 'begin', ...given)
  if ('thrown' in begun) return exception(describeThrown(taken, begun.thrown))
  begun.value.dispose()

  const ran = context.evalCode(src, file_name, { type: 'global' })
  if (ran.error !== undefined) return exception(describeThrown(taken, ran.error))
  ran.value.dispose()
  const jobs = runtime.executePendingJobs()
  if (jobs.error !== undefined) return exception(describeThrown(taken, jobs.error))

  // By name, so that a `let data` of the code is found too.
  const data = context.evalCode('data', 'result')
  if (data.error !== undefined) return malformed(describeThrown(taken, data.error))
  const printed = call(taken, 'end', data.value)
  if ('thrown' in printed) return malformed(describeThrown(taken, printed.thrown))
  const text = textOf(context, printed.value, text_chars_max)
  if (text === undefined) return malformed('data is no object')
  if (text.length > text_chars_max) return malformed(`data is over ${text_chars_max} characters`)
  return text.startsWith('{') ? { end: 'data', text } : malformed('data is no object')
}

function exception(description: string): CodeResult {
  return { end: 'exception', description }
}

function malformed(description: string): CodeResult {
  return { end: 'format', description }
}
