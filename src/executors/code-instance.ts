/**
 * An instance of QuickJS in WebAssembly: its memory, its one runtime and context, and the prelude's
 * functions. All handles point into that memory and stay valid when an image of it is restored
 * (code-wasm.ts), so the runtime is made once per instance.
 */
import quickjs_variant from '@jitl/quickjs-wasmfile-release-sync'
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
} from 'quickjs-emscripten-core'
import { prelude_names, prelude_src } from './code-prelude.ts'
import {
  imageOf,
  type MemoryImage,
  newWasmMemory,
  type WasmMemory,
  type WasmModule,
} from './code-wasm.ts'

/** Discarded as a whole: nothing outside refers to its memory. */
export interface Instance {
  readonly memory: WasmMemory
  readonly runtime: QuickJSRuntime
  readonly context: QuickJSContext
  readonly prelude: Readonly<Record<PreludeFunction, QuickJSHandle>>
  /** By library set; '' is the one without libraries. */
  readonly images: Map<string, MemoryImage>
  /** Bytes of the memory when it was last ready for code. */
  ready_bytes: number
}

type PreludeFunction = (typeof prelude_names)[number]

const memory_bytes_min = 16 * 1024 * 1024
const stack_bytes_max = 256 * 1024
const description_chars_max = 1_000
export const file_name = 'code'

/** Suppresses what a broken instance prints; the types lack these options. */
const quiet: object = { print() {}, printErr() {} }

/** `isLate` is called every few thousand steps; `true` interrupts the run. */
export async function newInstance(
  wasm: WasmModule,
  memory_bytes_max: number,
  isLate: () => boolean,
): Promise<Instance> {
  const memory = newWasmMemory(memory_bytes_min, memory_bytes_max)
  // Its types describe a CommonJS module; the import gives the module's default itself.
  const base = quickjs_variant as unknown as QuickJSSyncVariant
  const options = { wasmModule: wasm, wasmMemory: memory, emscriptenModule: quiet }
  const module = await newQuickJSWASMModuleFromVariant(newVariant(base, options))
  const runtime = module.newRuntime()
  runtime.setMaxStackSize(stack_bytes_max)
  runtime.setInterruptHandler(isLate)
  const context = runtime.newContext()
  const made = context.unwrapResult(context.evalCode(prelude_src, 'prelude'))
  const prelude = {} as Record<PreludeFunction, QuickJSHandle>
  for (const name of prelude_names) prelude[name] = context.getProp(made, name)
  made.dispose()
  const images = new Map([['', imageOf(memory)]])
  return { memory, runtime, context, prelude, images, ready_bytes: memory_bytes_min }
}

export function hasGrown({ memory, ready_bytes }: Instance): boolean {
  return memory.buffer.byteLength > ready_bytes
}

/** Calls a function of the prelude and disposes `given`. */
export function call(
  { context, prelude }: Instance,
  name: PreludeFunction,
  ...given: readonly QuickJSHandle[]
): { value: QuickJSHandle } | { thrown: QuickJSHandle } {
  const result = context.callFunction(prelude[name], context.undefined, ...given)
  for (const handle of given) handle.dispose()
  return result.error === undefined ? { value: result.value } : { thrown: result.error }
}

/** Describes a thrown value, which may be anything, with its line; disposes it. */
export function describeThrown(taken: Instance, thrown: QuickJSHandle): string {
  const described = callForText(taken, 'describe', thrown)
  const stack = callForText(taken, 'stack', thrown)
  thrown.dispose()
  // Without memory for an error object, QuickJS throws an empty value.
  if (is_nothing.has(described) && hasGrown(taken)) return 'InternalError: out of memory'
  const line = new RegExp(`\\b${file_name}:([0-9]+)`).exec(stack ?? '')?.[1]
  const text = (described ?? 'a value that cannot be told').slice(0, description_chars_max)
  return line === undefined ? text : `${text}, line ${line}`
}

const is_nothing: ReadonlySet<string | undefined> = new Set([undefined, '', 'null'])

function callForText(
  taken: Instance,
  name: PreludeFunction,
  about: QuickJSHandle,
): string | undefined {
  const answer = call(taken, name, about.dup())
  if ('value' in answer) return textOf(taken.context, answer.value, description_chars_max)
  answer.thrown.dispose()
  return undefined
}

/** A string of at most `chars_max` + 1 characters, else undefined. Disposes the handle. */
export function textOf(
  context: QuickJSContext,
  handle: QuickJSHandle,
  chars_max: number,
): string | undefined {
  const is_text = context.typeof(handle) === 'string'
  const text = is_text ? context.getString(handle).slice(0, chars_max + 1) : undefined
  handle.dispose()
  return text
}
