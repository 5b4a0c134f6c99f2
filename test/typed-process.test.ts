/**
 * Processes typed by schemas (`Engine.process`): what a create and a callback store or refuse, what
 * handlers and readers get, schemas that misbehave, and the types, which `npm run types` checks.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import type { SchemaResult, StandardSchema } from '../src/core/standard-schema.ts'
import {
  after,
  callback,
  type DataSchema,
  defineProcess,
  end,
  go,
  handled,
  node,
  type ProcessDefinition,
  when,
} from '../src/define.ts'
import type { Engine, OpResult, TypedProcess } from '../src/index.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn } from './support/model-setup.ts'
import { turns } from './support/store-trees.ts'

const order = defineProcess({
  id: 1234,
  data: z.object({
    amount: z.number(),
    currency: z.string().default('EUR'),
    charge_id: z.string().optional(),
    paid: z.boolean().optional(),
  }),
  nodes: {
    start: go('charge'),
    charge: node([callback(), go('pay')], { title: 'Charge the card' }),
    pay: [
      callback({ data: z.object({ paid: z.stringbool() }) }),
      when('paid', 'eq', true).go('done'),
      after({ days: 1 }).go('late'),
    ],
    done: end({ save: true }),
    late: end({ save: true }),
  },
})

async function opened(definition: object, clock = fakeClock()): Promise<Engine> {
  const engine = await engineOn(memoryTree(), { clock })
  await engine.processes.put(definition)
  return engine
}

const nodes = {
  start: go('wait'),
  wait: [callback(), go('done')],
  done: end({ save: true }),
} as const

/** A schema whose `validate` is this. */
function schemaOf(validate: (value: unknown) => unknown): DataSchema {
  return {
    '~standard': { version: 1, vendor: 'test', validate: validate as () => SchemaResult<object> },
  }
}

const issue = { message: 'no', path: ['a', { key: 'b' }, 0] }
const long = 'x'.repeat(200)

describe('a create is checked', () => {
  const amount = z.object({ amount: z.number(), currency: z.string().default('EUR') })
  /** [what, the schema, the data, the proc and description, the stored data] */
  const rows: readonly (readonly [string, DataSchema, unknown, string, string | object])[] = [
    ['zod', amount, { amount: 1, more: 2 }, 'ok', { amount: 1, currency: 'EUR' }],
    [
      'a refusal of zod',
      amount,
      { amount: '1' },
      'wrong_validate_params',
      'Param: amount, Error: Invalid input: expected number, received string',
    ],
    [
      'valibot',
      v.object({ amount: v.number(), currency: v.optional(v.string(), 'EUR') }),
      { amount: 1 },
      'ok',
      { amount: 1, currency: 'EUR' },
    ],
    [
      'a refusal of valibot',
      v.object({ list: v.array(v.object({ n: v.number() })) }),
      { list: [{ n: 1 }, { n: 'x' }] },
      'wrong_validate_params',
      'Param: list[1].n, Error: Invalid type: Expected number but received "x"',
    ],
    ['arktype', type({ amount: 'number' }), { amount: 1, b: 2 }, 'ok', { amount: 1, b: 2 }],
    [
      'a refusal of arktype',
      type({ amount: 'number' }),
      {},
      'wrong_validate_params',
      'Param: amount, Error: amount must be a number (was missing)',
    ],
    [
      'a Date, which is stored as its text',
      z.object({ at: z.coerce.date() }),
      { at: 0 },
      'ok',
      { at: '1970-01-01T00:00:00.000Z' },
    ],
    [
      'a promise',
      z.object({ a: z.string() }).refine(async () => true),
      { a: 'b' },
      'ok',
      { a: 'b' },
    ],
    [
      'a rejection',
      schemaOf(async () => Promise.reject(new Error('no database'))),
      {},
      'wrong_validate_params',
      'Error: the schema threw: no database',
    ],
    [
      'a throw',
      schemaOf(() => {
        throw new Error('broken')
      }),
      {},
      'wrong_validate_params',
      'Error: the schema threw: broken',
    ],
    [
      'a throw of anything',
      schemaOf(() => {
        throw Object.create(null)
      }),
      {},
      'wrong_validate_params',
      'Error: the schema threw',
    ],
    [
      'no result at all',
      schemaOf(() => undefined),
      {},
      'wrong_validate_params',
      'Error: the schema threw: it gave no result',
    ],
    [
      'issues',
      schemaOf(() => ({ issues: [issue, { message: 'top' }] })),
      {},
      'wrong_validate_params',
      'Param: a.b[0], Error: no; Error: top',
    ],
    [
      'issues without messages and paths',
      schemaOf(() => ({ issues: [{}, { path: [] }] })),
      {},
      'wrong_validate_params',
      'Error: not valid; Error: not valid',
    ],
    [
      'no issue in the issues',
      schemaOf(() => ({ issues: [] })),
      {},
      'wrong_validate_params',
      'Error: not valid',
    ],
    [
      'many issues, and long ones',
      schemaOf(() => ({ issues: Array(100).fill({ message: long, path: Array(100).fill('a') }) })),
      {},
      'wrong_validate_params',
      `${Array(8)
        .fill(`Param: ${Array(16).fill('a').join('.')}, Error: ${long.slice(0, 128)}…`)
        .join('; ')}; 92 more`,
    ],
    [
      'what is no JSON',
      schemaOf(() => ({ value: { at: new Map() } })),
      {},
      'error',
      'Value is not valid. data.at is no plain object',
    ],
    ['no object', schemaOf(() => ({ value: 'x' })), {}, 'error', 'Value is not valid. data: "x"'],
  ]
  for (const [what, data, given, proc, expected] of rows) {
    it(`${what}: ${proc}`, async () => {
      const definition = defineProcess({ id: 1, nodes, data })
      const engine = await opened(definition)
      const result = await engine.process(definition).create({ ref: 7, data: given })
      assert.deepEqual([result.proc, result.ref, result.ref_is_number], [proc, '7', true])
      const task = await engine.task({ conv_id: 1, ref: 7 })
      if (proc === 'ok') assert.deepEqual(task?.data, expected)
      else assert.deepEqual([result.description, task], [expected, undefined])
      await engine.close()
    })
  }
})

/** What a call that rejects rejects with. */
async function rejection(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'nothing',
    ({ code, message }: Error & { code?: string }) => `${code}: ${message}`,
  )
}

const reason = ({ proc, description }: OpResult): string => `${proc}: ${description}`

it('a schema that never answers refuses a create after 10 s, and fails the read of a task', async () => {
  const clock = fakeClock()
  let answer: unknown = { value: {} }
  const definition = defineProcess({ id: 1, nodes, data: schemaOf(() => answer) })
  const engine = await opened(definition, clock)
  const tasks = engine.process(definition)
  await tasks.create({ ref: 'r', data: {} })
  answer = new Promise(() => {})
  const calls = [tasks.create({ data: {} }).then(reason), rejection(tasks.task({ ref: 'r' }))]
  await turns()
  clock.advance(9_999)
  assert.equal(await Promise.race([...calls, turns().then(() => 'no answer')]), 'no answer')
  clock.advance(1)
  assert.deepEqual(await Promise.all(calls), [
    'wrong_validate_params: Error: the schema threw: it took more than 10000 ms',
    'undefined: it took more than 10000 ms',
  ])
  await engine.close()
})

it('a callback is checked with the schema of its node, and resumes only there', async () => {
  const engine = await opened(order)
  const orders = engine.process(order)
  assert.equal(orders.conv_id, '1234')
  await orders.create({ ref: 'o-1', data: { amount: 1 } })
  const paid = { ref: 'o-1', data: { paid: 'yes' } }
  const wrong = { ref: 'o-1', data: { paid: 'perhaps' } }
  const refused = await orders.callback('pay', wrong)
  assert.equal(refused.proc, 'wrong_validate_params')
  assert.match(refused.description ?? '', /^Param: paid, Error: /)
  assert.equal((await orders.callback('pay', paid)).proc, 'no_api_callback_in_node_with_task')
  assert.equal(
    (await orders.callback('charge', { ref: 'o-1', data: { charge_id: 'c' } })).proc,
    'ok',
  )
  assert.equal((await orders.callback('pay', paid)).proc, 'ok')
  const [{ node_id, data, history }, same] = await Promise.all([
    orders.result({ ref: 'o-1' }),
    engine.result({ conv_id: 1234, ref: 'o-1' }),
  ])
  assert.deepEqual(history, same.history)
  assert.equal(history?.[0]?.why, 'create')
  const stored = { amount: 1, currency: 'EUR', charge_id: 'c', paid: true }
  assert.deepEqual([node_id, data], ['done', stored])
  await engine.close()
})

it('a process that is not stored, and a target that is malformed, are refused as by the engine', async () => {
  const engine = await engineOn(memoryTree())
  const orders = engine.process(order)
  assert.equal((await orders.create({ data: { amount: 1 } })).proc, 'conv_not_found')
  const bad = await orders.create({ ref: '', data: { amount: 'x' as unknown as number } })
  assert.deepEqual([bad.proc, bad.key], ['error', 'ref'])
  assert.throws(() => engine.process({ obj_id: 1 } as ProcessDefinition), TypeError)
  await engine.close()
})

it('data that came another way is refused when it is read, without being told', async () => {
  const engine = await opened(order)
  const orders = engine.process(order)
  await engine.create({ conv_id: 1234, ref: 'o-1', data: { amount: 'secret', paid: 'secret' } })
  const expected = 'wrong_validate_params: the schema refuses the data of the task at: amount; paid'
  assert.equal(await rejection(orders.task({ ref: 'o-1' })), expected)
  await engine.tasks.cancel({ conv_id: 1234, ref: 'o-1' })
  assert.equal(await orders.task({ ref: 'missing' }), undefined)
  await engine.close()
})

describe('a handler', () => {
  it('gets what the schema makes of the data, with the members of the task', async () => {
    const engine = await opened(order)
    const orders = engine.process(order)
    const remove = orders.handle('charge', ({ data, ref, data_text }, { key }) => {
      assert.equal(data_text, '{"amount":1,"other":2}')
      assert.ok(key.length > 0)
      return { charge_id: `${data.currency} ${data.amount} ${ref}` }
    })
    await engine.create({ conv_id: 1234, ref: 'o-1', data: { amount: 1, other: 2 } })
    for await (const { node_id } of engine.changes()) if (node_id === 'pay') break
    const { charge_id } = (await orders.task({ ref: 'o-1' }))?.data ?? {}
    assert.equal(charge_id, 'EUR 1 o-1')
    remove()
    await engine.close()
  })

  it('is not called for data that the schema refuses, which is final', async () => {
    const engine = await opened(order)
    const orders = engine.process(order)
    orders.handle('charge', () => assert.fail('it was called'))
    await engine.create({ conv_id: 1234, ref: 'o-1', data: { amount: 'secret' } })
    const { status, status_details } = await engine.result({ conv_id: 1234, ref: 'o-1' })
    assert.deepEqual(
      [status, status_details],
      [
        'failed',
        {
          tag: 'handler_error',
          description: 'the schema refuses the data of the task at: amount',
        },
      ],
    )
    await engine.close()
  })

  it('of a type answers in its process alone, and is needed before the definition', async () => {
    const definition = (id: number) =>
      defineProcess({
        id,
        nodes: { start: [handled('db_call'), go('end')], end: end({ save: true }) },
      })
    const engine = await engineOn(memoryTree())
    for (const id of [1, 2]) {
      engine.process(definition(id)).handle('start', () => ({ by: id }))
      await engine.processes.put(definition(id))
    }
    for (const id of [1, 2]) {
      const tasks = engine.process(definition(id))
      await tasks.create({ ref: 'r', data: {} })
      assert.deepEqual((await tasks.result({ ref: 'r' })).data, { by: id })
    }
    await engine.close()
  })

  it('is refused where it would answer in another node too, and where none answers', async () => {
    const twins = defineProcess({
      id: 1,
      nodes: {
        start: go('a'),
        a: node([callback(), go('b')], { title: 'Wait' }),
        b: node([callback(), go('done')], { title: 'Wait' }),
        done: end(),
      },
    })
    const engine = await engineOn(memoryTree())
    const tasks = engine.process(twins)
    assert.throws(() => tasks.handle('a', () => {}), /nodes "a" and "b" have one handler, "Wait"/)
    assert.throws(
      () => tasks.handle('done' as 'a', () => {}),
      /no handler answers in a node "done"/,
    )
    await engine.close()
  })
})

it('a node has one callback with a schema, and its name may be that of a method', () => {
  const data = z.object({ a: z.number() })
  assert.throws(
    () =>
      defineProcess({
        id: 1,
        nodes: { start: [callback({ data }), callback({ data }), go('end')], end: end() },
      }),
    /node "start" has two callbacks with a schema/,
  )
})

// Nothing below runs: tsc reports a line that has no error where it is marked, and the other way.
type Equal<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false
const is = <_Holds extends true>(): void => {}

export async function types(engine: Engine): Promise<void> {
  type Input = { amount: number; currency?: string; charge_id?: string; paid?: boolean }
  const orders = engine.process(order)
  type Create = Parameters<typeof orders.create>[0]['data']
  is<Equal<keyof Create, keyof Input>>()
  is<Input extends Create ? true : false>()
  // @ts-expect-error a member of another type
  void orders.create({ data: { amount: '1' } })
  // @ts-expect-error a member that is missing
  void orders.create({ data: {} })
  // @ts-expect-error a member that is not there
  void orders.create({ data: { amount: 1, amuont: 2 } })
  is<Equal<Parameters<typeof orders.callback>[0], 'charge' | 'pay'>>()
  // @ts-expect-error a node without a callback
  void orders.callback('done', { ref: 'r', data: {} })
  void orders.callback('charge', { ref: 'r', data: { charge_id: 'c' } })
  // @ts-expect-error another type than the schema of the data has
  void orders.callback('charge', { ref: 'r', data: { charge_id: 1 } })
  // @ts-expect-error another type than the schema of the callback takes
  void orders.callback('pay', { ref: 'r', data: { paid: true } })
  // @ts-expect-error no data
  void orders.callback('pay', { ref: 'r' })
  void orders.modify({ ref: 'r', data: { paid: true } })
  // @ts-expect-error another type
  void orders.modify({ ref: 'r', data: { paid: 'yes' } })
  is<Equal<Parameters<typeof orders.handle>[0], 'charge' | 'pay'>>()
  // @ts-expect-error a node that has no callback
  orders.handle('start', () => {})
  orders.handle('charge', ({ data }) => {
    is<Equal<typeof data.currency, string>>()
    is<Equal<typeof data.paid, boolean | undefined>>()
  })
  // @ts-expect-error another type
  orders.handle('charge', () => ({ charge_id: 1 }))
  // @ts-expect-error a member that is not there
  orders.handle('charge', async () => ({ charge: 'c' }))
  const ended = await orders.result({ ref: 'r' })
  is<Equal<typeof ended.data.amount, number>>()
  // @ts-expect-error a member that is not there
  void ended.data.amuont

  const mixed = defineProcess({
    id: 1,
    data: v.object({ at: v.optional(v.string(), 'now') }),
    nodes: {
      start: handled('db_call'),
      wait: node(callback({ data: type({ n: 'number' }), error: 'end' }), { x: 1 }),
      end: end(),
    },
  })
  const tasks = engine.process(mixed)
  is<Equal<Parameters<typeof tasks.handle>[0], 'start' | 'wait'>>()
  is<Equal<Parameters<typeof tasks.callback>[1]['data'], { n: number }>>()
  is<Equal<Parameters<typeof tasks.create>[0]['data'], { at?: string | undefined }>>()
  const plain = engine.process(defineProcess({ id: 1, nodes }))
  void plain.create({ data: { anything: 1 } })
  is<Equal<Parameters<typeof plain.handle>[0], 'wait'>>()

  const start = end()
  // @ts-expect-error no schema
  defineProcess({ id: 1, nodes: { start }, data: {} })
  // @ts-expect-error a schema of no object
  defineProcess({ id: 1, nodes: { start }, data: z.string() })
  // @ts-expect-error a schema that does not take its output: a text makes a number
  defineProcess({ id: 1, nodes: { start }, data: z.object({ n: z.string().transform(Number) }) })
  // @ts-expect-error nor here: a Date is stored as text
  defineProcess({ id: 1, nodes: { start }, data: z.object({ at: z.date() }) })
  defineProcess({ id: 1, nodes: { start }, data: z.object({ at: z.coerce.date() }) })
  // @ts-expect-error a node that is not there, behind a callback with a schema
  defineProcess({ id: 1, nodes: { start: callback({ data: z.object({}), error: 'x' }) } })
  const data = z.object({ paid: z.boolean(), sum: z.number().optional() })
  const other = callback({ data: z.object({ by: z.string() }) })
  defineProcess({ id: 1, data, nodes: { start: [other, callback()] } })
  const sum = callback({ data: z.object({ sum: z.coerce.number(), by: z.string() }) })
  defineProcess({ id: 1, data, nodes: { start: node([sum], { title: 'Sum' }) } })
  const text = callback({ data: z.object({ sum: z.string() }) })
  // @ts-expect-error a callback that gives a member of the data another type
  defineProcess({ id: 1, data, nodes: { start: text } })
  // @ts-expect-error in a list
  defineProcess({ id: 1, data, nodes: { start: [text, go('start')] } })
  // @ts-expect-error in a node with a title
  defineProcess({ id: 1, data, nodes: { start: node([text], { title: 'Sum' }) } })
  const schema: StandardSchema<{ a?: 1 | undefined }, { a: 1 }> = z.object({
    a: z.literal(1).default(1),
  })
  const own: TypedProcess = engine.process(defineProcess({ id: 1, nodes, data: schema }))
  void own
}
