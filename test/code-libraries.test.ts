/**
 * The libraries that code may require: what each gives, that a run is not changed by what another
 * did to them, and that the limits of code hold.
 */
import assert from 'node:assert/strict'
import { createCipheriv, createHash, createHmac } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { docOfText } from '../src/codec/json.ts'
import { systemChance } from '../src/core/clock.ts'
import { type LimitName, limitsWith } from '../src/core/limits.ts'
import { newCodeExecutor } from '../src/executors/code.ts'
import { newSandbox } from '../src/executors/code-sandbox.ts'
import { codeScript } from '../src/executors/code-script.ts'
import { compileWasm } from '../src/executors/code-wasm.ts'
import type { JobOutcome } from '../src/process/logic.ts'
import { codeLibraries, namedLibraries } from '../src/process/logics/code-libraries.ts'
import { fakeChance } from './support/fake-clock.ts'

describe('the libraries of code', () => {
  const executorWith = (given: Partial<Record<LimitName, number>>, chance = systemChance) =>
    newCodeExecutor(limitsWith(given), chance)
  const patient = executorWith({ code_ms_max: 20_000, task_bytes_max: 1_000 })
  after(async () => (await patient).close())

  const run = async (executor: typeof patient, src: string, data: string): Promise<JobOutcome> => {
    const { libraries } = namedLibraries(src)
    return (await executor).run({ job: 'code', src, libraries, doc: docOfText(data) })
  }

  const hashOf = (algorithm: string): string =>
    createHash(algorithm).update('Message').digest('hex')
  const macOf = (algorithm: string): string =>
    createHmac(algorithm, 'Secret').update('Message').digest('hex')
  const cipher = createCipheriv('aes-128-cbc', Buffer.alloc(16, 1), Buffer.alloc(16, 2))
  const encrypted = cipher.update('Message', 'utf8', 'base64') + cipher.final('base64')
  const hex = (text: string): string => `CryptoJS.enc.Hex.parse("${text}")`
  const zero_iv = `{ iv: ${hex('00'.repeat(16))}, mode: CryptoJS.mode.ECB }`
  const passphrase = (name: string): string =>
    `CryptoJS.${name}.decrypt(CryptoJS.${name}.encrypt("Message", "Secret").toString(), "Secret")`

  /** [name, what the code evaluates after it has required `libs/NAME.js`, the value] */
  const required: readonly (readonly [string, string, unknown])[] = [
    ['md5', 'CryptoJS.MD5("Message").toString()', hashOf('md5')],
    ['sha1', 'CryptoJS.SHA1("Message") + ""', hashOf('sha1')],
    ['sha256', 'CryptoJS.SHA256("Message") + ""', hashOf('sha256')],
    ['sha512', 'CryptoJS.SHA512("Message") + ""', hashOf('sha512')],
    ['ripemd160', 'CryptoJS.RIPEMD160("Message") + ""', hashOf('ripemd160')],
    ['hmac-md5', 'CryptoJS.HmacMD5("Message", "Secret") + ""', macOf('md5')],
    ['hmac-sha1', 'CryptoJS.HmacSHA1("Message", "Secret") + ""', macOf('sha1')],
    ['hmac-sha256', 'CryptoJS.HmacSHA256("Message", "Secret") + ""', macOf('sha256')],
    ['hmac-sha512', 'CryptoJS.HmacSHA512("Message", "Secret") + ""', macOf('sha512')],
    [
      'aes',
      `CryptoJS.AES.encrypt("Message", ${hex('01'.repeat(16))}, { iv: ${hex('02'.repeat(16))} }) + ""`,
      encrypted,
    ],
    ['aes', `${passphrase('AES')}.toString(CryptoJS.enc.Utf8)`, 'Message'],
    [
      'des',
      `CryptoJS.DES.encrypt(${hex('4e6f772069732074')}, ${hex('0123456789abcdef')}, ${zero_iv})` +
        '.ciphertext.toString().slice(0, 16)',
      '3fa40e8a984d4815',
    ],
    ['tripledes', `${passphrase('TripleDES')}.toString(CryptoJS.enc.Utf8)`, 'Message'],
    ['rabbit', `${passphrase('Rabbit')}.toString(CryptoJS.enc.Utf8)`, 'Message'],
    [
      'rc4',
      'CryptoJS.RC4.encrypt("Plaintext", CryptoJS.enc.Utf8.parse("Key")).ciphertext + ""',
      'bbf316e8d940af0ad3',
    ],
    [
      'enc-base64',
      'CryptoJS.enc.Base64.stringify(CryptoJS.enc.Utf8.parse("é"))',
      Buffer.from('é').toString('base64'),
    ],
    ['base64', 'CryptoJS.enc.Base64.parse("YQ==").toString(CryptoJS.enc.Utf8)', 'a'],
    ['sha1', 'CryptoJS.lib.WordArray.random(16).sigBytes', 16],
    ['moment', 'moment("2011-10-31", "YYYY-MM-DD").add(4, "months").format("L")', '02/29/2012'],
    ['moment', 'moment.utc(1e12).format()', '2001-09-09T01:46:40Z'],
    ['moment', 'moment(["2016"]).isValid() && typeof moment.tz', 'undefined'],
    [
      'moment-timezone',
      '[0, 1e12, 4e12].map((at) => moment.tz(at, "Europe/Kyiv").format())',
      ['1970-01-01T03:00:00+03:00', '2001-09-09T04:46:40+03:00', '2096-10-02T10:06:40+03:00'],
    ],
    ['moment-timezone', 'moment.tz("2024-07-01 12:00", "America/New_York").utc().hour()', 16],
    [
      'xregexp',
      'XRegExp.exec("2024-02", XRegExp("(?<year> \\\\d+ ) - (?<month> \\\\d+ )", "x")).year',
      '2024',
    ],
    ['xregexp', 'XRegExp.replace("Ґрати", XRegExp("\\\\p{Lu}"), "-")', '-рати'],
  ]
  for (const [name, expression, value] of required) {
    test(`libs/${name}.js: ${expression}`, async () => {
      const global = Object.values(codeLibraries).find(({ names }) => names.includes(name))?.global
      const text = JSON.stringify({ v: value })
      for (const src of [
        `require("libs/${name}.js"); data.v = ${expression}`,
        `const ${global} = require('libs/${name}'); data.v = ${expression}`,
        `var ${global} = require("libs/${name}.js"); data.v = ${expression}`,
        `var ${global}; require("libs/${name}.js"); data.v = ${expression}`,
      ]) {
        assert.deepEqual(await run(patient, src, '{}'), { outcome: 'done', text }, src)
      }
    })
  }

  test('every name of the table gives its library', async () => {
    for (const { names, global } of Object.values(codeLibraries)) {
      const calls = names.map((name) => `require("libs/${name}")`).join()
      const src = `data.same = [${calls}].every((one) => one === ${global})`
      assert.deepEqual(await run(patient, src, '{}'), { outcome: 'done', text: '{"same":true}' })
    }
  })

  const all = 'require("libs/moment-timezone"); require("libs/xregexp"); require("libs/md5");'
  const attacks: readonly string[] = [
    'moment.fn.format = moment.utc = () => "leak"; moment.leak = 1; moment.locale("leak")',
    'moment.tz.add("Europe/Kyiv|X|0|0|"); moment.tz.setDefault("Europe/Kyiv")',
    'moment.updateLocale("en", { months: Array(12).fill("leak") })',
    'XRegExp.install("natives"); XRegExp.addToken(/a/, () => "leak")',
    'CryptoJS.MD5 = CryptoJS.lib.WordArray.random = () => "leak"; CryptoJS.leak = 1',
    'Object.prototype.leak = Function.prototype.leak = Array.prototype.leak = 1; leak = 1',
    'moment.constructor.prototype.call = () => "leak"; Math.random = Date.now = () => 1',
    'require = console = moment = CryptoJS = null; delete globalThis.data; Map.prototype.get = null',
    'throw new Error("leak")',
  ]
  const seen = `${all} data.v = [moment.utc(1e12).format("MMM"), moment.tz(1e12, "Europe/Kyiv").hour(),
    "a".match(/a/)[0], CryptoJS.MD5("") + "", typeof moment.leak, typeof CryptoJS.leak,
    typeof {}.leak, typeof leak, Math.random() === Math.random(), moment(0).isUtcOffset()]`
  for (const attack of attacks) {
    test(`the next run sees nothing of: ${attack}`, async () => {
      await run(patient, `${all} ${attack}`, '{}')
      const v = ['Sep', 4, 'a', createHash('md5').digest('hex')]
      const text = JSON.stringify({ v: [...v, ...Array(4).fill('undefined'), false, false] })
      assert.deepEqual(await run(patient, seen, '{}'), { outcome: 'done', text })
    })
  }

  test('libraries give no way out', async () => {
    const places = ['moment', 'XRegExp', 'CryptoJS.MD5', 'require', 'console.log']
    const found = places.map(
      (place) => `${place}.constructor("return typeof process + typeof window + this.module")()`,
    )
    const text = JSON.stringify({ v: places.map(() => 'undefinedundefinedundefined') })
    const outcome = await run(patient, `${all} data.v = [${found}]`, '{}')
    assert.deepEqual(outcome, { outcome: 'done', text })
  })

  test('the time that libraries take to load is not that of the code', async () => {
    const fresh = executorWith({ code_ms_max: 20_000 })
    await run(fresh, '', '{}')
    const began_ms = performance.now()
    await run(fresh, all, '{}')
    // Less than they take to load, as long as that takes on this machine now.
    const code_ms_max = Math.max(120, Math.round((performance.now() - began_ms) / 2))
    await (await fresh).close()
    const wanted = ['done', 'code_timeout', 'done']
    let found: string[] = []
    // A busy machine may hold up a run for that long, but not each time.
    for (let tries = 0; tries < 5 && found.join() !== wanted.join(); tries++) {
      const executor = executorWith({ code_ms_max })
      found = []
      for (const src of ['data.b = 2', 'for (;;);', 'data.b = 2']) {
        const outcome = await run(executor, `${all} ${src}`, '{}')
        found.push(outcome.outcome === 'failed' ? outcome.tag : outcome.outcome)
      }
      await (await executor).close()
    }
    assert.deepEqual(found, wanted)
  })

  test('closing while libraries load fails the run', async () => {
    const executor = executorWith({})
    await run(executor, '', '{}')
    const outcome = run(executor, `${all} data.b = 2`, '{}')
    await new Promise((resolve) => setImmediate(resolve))
    await (await executor).close()
    assert.equal((await outcome).outcome, 'failed')
  })

  test('a library that cannot be loaded fails the code that names it, with a sentence', async () => {
    const { wasm } = await codeScript()
    const limits = { time_ms_max: 20_000, memory_bytes_max: 32 << 20, text_chars_max: 100 }
    const sandbox = newSandbox(await compileWasm(wasm), limits)
    const request = { src: 'data.a = 1', data_text: '{}', seed: [1, 2, 3, 4] }
    sandbox.addLibrary('moment', 'throw new Error("no room")')
    sandbox.addLibrary('xregexp', '= 1')
    for (const [name, why] of [
      ['moment', /^the library moment cannot be loaded: no room$/],
      ['xregexp', /^the library xregexp cannot be loaded: SyntaxError: /],
    ] as const) {
      const libraries = [name]
      await sandbox.prepare(libraries)
      const result = await sandbox.run({ ...request, libraries })
      assert.ok(result.end === 'exception')
      assert.match(result.description, why)
      const next = await sandbox.run({ ...request, libraries: [] })
      assert.deepEqual(next, { end: 'data', text: '{"a":1}' })
    }
  })

  test('chance comes from the engine, and differs between runs', async () => {
    const src =
      'require("libs/aes"); data.v = [Math.random(), CryptoJS.lib.WordArray.random(8) + ""]'
    const texts: string[] = []
    for (const at of [0, 1]) {
      const executor = executorWith({}, fakeChance())
      for (const _run of [0, 1]) {
        const outcome = await run(executor, src, '{}')
        assert.ok(outcome.outcome === 'done', JSON.stringify(outcome))
        texts.push(outcome.text)
      }
      await (await executor).close()
      assert.notEqual(texts[at * 2], texts[at * 2 + 1])
    }
    assert.deepEqual(texts.slice(2), texts.slice(0, 2))
  })
})
