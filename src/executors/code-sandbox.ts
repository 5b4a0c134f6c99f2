/**
 * The sandbox: one piece of code over one task's data, in QuickJS, which is WebAssembly and
 * reaches nothing but its own memory. Each run has a runtime of its own, so nothing of one task
 * is left for the next; the code is given no function of the host's, so there is nothing to
 * escape through.
 *
 * Bounded are the time (asked for every few thousand steps), the stack and the memory of a run;
 * the last by the WebAssembly memory itself, since the limit that QuickJS offers counts no more
 * than the headers of what was allocated. What those bounds miss, a loop inside a single step,
 * ends with the thread (code-thread). After a run that hit a bound or made the memory grow the
 * whole instance is thrown away: memory never shrinks, and a stack that overflowed may have left
 * it in any state.
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

export interface CodeBounds {
  readonly time_ms_max: number
  /** Of the whole instance, which takes 16 MiB of it from the start. */
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
  /** Makes the next run's runtime ahead of it. */
  prepare(): Promise<void>
}

/** A runtime that no code has run in yet, and the three functions of the prelude. */
interface PreparedRuntime {
  readonly runtime: QuickJSRuntime
  readonly context: QuickJSContext
  readonly parts: Readonly<Record<Part, QuickJSHandle>>
  readonly memory: WasmMemory
}

const part_names = ['begin', 'end', 'tell', 'stack'] as const
type Part = (typeof part_names)[number]

const stack_bytes_max = 256 * 1024
const description_chars_max = 1_000
/** The name that lines are told under in stacks. */
const file_name = 'code'

/**
 * Runs in each room before the code. It keeps what it needs of the built-in objects, so whatever
 * the code does to those, it changes only what it gives back itself.
 */
const prelude = `(() => {
  const { parse, stringify } = JSON, text = String, Failure = Error
  const hidden = { writable: true, configurable: true, enumerable: false }
  Object.defineProperty(globalThis, 'require', { ...hidden, value: function require(name) {
    throw new Failure('require(' + stringify(name) + ') is not served: code has no libraries')
  } })
  return {
    begin(data) { globalThis.data = parse(data) },
    end: (data) => stringify(data),
    tell(thrown) {
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

/** What the module asks for as it starts. */
const memory_bytes_min = 16 * 1024 * 1024

/** `wasm` is the compiled module of the QuickJS variant. */
export function newSandbox(wasm: WasmModule, bounds: CodeBounds): Sandbox {
  let instance: Instance | undefined
  let next: PreparedRuntime | undefined

  async function room(): Promise<PreparedRuntime> {
    instance ??= await newInstance(wasm, bounds.memory_bytes_max)
    const made = next ?? newPreparedRuntime(instance)
    next = undefined
    return made
  }

  async function runOnce(src: string, data_text: string, ends_at_ms: number): Promise<CodeResult> {
    const mine = await room()
    let is_late = false
    mine.runtime.setInterruptHandler(() => {
      is_late ||= performance.now() >= ends_at_ms
      return is_late
    })
    let reply: CodeResult
    let is_broken = false
    try {
      reply = execute(mine, src, data_text, bounds.text_chars_max)
    } catch (error) {
      is_broken = true
      reply = exception(`the sandbox broke: ${error instanceof Error ? error.message : error}`)
    }
    if (is_late) reply = { end: 'timeout' }
    const is_worn = is_broken || is_late || hasOverflowed(reply) || hasGrown(mine)
    if (is_worn || !disposeRuntime(mine)) instance = undefined
    return reply
  }

  return {
    async run(src, data_text) {
      const ends_at_ms = performance.now() + bounds.time_ms_max
      const reply = await runOnce(src, data_text, ends_at_ms)
      if (reply.end !== 'exception' || !returns_on_top.test(reply.description)) return reply
      // Nothing of it has run: some code is written as the body of a function.
      return runOnce(`(function () {${src}\n})()`, data_text, ends_at_ms)
    },
    async prepare() {
      next ??= await room()
    },
  }
}

/** Options of Emscripten's that its types leave out: what a broken instance would print. */
const quiet: object = { print() {}, printErr() {} }
const returns_on_top = /^SyntaxError: return not in a function/

async function newInstance(wasm: WasmModule, memory_bytes_max: number): Promise<Instance> {
  const memory = newWasmMemory(memory_bytes_min, memory_bytes_max)
  // Its types tell of a CommonJS module; what an import gives is the module's default itself.
  const base = quickjs_variant as unknown as QuickJSSyncVariant
  const options = { wasmModule: wasm, wasmMemory: memory, emscriptenModule: quiet }
  return { module: await newQuickJSWASMModuleFromVariant(newVariant(base, options)), memory }
}

function newPreparedRuntime({ module, memory }: Instance): PreparedRuntime {
  const runtime = module.newRuntime()
  runtime.setMaxStackSize(stack_bytes_max)
  const context = runtime.newContext()
  const made = context.unwrapResult(context.evalCode(prelude, 'prelude'))
  const parts = {} as Record<Part, QuickJSHandle>
  for (const name of part_names) parts[name] = context.getProp(made, name)
  made.dispose()
  return { runtime, context, parts, memory }
}

function hasOverflowed(reply: CodeResult): boolean {
  return reply.end === 'exception' && /stack overflow/.test(reply.description)
}

function hasGrown({ memory }: PreparedRuntime): boolean {
  return memory.buffer.byteLength > memory_bytes_min
}

/** False where it could not be left clean. */
function disposeRuntime({ runtime, context, parts }: PreparedRuntime): boolean {
  try {
    for (const name of part_names) parts[name].dispose()
    context.dispose()
    runtime.dispose()
    return true
  } catch {
    return false
  }
}

function execute(
  room: PreparedRuntime,
  src: string,
  data_text: string,
  text_chars_max: number,
): CodeResult {
  const { context, runtime } = room
  const begun = call(room, 'begin', context.newString(data_text))
  if ('thrown' in begun) return exception(describeThrown(room, begun.thrown))
  begun.value.dispose()

  const ran = context.evalCode(src, file_name, { type: 'global' })
  if (ran.error !== undefined) return exception(describeThrown(room, ran.error))
  ran.value.dispose()
  const jobs = runtime.executePendingJobs()
  if (jobs.error !== undefined) return exception(describeThrown(room, jobs.error))

  // Read by name, so that a `let data` of the code's is found too.
  const data = context.evalCode('data', 'result')
  if (data.error !== undefined) return malformed(describeThrown(room, data.error))
  const printed = call(room, 'end', data.value)
  if ('thrown' in printed) return malformed(describeThrown(room, printed.thrown))
  const text = textOf(context, printed.value, text_chars_max)
  if (text === undefined) return malformed('data is no object')
  if (text.length > text_chars_max) return malformed(`data is over ${text_chars_max} characters`)
  return text.startsWith('{') ? { end: 'data', text } : malformed('data is no object')
}

/** Calls a function of the prelude; `given` is used up. */
function call(
  { context, parts }: PreparedRuntime,
  part: Part,
  given: QuickJSHandle,
): { value: QuickJSHandle } | { thrown: QuickJSHandle } {
  const result = context.callFunction(parts[part], context.undefined, given)
  given.dispose()
  return result.error === undefined ? { value: result.value } : { thrown: result.error }
}

/** What was thrown, as a text with its line. The value may be anything and is used up. */
function describeThrown(room: PreparedRuntime, thrown: QuickJSHandle): string {
  const told = ask(room, 'tell', thrown)
  const stack = ask(room, 'stack', thrown)
  thrown.dispose()
  // Where no memory is left for an error, there is none in what was thrown.
  if (is_nothing.has(told) && hasGrown(room)) return 'InternalError: out of memory'
  const line = new RegExp(`\\b${file_name}:([0-9]+)`).exec(stack ?? '')?.[1]
  const text = (told ?? 'a value that cannot be told').slice(0, description_chars_max)
  return line === undefined ? text : `${text}, line ${line}`
}

const is_nothing: ReadonlySet<string | undefined> = new Set([undefined, '', 'null'])

function ask(room: PreparedRuntime, part: Part, about: QuickJSHandle): string | undefined {
  const answer = call(room, part, about.dup())
  if ('value' in answer) return textOf(room.context, answer.value, description_chars_max)
  answer.thrown.dispose()
  return undefined
}

/** A string, cut one behind `chars_max`; undefined for anything else. The handle is used up. */
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
