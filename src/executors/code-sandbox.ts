/**
 * The sandbox: runs one piece of code over one task's data in QuickJS, a JavaScript engine in
 * WebAssembly that can access nothing but its own memory. Each run has a new runtime, so nothing of
 * one task is left for the next. The code gets no function of the host, so there is nothing to
 * escape through.
 *
 * Time, stack and memory of a run are bounded. Time is checked every few thousand steps; a loop
 * inside a single step is ended with its thread (code-thread.ts). Memory is bounded by the size of
 * the WebAssembly memory, because QuickJS's own limit counts only the headers of allocations. After
 * a run that hit a bound or made the memory grow, the whole instance is discarded: memory never
 * shrinks, and a stack overflow may leave the instance in any state.
 */
import quickjs_variant from '@jitl/quickjs-wasmfile-release-sync'
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
} from 'quickjs-emscripten-core'
import { newWasmMemory, type WasmMemory, type WasmModule } from './code-wasm.ts'

export interface CodeLimits {
  readonly time_ms_max: number
  /** Of the whole instance, which needs 16 MiB when it starts. */
  readonly memory_bytes_max: number
  /** Characters of the result. */
  readonly text_chars_max: number
}

/** How a run ended. */
export type CodeResult =
  /** JSON text of `data` after the code ran, an object. */
  | { readonly end: 'data'; readonly text: string }
  | { readonly end: 'timeout' }
  | { readonly end: 'exception'; readonly description: string }
  | { readonly end: 'format'; readonly description: string }

export interface Sandbox {
  /** Runs `src` over the data, JSON text of an object. */
  run(src: string, data_text: string): Promise<CodeResult>
  /** Creates the runtime of the next run ahead of time. */
  prepare(): Promise<void>
}

/** A runtime in which no code has run yet, and the functions of the prelude. */
interface PreparedRuntime {
  readonly runtime: QuickJSRuntime
  readonly context: QuickJSContext
  readonly prelude: Readonly<Record<PreludeFunction, QuickJSHandle>>
  readonly memory: WasmMemory
}

const prelude_names = ['begin', 'end', 'describe', 'stack'] as const
type PreludeFunction = (typeof prelude_names)[number]

const stack_bytes_max = 256 * 1024
const description_chars_max = 1_000
/** The file name of the code in stack traces. */
const file_name = 'code'

/**
 * Runs in each runtime before the code. It keeps references to the built-in objects that it needs,
 * so code that changes those objects changes only its own result.
 */
const prelude_src = `(() => {
  const { parse, stringify } = JSON, text = String, Failure = Error
  const hidden = { writable: true, configurable: true, enumerable: false }
  Object.defineProperty(globalThis, 'require', { ...hidden, value: function require(name) {
    throw new Failure('require(' + stringify(name) + ') is not served: code has no libraries')
  } })
  return {
    begin(data) { globalThis.data = parse(data) },
    end: (data) => stringify(data),
    describe(thrown) {
      if (typeof thrown !== 'object' || thrown === null) return text(thrown)
      const { name, message } = thrown
      if (typeof message !== 'string') return stringify(thrown)
      return typeof name === 'string' && name !== 'Error' ? name + ': ' + message : message
    },
    stack: (thrown) => thrown.stack,
  }
})()`

interface Instance {
  readonly module: QuickJSWASMModule
  readonly memory: WasmMemory
}

/** The memory that the module requires when it starts. */
const memory_bytes_min = 16 * 1024 * 1024

/** `wasm` is the compiled module of the QuickJS variant. */
export function newSandbox(wasm: WasmModule, limits: CodeLimits): Sandbox {
  let instance: Instance | undefined
  let next: PreparedRuntime | undefined

  async function takeRuntime(): Promise<PreparedRuntime> {
    instance ??= await newInstance(wasm, limits.memory_bytes_max)
    const made = next ?? newPreparedRuntime(instance)
    next = undefined
    return made
  }

  async function runOnce(src: string, data_text: string, ends_at_ms: number): Promise<CodeResult> {
    const prepared = await takeRuntime()
    let is_late = false
    prepared.runtime.setInterruptHandler(() => {
      is_late ||= performance.now() >= ends_at_ms
      return is_late
    })
    let result: CodeResult
    let is_broken = false
    try {
      result = execute(prepared, src, data_text, limits.text_chars_max)
    } catch (error) {
      is_broken = true
      result = exception(`the sandbox broke: ${error instanceof Error ? error.message : error}`)
    }
    if (is_late) result = { end: 'timeout' }
    const is_dirty = is_broken || is_late || hasOverflowed(result) || hasGrown(prepared)
    if (is_dirty || !disposeRuntime(prepared)) instance = undefined
    return result
  }

  return {
    async run(src, data_text) {
      const ends_at_ms = performance.now() + limits.time_ms_max
      const result = await runOnce(src, data_text, ends_at_ms)
      if (result.end !== 'exception' || !returns_on_top.test(result.description)) return result
      // A syntax error, so nothing of it has run. Some code is written as the body of a function.
      return runOnce(`(function () {${src}\n})()`, data_text, ends_at_ms)
    },
    async prepare() {
      next ??= await takeRuntime()
    },
  }
}

/** Emscripten options that its types lack: they suppress what a broken instance prints. */
const quiet: object = { print() {}, printErr() {} }
const returns_on_top = /^SyntaxError: return not in a function/

async function newInstance(wasm: WasmModule, memory_bytes_max: number): Promise<Instance> {
  const memory = newWasmMemory(memory_bytes_min, memory_bytes_max)
  // Its types describe a CommonJS module; the import gives the module's default itself.
  const base = quickjs_variant as unknown as QuickJSSyncVariant
  const options = { wasmModule: wasm, wasmMemory: memory, emscriptenModule: quiet }
  return { module: await newQuickJSWASMModuleFromVariant(newVariant(base, options)), memory }
}

function newPreparedRuntime({ module, memory }: Instance): PreparedRuntime {
  const runtime = module.newRuntime()
  runtime.setMaxStackSize(stack_bytes_max)
  const context = runtime.newContext()
  const made = context.unwrapResult(context.evalCode(prelude_src, 'prelude'))
  const prelude = {} as Record<PreludeFunction, QuickJSHandle>
  for (const name of prelude_names) prelude[name] = context.getProp(made, name)
  made.dispose()
  return { runtime, context, prelude, memory }
}

function hasOverflowed(result: CodeResult): boolean {
  return result.end === 'exception' && /stack overflow/.test(result.description)
}

function hasGrown({ memory }: PreparedRuntime): boolean {
  return memory.buffer.byteLength > memory_bytes_min
}

/** False where disposing failed. */
function disposeRuntime({ runtime, context, prelude }: PreparedRuntime): boolean {
  try {
    for (const name of prelude_names) prelude[name].dispose()
    context.dispose()
    runtime.dispose()
    return true
  } catch {
    return false
  }
}

function execute(
  prepared: PreparedRuntime,
  src: string,
  data_text: string,
  text_chars_max: number,
): CodeResult {
  const { context, runtime } = prepared
  const begun = call(prepared, 'begin', context.newString(data_text))
  if ('thrown' in begun) return exception(describeThrown(prepared, begun.thrown))
  begun.value.dispose()

  const ran = context.evalCode(src, file_name, { type: 'global' })
  if (ran.error !== undefined) return exception(describeThrown(prepared, ran.error))
  ran.value.dispose()
  const jobs = runtime.executePendingJobs()
  if (jobs.error !== undefined) return exception(describeThrown(prepared, jobs.error))

  // Evaluated by name, so that a `let data` of the code is found too.
  const data = context.evalCode('data', 'result')
  if (data.error !== undefined) return malformed(describeThrown(prepared, data.error))
  const printed = call(prepared, 'end', data.value)
  if ('thrown' in printed) return malformed(describeThrown(prepared, printed.thrown))
  const text = textOf(context, printed.value, text_chars_max)
  if (text === undefined) return malformed('data is no object')
  if (text.length > text_chars_max) return malformed(`data is over ${text_chars_max} characters`)
  return text.startsWith('{') ? { end: 'data', text } : malformed('data is no object')
}

/** Calls a function of the prelude and disposes `given`. */
function call(
  { context, prelude }: PreparedRuntime,
  name: PreludeFunction,
  given: QuickJSHandle,
): { value: QuickJSHandle } | { thrown: QuickJSHandle } {
  const result = context.callFunction(prelude[name], context.undefined, given)
  given.dispose()
  return result.error === undefined ? { value: result.value } : { thrown: result.error }
}

/** Describes a thrown value, which may be anything, with its line; disposes it. */
function describeThrown(prepared: PreparedRuntime, thrown: QuickJSHandle): string {
  const described = callForText(prepared, 'describe', thrown)
  const stack = callForText(prepared, 'stack', thrown)
  thrown.dispose()
  // Without memory for an error object, QuickJS throws an empty value.
  if (is_nothing.has(described) && hasGrown(prepared)) return 'InternalError: out of memory'
  const line = new RegExp(`\\b${file_name}:([0-9]+)`).exec(stack ?? '')?.[1]
  const text = (described ?? 'a value that cannot be told').slice(0, description_chars_max)
  return line === undefined ? text : `${text}, line ${line}`
}

const is_nothing: ReadonlySet<string | undefined> = new Set([undefined, '', 'null'])

function callForText(
  prepared: PreparedRuntime,
  name: PreludeFunction,
  about: QuickJSHandle,
): string | undefined {
  const answer = call(prepared, name, about.dup())
  if ('value' in answer) return textOf(prepared.context, answer.value, description_chars_max)
  answer.thrown.dispose()
  return undefined
}

/**
 * A string of at most `chars_max` + 1 characters; undefined for other values. Disposes the handle.
 */
function textOf(
  context: QuickJSContext,
  handle: QuickJSHandle,
  chars_max: number,
): string | undefined {
  const is_text = context.typeof(handle) === 'string'
  const text = is_text ? context.getString(handle).slice(0, chars_max + 1) : undefined
  handle.dispose()
  return text
}

function exception(description: string): CodeResult {
  return { end: 'exception', description }
}

function malformed(description: string): CodeResult {
  return { end: 'format', description }
}
