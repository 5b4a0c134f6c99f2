/**
 * The sandbox of `api_code`: its results for correct code, and for code that loops, allocates,
 * recurses, looks for the host or leaves no data; and that the next run works after each.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, describe, test } from 'node:test'
import { docOfText } from '../src/codec/json.ts'
import { systemChance } from '../src/core/clock.ts'
import { type LimitName, limitsWith } from '../src/core/limits.ts'
import { newCodeExecutor } from '../src/executors/code.ts'
import type { JobOrder, JobOutcome } from '../src/process/logic.ts'
import { namedLibraries } from '../src/process/logics/code-libraries.ts'
import { codePath, node_flags } from './support/package-folder.ts'

describe('the sandbox', () => {
  const executorWith = (given: Partial<Record<LimitName, number>>) =>
    newCodeExecutor(limitsWith(given), systemChance)
  const patient = executorWith({ code_ms_max: 20_000, task_bytes_max: 1_000 })
  const hasty = executorWith({ code_ms_max: 80 })
  const small = executorWith({ code_ms_max: 20_000, code_bytes_max: 18 * 1024 * 1024 })
  after(async () => {
    for (const executor of [patient, hasty, small]) await (await executor).close()
  })

  const order = (src: string, data: string): Extract<JobOrder, { job: 'code' }> => {
    const { libraries } = namedLibraries(src)
    return { job: 'code', src, libraries, doc: docOfText(data) }
  }
  const run = async (executor: typeof patient, src: string, data: string): Promise<JobOutcome> =>
    (await executor).run(order(src, data))

  /** [code, data before, data after] */
  const good: readonly (readonly [string, string, string])[] = [
    ['data.b = data.a + 1', '{"a":1}', '{"a":1,"b":2}'],
    ['delete data.a', '{"a":1,"b":2}', '{"b":2}'],
    ['data = { c: 3 }', '{"a":1}', '{"c":3}'],
    ['var data = { c: 3 }', '{"a":1}', '{"c":3}'],
    ['let data = { c: 3 }', '{"a":1}', '{"c":3}'],
    ['', '{"a":1.10}', '{"a":1.1}'],
    ['// nothing', '{"a":1}', '{"a":1}'],
    ['"use strict"\nconst { a } = data\ndata.b = a + "!"', '{"a":1}', '{"a":1,"b":"1!"}'],
    ['function sum(x, y) { return x + y }\ndata.b = sum(data.a, 1)', '{"a":1}', '{"a":1,"b":2}'],
    ['if (data.a > 0) return\ndata.b = 2', '{"a":1}', '{"a":1}'],
    ['data.b = 2; return data', '{"a":1}', '{"a":1,"b":2}'],
    ['data = { x: NaN, y: 1 / 0, z: -0, u: undefined }', '{}', '{"x":null,"y":null,"z":0}'],
    ['data.d = new Date(0)', '{}', '{"d":"1970-01-01T00:00:00.000Z"}'],
    ['data.u = data.u + "\\u2028😀\\0"', '{"u":"é"}', '{"u":"é\u2028😀\\u0000"}'],
    ['data.n = data.a.length', '{"a":"😀e\u0301"}', '{"a":"😀e\u0301","n":4}'],
    ['data.k = Object.keys(data)', '{"__proto__":1}', '{"__proto__":1,"k":["__proto__"]}'],
    ['data.m = "aXbX".replace(/x/gi, "-")', '{}', '{"m":"a-b-"}'],
    ['(async () => { await 1; data.w = 1 })()', '{}', '{"w":1}'],
    [`data.n = 1 //${'x'.repeat(1024 * 1024)}`, '{}', '{"n":1}'],
  ]
  for (const [src, before, text] of good) {
    test(`${JSON.stringify(src).slice(0, 90)} over ${before}`, async () => {
      assert.deepEqual(await run(patient, src, before), { outcome: 'done', text })
    })
  }

  const exception = 'code_executing_error'
  const format = 'code_return_format_error'

  /** [code, tag, description] */
  const bad: readonly (readonly [string, string, RegExp])[] = [
    ['\n\nthrow new Error("no stock")', exception, /^no stock, line 3$/],
    ['\nnull.x', exception, /^TypeError: .*null.*, line 2$/],
    ['throw "text"', exception, /^text$/],
    ['throw { code: 7 }', exception, /^\{"code":7\}$/],
    ['throw undefined', exception, /^undefined$/],
    ['throw Symbol("s")', exception, /^Symbol\(s\)$/],
    ['throw { get message() { throw 1 } }', exception, /^a value that cannot be told$/],
    ['throw { message: { toString() { return "x" } } }', exception, /^\{"message":\{\}\}$/],
    ['throw new Error("long".repeat(1000))', exception, /^.{1000}, line 1$/],
    ['String = Error = null; throw new TypeError("t")', exception, /^TypeError: t, line 1$/],
    ['\n  data.a = = 1', exception, /^SyntaxError: .*, line 2$/],
    ['process.exit(1)', exception, /^ReferenceError: 'process' is not defined, line 1$/],
    ['require("fs")', exception, /^require\("fs"\) is not served.*, line 1$/],
    ['require("libs/../x")', exception, /^require\("libs\/\.\.\/x"\) is not served: there is no /],
    ['require("moment")', exception, /^require\("moment"\) is not served: there is no /],
    ['require("libs/moment.js.js")', exception, /there is no such library, line 1$/],
    ['require("__proto__")', exception, /there is no such library, line 1$/],
    ['require("libs/constructor")', exception, /there is no such library, line 1$/],
    ['require({ toString: () => "libs/moment" })', exception, /there is no such library, line 1$/],
    ['require()', exception, /^require\(undefined\) is not served/],
    ['require("libs/" + "moment")', exception, /^require\("libs\/moment"\) is served where the /],
    ['import fs from "fs"', exception, /^SyntaxError: /],
    ['(function f() { f() })()', exception, /stack overflow/],
    ['('.repeat(100_000), exception, /stack overflow/],
    ['data = JSON.parse("[".repeat(1e6))', exception, /stack overflow/],
    ['new ArrayBuffer(1e9)', exception, /out of memory/],
    ['data = []', format, /^data is no object$/],
    ['data = null', format, /^data is no object$/],
    ['data = 7', format, /^data is no object$/],
    ['data = "{}"', format, /^data is no object$/],
    ['data = () => 1', format, /^data is no object$/],
    ['data = new Date(0)', format, /^data is no object$/],
    ['delete globalThis.data', format, /'data' is not defined/],
    ['data.data = data', format, /^TypeError: circular reference$/],
    ['data.b = 1n', format, /^TypeError: .*BigInt/],
    ['data.s = "x".repeat(1e5)', format, /^data is over 8000 characters$/],
    ['data.toJSON = () => { throw new Error("no") }', format, /^no, line 1$/],
    ['Object.prototype.toJSON = () => "{}x"', format, /^data is no object$/],
  ]
  for (const [src, tag, description] of bad) {
    test(`${JSON.stringify(src).slice(0, 90)} is ${tag}`, async () => {
      const outcome = await run(patient, src, '{"a":1}')
      assert.ok(outcome.outcome === 'failed', JSON.stringify(outcome))
      assert.deepEqual([outcome.tag, outcome.error_type], [tag, 'software'])
      assert.match(outcome.description, description)
      assert.equal((await run(patient, 'data.b = 2', '{}')).outcome, 'done', 'the next one runs')
    })
  }

  test('runs queue for the threads allowed, each with its own data', async () => {
    const executor = await executorWith({ code_threads_max: 2 })
    const runs = Array.from({ length: 20 }, (_, at) =>
      executor.run(order('data.b = data.a * 2', `{"a":${at}}`)),
    )
    for (const [at, outcome] of (await Promise.all(runs)).entries()) {
      assert.deepEqual(outcome, { outcome: 'done', text: `{"a":${at},"b":${at * 2}}` })
    }
    await executor.close()
  })

  test('an idle thread does not keep the Node process alive', () => {
    const steps = [
      `import { newCodeExecutor } from ${JSON.stringify(codePath('src/executors/code'))}`,
      `import { limitsWith } from ${JSON.stringify(codePath('src/core/limits'))}`,
      `const made = () => newCodeExecutor(limitsWith(), { bytes: (count) => Buffer.alloc(count) })`,
      `const executors = [await made(), await made()]`,
      `const order = { job: 'code', src: 'data.b = 2', libraries: [], doc: { text: '{}' } }`,
      `for (const executor of executors) console.log((await executor.run(order)).text)`,
      `await executors[0].close()`,
      `console.log('closed')`,
    ]
    const flags = [...node_flags, '--input-type=module', '-e', steps.join('\n')]
    const printed = execFileSync(process.execPath, flags, { encoding: 'utf8', timeout: 60_000 })
    assert.equal(printed, '{"b":2}\n{"b":2}\nclosed\n')
  })

  test('closing ends running code and fails queued runs', async () => {
    const executor = await executorWith({ code_ms_max: 3_600_000 })
    await executor.run(order('', '{}'))
    const endless_order = order('for (;;);', '{}')
    const runs = [executor.run(endless_order), executor.run(endless_order)]
    await new Promise((resolve) => setImmediate(resolve))
    await executor.close()
    for (const outcome of await Promise.all([...runs, executor.run(endless_order)])) {
      assert.equal(outcome.outcome, 'failed')
    }
  })
})
