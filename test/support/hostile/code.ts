/**
 * Hostile code in the sandbox: code that looks for the host, changes what other code runs with,
 * loops, allocates, recurses, or hands back what is no data. Each run is followed by an honest one,
 * which must find nothing of it.
 */
import { docOfText } from '../../../src/codec/json.ts'
import { systemChance } from '../../../src/core/clock.ts'
import { type LimitName, limitsWith } from '../../../src/core/limits.ts'
import { newCodeExecutor } from '../../../src/executors/code.ts'
import type { JobOutcome } from '../../../src/process/logic.ts'
import { namedLibraries } from '../../../src/process/logics/code-libraries.ts'
import type { HostileClass, HostileRow, HostileRunner } from './row.ts'

interface Sent {
  readonly src: string
  /** Which of the executors: with time, with little time, with little memory. */
  readonly on: 'patient' | 'hasty' | 'small'
}
type Row = HostileRow<Sent>

const types = (...names: string[]): string =>
  names.map((name) => `typeof ${name}`).join(' + " " + ')
const undefineds = (count: number): string => Array(count).fill('undefined').join(' ')

const host_names = [
  ...['process', 'module', 'exports', 'global', 'window', 'self', 'Buffer', 'setTimeout', 'fetch'],
  ...['setImmediate', 'queueMicrotask', 'XMLHttpRequest', 'WebAssembly', 'Worker', 'crypto', 'os'],
  ...['std', 'Deno', 'Bun', 'load', 'print', 'scriptArgs', 'performance'],
]
const this_of = (what: string): string => `${what}.constructor("return this")()`

/** [code, the text that `data` is then]. */
const finds_nothing: readonly (readonly [string, string])[] = [
  ...host_names.map((name): [string, string] => [`data.t = typeof ${name}`, '{"t":"undefined"}']),
  ...[
    ...['(() => {})', '(function () {})', '(async () => {})', 'Object', 'data.constructor'],
    ...['"".constructor', '[].filter', 'Math.random', 'console.log', 'require', 'JSON.parse'],
    ...['globalThis.constructor', 'new Proxy(function () {}, {})', 'Reflect.construct', 'Symbol'],
  ].map((what): [string, string] => [
    `var f = ${this_of(what)}; data.t = typeof (f.then ? {} : f).process`,
    '{"t":"undefined"}',
  ]),
  ['data.k = Object.keys(globalThis)', '{"k":["data"]}'],
  [
    'data.t = typeof globalThis.constructor.constructor("return this")().process',
    '{"t":"undefined"}',
  ],
  [`data.t = ${types('this.process', '(0, eval)("this").process')}`, `{"t":"${undefineds(2)}"}`],
  ['data.t = typeof new Function("return process")', '{"t":"function"}'],
  ['data.t = Object.keys(require)', '{"t":[]}'],
  ['data.t = typeof arguments', '{"t":"undefined"}'],
  ['data.t = new Error().stack.includes("/")', '{"t":false}'],
  ['data.t = typeof Error.prepareStackTrace', '{"t":"undefined"}'],
  ['Error.prepareStackTrace = (_, s) => s; data.t = typeof new Error().stack', '{"t":"string"}'],
  ['for (const k of Object.keys(console)) console[k](data)', '{}'],
  ['JSON.stringify = () => "hack"; JSON.parse = null; data.b = 2', '{"b":2}'],
  ['Object.prototype.toJSON = () => ({ fake: 1 })', '{"fake":1}'],
  ['data.b = Object.prototype.toJSON === undefined', '{"b":true}'],
  ['Object.prototype.c = 1; Array.prototype.d = 2; leaked = 2', '{}'],
  ['data.c = {}.c === undefined && [].d === undefined && typeof leaked', '{"c":"undefined"}'],
  ['data.__proto__.polluted = 1; Object.defineProperty(Object.prototype, "x", { get() {} })', '{}'],
  ['data.t = [{}.polluted, "x" in {}].map(String)', '{"t":["undefined","false"]}'],
  ['require = console = Math = undefined; data.b = 1', '{"b":1}'],
  [
    'data.t = typeof require + typeof console + typeof Math.random()',
    '{"t":"functionobjectnumber"}',
  ],
  ['Promise.prototype.then = () => { throw 1 }; Symbol.iterator = null; data.b = 1', '{"b":1}'],
  ['Object.freeze(Object.prototype); Object.freeze(globalThis); data.b = 1', '{"b":1}'],
  ['globalThis.late = 1; data.b = 1; Promise.resolve().then(() => { late = 2 })', '{"b":1}'],
  ['data.t = typeof late', '{"t":"undefined"}'],
  ['(async () => { await 1; data.w = 1 })()', '{"w":1}'],
  ['new Promise(() => {}); data.b = 1', '{"b":1}'],
  ['Promise.reject(new Error("unseen")); data.b = 1', '{"b":1}'],
  ['data = new Proxy({ a: 1 }, {})', '{"a":1}'],
  [
    'data = new Proxy({}, { ownKeys: () => ["a"], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: (_, k) => k === "a" ? 7 : undefined })',
    '{"a":7}',
  ],
  ['data = Object.create({ inherited: 1 })', '{}'],
  ['Object.defineProperty(data, "__proto__", { value: 1, enumerable: true })', '{"__proto__":1}'],
]

const exception = 'code_executing_error'
const format = 'code_return_format_error'
const no_library = 'is not served: there is no such library, line 1'

/** [code, what it fails with]. */
const fails: readonly (readonly [string, string])[] = [
  ['process.exit(1)', `${exception}: ReferenceError: 'process' is not defined, line 1`],
  ...[
    ...['fs', 'node:fs', 'libs/../x', '/etc/passwd', 'moment', 'libs/moment.js.js'],
    ...['__proto__', 'libs/constructor', 'libs/__proto__', 'toString', ''],
  ].map((name): [string, string] => [
    `require("${name}")`,
    `${exception}: require("${name}") ${no_library}`,
  ]),
  ['require({ toString: () => "libs/moment" })', `${exception}: require({}) ${no_library}`],
  ['require()', `${exception}: require(undefined) ${no_library}`],
  ['import fs from "fs"', 'a syntax error'],
  ['(function f() { f() })()', 'stack overflow'],
  ['var a = []; for (var i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a)', 'stack overflow'],
  ['('.repeat(100_000), 'stack overflow'],
  ['data = JSON.parse("[".repeat(1e6))', 'stack overflow'],
  ['var p = {}; for (var i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x', 'stack overflow'],
  ['new RegExp("(".repeat(1e5))', 'a syntax error'],
  ['new ArrayBuffer(1e9)', 'out of memory'],
  ['new Uint8Array(2 ** 40)', `${exception}: RangeError: invalid array buffer length, line 1`],
  ['"x".repeat(2 ** 31)', `${exception}: RangeError: invalid repeat count, line 1`],
  ['data.data = data', `${format}: TypeError: circular reference`],
  ['data.toJSON = () => { throw new Error("no") }', `${format}: no, line 1`],
  ['data = new Proxy({}, { ownKeys() { throw new Error("no") } })', `${format}: no, line 1`],
  ['delete globalThis.data', `${format}: ReferenceError: 'data' is not defined`],
  [
    'Object.defineProperty(globalThis, "data", { get() { throw new Error("no") } })',
    `${format}: no, line 1`,
  ],
  ['throw { get message() { throw 1 } }', `${exception}: a value that cannot be told`],
]

const endless: readonly string[] = [
  'require("libs/moment"); for (;;) moment()',
  'for (;;);',
  'for (;;) try { for (;;); } catch {}',
  'try { for (;;); } finally { for (;;); }',
  '(function f() { return Promise.resolve().then(f) })()',
  '(async () => { for (;;) await 1 })()',
  '/^(a+)+$/.test("a".repeat(40) + "b")',
  'Object.defineProperty(globalThis, "data", { get() { for (;;); } })',
  'data = new Proxy({}, { ownKeys() { for (;;); } })',
  'data.toJSON = () => { for (;;); }',
  'throw { get message() { for (;;); } }',
  '[2, 1].sort(() => { for (;;); })',
  // A single step during which the time is never checked: the thread is ended.
  'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)',
]

const greedy: readonly string[] = [
  'var a = []; for (;;) a.push({ x: 1 })',
  'var s = "x"; for (;;) s += s',
  'data.a = []; for (;;) data.a.push(new ArrayBuffer(1e5))',
  'require("libs/aes"); var a = []; for (;;) a.push(CryptoJS.lib.WordArray.create(Array(1e4).fill(1)))',
  'var m = new Map(); for (var i = 0; ; i++) m.set(i, "k" + i)',
  'var o = {}; for (var i = 0; ; i++) o["k" + i] = i',
  'var f = () => 1; for (;;) f = f.bind(null, Array(100).fill(f))',
  'data.s = "x".repeat(1e8)',
]

const row = (src: string, code: string, on: Sent['on']): Row => [src, code, { src, on }]
const rows: readonly Row[] = [
  ...finds_nothing.map(([src, text]) => row(src, `done ${text}`, 'patient')),
  ...fails.map(([src, code]) => row(src, code, 'patient')),
  ...endless.map((src) => row(src, 'code_timeout', 'hasty')),
  ...greedy.map((src) => row(src, 'out of memory', 'small')),
]

async function open(): Promise<HostileRunner<Sent>> {
  const executorWith = (given: Partial<Record<LimitName, number>>) =>
    newCodeExecutor(limitsWith(given), systemChance)
  const patient = await executorWith({ code_ms_max: 20_000, task_bytes_max: 10_000 })
  const executors = {
    patient,
    hasty: await executorWith({ code_ms_max: 40 }),
    small: await executorWith({ code_ms_max: 20_000, code_bytes_max: 18 * 1024 * 1024 }),
  }
  let latest: Sent['on'] = 'patient'
  const run = (src: string): Promise<JobOutcome> => {
    const { libraries } = namedLibraries(src)
    return executors[latest].run({ job: 'code', src, libraries, doc: docOfText('{}') })
  }
  return {
    bugs: [],
    async answerTo({ src, on }) {
      latest = on
      return answerOf(await run(src))
    },
    async honest() {
      // Who has little time has too little where the machine is busy.
      if (latest === 'hasty') return 'ok'
      const answer = answerOf(await run('data.t = Object.keys(globalThis).join() + typeof leaked'))
      return answer === 'done {"t":"dataundefined"}' ? 'ok' : answer
    },
    async close() {
      for (const executor of Object.values(executors)) await executor.close()
    },
  }
}

function answerOf(outcome: JobOutcome): string {
  if (outcome.outcome === 'done') return `done ${outcome.text}`
  const { tag, description } = outcome
  if (tag === 'code_timeout') return tag
  if (/out of memory|string too long/.test(description)) return 'out of memory'
  if (/stack overflow/.test(description)) return 'stack overflow'
  if (description.startsWith('SyntaxError: ')) return 'a syntax error'
  return `${tag}: ${description}`
}

export const hostile_code: HostileClass<Sent> = { name: 'sandbox', rows, open }
