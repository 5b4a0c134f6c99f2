/**
 * `api_code` without its sandbox: valid definitions, how a result is applied to the data, and tasks
 * that change while their code runs.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { docOfText, isObject, objectOf, parseJson, stringifyJson } from '../src/codec/json.ts'
import { limitsWith } from '../src/core/limits.ts'
import type { JsonObject } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { newCodeExecutor } from '../src/executors/code.ts'
import type { JobOutcome } from '../src/process/logic.ts'
import { apiCode, applyDiff, diffData } from '../src/process/logics/api-code.ts'
import { type CodeHarness, codeHarness, codeProcess, inNode } from './support/code-setup.ts'
import { fakeChance } from './support/fake-clock.ts'
import { contextOf, notes } from './support/logic-context.ts'

describe('the definition', () => {
  /** [logic, mistakes, warnings] */
  const rows: readonly (readonly [JsonObject, RegExp[], RegExp[]])[] = [
    [{ lang: 'js', src: 'data.a = 1', err_node_id: 'a' }, [], []],
    [{ lang: 'js', src: '' }, [], []],
    [{ lang: 'js', src: 'if (data.a) return; data.b = 1' }, [], []],
    [{ src: 'data.a = 1' }, [], []],
    [{ lang: 'js', src: null, code: 'data.a = 1' }, [], []],
    [{ lang: 'js' }, [/src is nothing, a text/], []],
    [{ lang: 'js', src: ['data'] }, [/src is an array, a text/], []],
    [{ lang: 'js', src: '', err_node_id: 'nowhere' }, [/err_node_id is no node/], []],
    [{ lang: 'js', src: 'data.a = = 1' }, [], [/src is no JavaScript: /]],
    [{ lang: 'js', src: 'var m = require("libs/md5.js")' }, [], []],
    [
      { src: `require("libs/sha1"); require('libs/moment.js'); require(\`libs/xregexp.js\`)` },
      [],
      [],
    ],
    [{ src: 'require("fs")' }, [], [/^src requires "fs", which is not a library here$/]],
    [{ src: 'require("libs/../x"); require("fs")' }, [], [/"libs\/..\/x"/, /"fs"/]],
    [{ src: 'require("libs/" + "moment.js")' }, [], [/what is no name in quotes/]],
    [{ lang: 'js', src: 'data.k = "{{env_var[@k].v}}"' }, [], [/template/]],
  ]
  for (const [raw, mistakes, warnings] of rows) {
    test(JSON.stringify(raw), () => {
      const report = notes()
      apiCode.compile(raw, report)
      matchAll(report.mistakes, mistakes)
      matchAll(report.warnings, warnings)
    })
  }

  function matchAll(found: readonly string[], wanted: readonly RegExp[]): void {
    assert.equal(found.length, wanted.length, found.join('; '))
    for (const [at, pattern] of wanted.entries()) assert.match(found[at] as string, pattern)
  }
})

describe('the result applied to the data of that time', () => {
  const limit = 200
  /** [data at the order, data after the code, data at the end, the task's data or the tag] */
  const rows: readonly (readonly [string, string, string, string])[] = [
    ['{"a":1}', '{"a":1,"b":2}', '{"a":1}', '{"a":1,"b":2}'],
    ['{"a":1,"b":2}', '{"a":1}', '{"a":1,"b":2}', '{"a":1}'],
    ['{"a":1}', '{"a":1}', '{"a":7,"c":3}', '{"a":7,"c":3}'],
    ['{"a":1}', '{"a":2}', '{"a":7,"c":3}', '{"a":2,"c":3}'],
    ['{"a":1}', '{}', '{"c":3}', '{"c":3}'],
    ['{}', '{"a":1}', '{"a":[2]}', '{"a":1}'],
    // Unchanged numbers keep their tokens at any depth; numbers that the code set are doubles.
    ['{"a":1.10,"b":1}', '{"a":1.1,"b":2}', '{"a":1.10,"b":1}', '{"a":1.10,"b":2}'],
    ['{"a":1.10}', '{"a":1.2}', '{"a":1.10}', '{"a":1.2}'],
    [
      '{"a":-0,"b":1e400}',
      '{"a":0,"b":null,"c":1}',
      '{"a":-0,"b":1e400}',
      '{"a":-0,"b":1e400,"c":1}',
    ],
    ['{"a":{"p":1.10,"q":1}}', '{"a":{"q":2,"p":1.1}}', '{}', '{"a":{"q":2,"p":1.10}}'],
    ['{"a":{"p":1.10,"q":1}}', '{"a":{"q":1,"p":1.1}}', '{}', '{}'],
    ['{"a":[1.0,2]}', '{"a":[1,2,3]}', '{"a":[1.0,2]}', '{"a":[1.0,2,3]}'],
    ['{"n":12345678901234567890}', '{"n":12345678901234567000,"x":1}', '{}', '{"x":1}'],
    ['{"a":"1.10"}', '{"a":1.1}', '{}', '{"a":1.1}'],
    ['{"a":{"b":1}}', '{"a":[1]}', '{}', '{"a":[1]}'],
    ['{"__proto__":{"x":1}}', '{}', '{"__proto__":{"x":1},"y":2}', '{"y":2}'],
    ['{}', '{"__proto__":{"x":1}}', '{"y":2}', '{"y":2,"__proto__":{"x":1}}'],
    ['{"constructor":1}', '{"constructor":1,"toString":2}', '{}', '{"toString":2}'],
    ['{}', '[]', '{}', 'code_return_format_error'],
    ['{}', 'null', '{}', 'code_return_format_error'],
    ['{}', '{"a":', '{}', 'code_return_format_error'],
    ['{}', '{"a":"\\ud800"}', '{}', 'code_return_format_error'],
    ['{}', `{"a":${'['.repeat(61)}${']'.repeat(61)}}`, '{}', 'code_return_format_error'],
    ['{}', `{"a":"${'x'.repeat(limit)}"}`, '{}', 'code_return_format_error'],
    ['{"a":1}', '{"a":1,"b":"é"}', `{"c":"${'x'.repeat(limit - 8)}"}`, 'code_return_format_error'],
  ]
  for (const [ordered, text, now, wanted] of rows) {
    test(`${ordered} → ${text} over ${now}`.slice(0, 120), () => {
      const command = finish(ordered, { outcome: 'done', text }, now)
      assert.equal(
        command.command === 'set' ? command.doc.text : 'tag' in command && command.tag,
        wanted,
      )
      if (command.command === 'fail') {
        assert.deepEqual(
          [command.kind, command.error_type, command.err_node_id],
          ['code', 'software', 'a'],
        )
      }
    })
  }

  test('a failure goes unchanged to the error node', () => {
    const failure = { error_type: 'hardware', tag: 'code_timeout', description: 'why' } as const
    assert.deepEqual(finish('{}', { outcome: 'failed', ...failure }, '{}'), {
      command: 'fail',
      kind: 'code',
      ...failure,
      err_node_id: 'a',
    })
  })

  function finish(ordered: string, outcome: JobOutcome, now: string) {
    const logic = apiCode.compile({ src: '', err_node_id: 'a' }, notes())
    const context = contextOf(now, { task_bytes_max: limit })
    const command = logic.job?.finish(
      context,
      { job: 'code', src: '', libraries: [], doc: docOfText(ordered) },
      outcome,
    )
    assert.ok(command)
    return command
  }

  const tokens = ['0', '-0', '1.10', '10.0', '1e400', '-1e5', '12345678901234567890', '0.1', '1e-9']
  const leaf = fc.oneof(
    fc.constantFrom(...tokens),
    fc.string({ unit: 'grapheme' }).map((one) => JSON.stringify(one)),
    fc.constantFrom('null', 'true', '{}', '[]'),
  )
  const key = fc.constantFrom('a', 'b', '1', '__proto__', 'constructor')
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc.array(tie('value'), { maxLength: 3 }).map((of) => `[${of.join()}]`),
      objectText(tie('value')),
    ),
  }))

  function objectText(member: fc.Arbitrary<string>): fc.Arbitrary<string> {
    const pair = fc.tuple(key, member).map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    return fc.array(pair, { maxLength: 4 }).map((pairs) => `{${pairs.join()}}`)
  }

  const asDoubles = (text: string): JsonObject => {
    const read = parseJson(JSON.stringify(JSON.parse(text)))
    assert.ok(isObject(read))
    return read
  }

  test('reading any data as doubles changes nothing', () => {
    fc.assert(
      fc.property(objectText(value), (text) => {
        const data = objectOf(docOfText(text))
        assert.deepEqual(diffData(data, asDoubles(text)), { changed: {}, removed: [] })
      }),
    )
  })

  test('a diff between any two data, applied, gives the second', () => {
    fc.assert(
      fc.property(objectText(value), objectText(value), (from, to) => {
        const data = objectOf(docOfText(from))
        const reached = applyDiff(data, diffData(data, asDoubles(to)))
        assert.deepEqual(sorted(asDoubles(stringifyJson(reached))), sorted(asDoubles(to)))
      }),
    )
  })

  function sorted(object: JsonObject): [string, unknown][] {
    return Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1))
  }
})

describe('in the engine', () => {
  const bugs: unknown[] = []
  const opened: Engine[] = []
  const shared = newCodeExecutor(limitsWith({ code_ms_max: 20_000 }), fakeChance())
  after(async () => {
    await Promise.all(opened.map((engine) => engine.close()))
    await (await shared).close()
    assert.deepEqual(bugs, [])
  })

  async function start(
    src: string,
    more: Parameters<typeof codeProcess>[1] & { data?: JsonObject } = {},
  ): Promise<{ harness: CodeHarness; engine: Engine; obj_id: string }> {
    const harness = await codeHarness({}, bugs, shared)
    const engine = await harness.open()
    opened.push(engine)
    await engine.processes.put(codeProcess(src, more))
    const { obj_id } = await engine.create({ conv_id: 1, ref: 'r', data: more.data ?? { a: 1 } })
    return { harness, engine, obj_id: obj_id as string }
  }

  test('a modify during the run and the diff are merged', async () => {
    const { harness, engine, obj_id } = await start('data.b = data.a + 1; delete data.c', {
      data: { a: 1, c: 1, d: 1 },
    })
    const order = await harness.order()
    assert.equal(order.data_text, '{"a":1,"c":1,"d":1}')
    await engine.modify({ conv_id: 1, ref: 'r', data: { a: 9, c: 9, e: 9 } })
    order.go()
    const task = await inNode(engine, obj_id, 'done')
    assert.deepEqual(JSON.parse(task.data_text), { a: 9, d: 1, e: 9, b: 2 })
  })

  test('the member __root has the fields of the task and is no part of the data', async () => {
    const src = 'const { ref, conv_id, node_id } = data["__root"]; data.r = [ref, conv_id, node_id]'
    for (const more of ['', '; delete data["__root"]', '; data["__root"] = 1']) {
      const { harness, engine, obj_id } = await start(src + more, { data: { a: 1 } })
      const order = await harness.order()
      order.go()
      assert.equal((await inNode(engine, obj_id, 'done')).data_text, '{"a":1,"r":["r",1,"code"]}')
    }
  })

  test('the result is dropped if a timer moved the task on', async () => {
    const { harness, engine, obj_id } = await start('data.b = 2', { late: 'late' })
    const order = await harness.order()
    harness.clock.advance(1_000)
    assert.equal((await inNode(engine, obj_id, 'late')).data_text, '{"a":1}')
    order.go()
    await settled(harness, engine)
    const task = await inNode(engine, obj_id, 'late')
    assert.deepEqual([task.status, task.data_text], ['processed', '{"a":1}'])
  })

  test('the result of an earlier visit is dropped, that of the present visit is applied', async () => {
    const src = 'data.n = (data.n || 0) + 1; data.seen = data.a'
    const { harness, engine, obj_id } = await start(src, { late: 'code' })
    const first = await harness.order()
    await engine.modify({ conv_id: 1, ref: 'r', data: { a: 2 } })
    harness.clock.advance(1_000)
    await timerRang(engine, obj_id)
    first.go()
    const second = await harness.order()
    second.go()
    const task = await inNode(engine, obj_id, 'done')
    assert.deepEqual(JSON.parse(task.data_text), { a: 2, n: 1, seen: 2 })
  })

  test('code running at a close runs again after the next open', async () => {
    const { harness, engine, obj_id } = await start('data.b = 2')
    await harness.order()
    await engine.close()
    const again = await harness.open()
    opened.push(again)
    const order = await harness.order()
    order.go()
    assert.equal((await inNode(again, obj_id, 'done')).data_text, '{"a":1,"b":2}')
  })

  test('the result for a paused process waits until it is resumed', async () => {
    const { harness, engine, obj_id } = await start('data.b = 2')
    const order = await harness.order()
    await engine.processes.pause(1)
    order.go()
    await settled(harness, engine)
    const resting = await engine.task({ conv_id: 1, obj_id })
    assert.deepEqual([resting?.node_id, resting?.data_text], ['code', '{"a":1}'])
    await engine.processes.resume(1)
    assert.equal((await inNode(engine, obj_id, 'done')).data_text, '{"a":1,"b":2}')
  })

  test('the result for a canceled task is dropped', async () => {
    const { harness, engine, obj_id } = await start('data.b = 2')
    const order = await harness.order()
    await engine.tasks.cancel({ conv_id: 1, obj_id })
    order.go()
    await settled(harness, engine)
    const task = await engine.task({ conv_id: 1, obj_id })
    assert.deepEqual([task?.status, task?.data_text], ['canceled', '{"a":1}'])
  })

  test('a failure sets the error fields at its error node', async () => {
    const { harness, engine, obj_id } = await start('\nthrow new Error("no stock")')
    const order = await harness.order()
    order.go()
    const task = await inNode(engine, obj_id, 'broken')
    assert.deepEqual(JSON.parse(task.data_text), {
      a: 1,
      __conveyor_code_return_type_error__: 'software',
      __conveyor_code_return_type_tag__: 'code_executing_error',
      __conveyor_code_return_description__: 'no stock, line 2',
    })
  })

  test('without an error node the task has failed, and a retry runs it again', async () => {
    const { harness, engine, obj_id } = await start('data.b = data.a.x.y', { broken: false })
    const order = await harness.order()
    order.go()
    const task = await inNode(engine, obj_id, 'code')
    assert.equal(task.status, 'failed')
    assert.equal(task.status_details?.tag, 'code_executing_error')
    await engine.modify({ conv_id: 1, ref: 'r', data: { a: { x: { y: 5 } } } })
    await engine.tasks.retry({ conv_id: 1, obj_id })
    const again = await harness.order()
    again.go()
    const data = JSON.parse((await inNode(engine, obj_id, 'done')).data_text) as JsonObject
    assert.equal(data.b, 5)
  })

  test('ops are answered while code loops', async () => {
    const harness = await codeHarness({ code_ms_max: 3_600_000 }, bugs)
    await using engine = await harness.open()
    await engine.processes.put(codeProcess('for (;;);'))
    const { obj_id } = await engine.create({ conv_id: 1, ref: 'r', data: { a: 1 } })
    const order = await harness.order()
    order.go()
    for (let at = 0; at < 50; at++) {
      const { proc } = await engine.modify({ conv_id: 1, ref: 'r', data: { at } })
      assert.equal(proc, 'ok')
      await new Promise((resolve) => setImmediate(resolve))
    }
    const task = await engine.task({ conv_id: 1, obj_id: obj_id as string })
    assert.deepEqual([task?.node_id, task?.status], ['code', 'delayed'])
  })

  /** Until the code that was let go has been answered and its outcome looked at. */
  async function settled(harness: CodeHarness, engine: Engine): Promise<void> {
    const ref = 'behind'
    const { proc } = await engine.create({ conv_id: 1, ref, data: {} })
    if (proc === 'ok') (await harness.order()).go()
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Until the task has come into its node anew. */
  async function timerRang(engine: Engine, obj_id: string): Promise<void> {
    for (let turns = 0; turns < 1_000; turns++) {
      const task = await engine.task({ conv_id: 1, obj_id })
      if (task?.node_prev_id === 'code') return
      await new Promise((resolve) => setImmediate(resolve))
    }
    throw new Error('the timer did not ring')
  }
})
