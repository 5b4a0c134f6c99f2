/** Nodes of `obj_type` 4: their calls are answered from a stub, and no task is created. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { graphOf } from '../src/console/diagram/graph.ts'
import type { JsonObject } from '../src/core/model.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/open.ts'
import { definition, node } from './support/http-server.ts'

const reply = (res_data: object, more: object = {}) => ({
  ...{ type: 'api_rpc_reply', mode: 'key_value', res_data, res_data_type: {} },
  ...more,
})
const when = (param: string, constant: string, fun = 'eq') => ({
  type: 'go_if_const',
  conditions: [{ param, const: constant, fun, cast: 'string' }],
})
const own_keys = reply(['sent'], { mode: 'keys', res_data_type: { sent: 'string' } })
const throws = reply({ code: '7' }, { throw_exception: true, exception_reason: 'no {{sent}}' })

/** The process 1 calls 2 with `sent` and, if `group` is `all`, with all its data. */
function caller(logics: unknown, obj_type = 4, group = ''): object {
  const call = {
    ...{ type: 'api_rpc', conv_id: 2, group, err_node_id: 'err' },
    ...{ extra: { sent: '{{n}}' }, extra_type: { sent: 'string' } },
  }
  const condition = { logics: [call, { type: 'go', to_node_id: 'ok' }], stub: { logics } }
  return definition(1, [
    node('start', 1, [{ type: 'go', to_node_id: 'call' }]),
    { id: 'call', obj_type, title: 'Pay', condition },
    { ...node('ok', 2, []), options: { save_task: true } },
    { ...node('err', 2, []), options: { save_task: true } },
  ])
}

const called = definition(2, [
  node('start', 1, [{ type: 'go', to_node_id: 'reply' }]),
  node('reply', 0, [reply({ real: 'paid' }), { type: 'go', to_node_id: 'end' }]),
  { ...node('end', 2, []), options: { save_task: true } },
])

const tag = '__conveyor_rpc_return_type_tag__'
const reason = '__conveyor_rpc_reply_return_description__'

const rows: readonly [what: string, logics: unknown, node_id: string, wanted: JsonObject][] = [
  ['a reply without a condition', [[reply({ a: '{{sent}}!' })]], 'ok', { a: '5!', n: 5 }],
  ['a key of what would be sent', [[own_keys]], 'ok', { sent: '5', n: 5 }],
  ['a condition that holds', [[when('sent', '5'), reply({ a: '1' })]], 'ok', { a: '1' }],
  [
    'the first branch that holds',
    [[when('{{sent}}', '6'), reply({ a: '1' })], [reply({ a: '2' })], [reply({ a: '3' })]],
    'ok',
    { a: '2' },
  ],
  ['what is not sent is not read', [[reply({ a: '<{{n}}>' })]], 'ok', { a: '<>' }],
  ['an exception', [[throws]], 'err', { code: '7', [reason]: 'no 5' }],
  [
    'no branch that holds',
    [[when('sent', '6'), own_keys]],
    'err',
    { [tag]: 'rpc_task_fatal_error' },
  ],
  ['no branch', [], 'err', { [tag]: 'rpc_task_fatal_error' }],
  ['no stub', undefined, 'err', { [tag]: 'rpc_task_fatal_error' }],
  [
    'a reply over the size',
    [[reply({ a: 'x'.repeat(790) })]],
    'err',
    { [tag]: 'rpc_task_size_overflow' },
  ],
]

describe('a call is answered by', () => {
  for (const [what, logics, node_id, wanted] of rows) {
    test(what, async () => {
      await using engine = await openEngine(':memory:', { limits: { task_bytes_max: 800 } })
      await engine.processes.put(called)
      await engine.processes.put(caller(logics))
      await engine.create({ conv_id: 1, ref: 'r', data: { n: 5 } })
      const task = await engine.task({ conv_id: 1, ref: 'r' })
      assert.equal(task?.node_id, node_id)
      const data = task?.data as JsonObject
      for (const [key, value] of Object.entries(wanted)) assert.equal(data[key], value, key)
      const is_reply = node_id === 'ok' || reason in wanted
      assert.equal(data.__logic_stub_mode__, is_reply ? true : undefined)
      const { nodes } = await engine.processes.show(2)
      assert.ok(
        nodes.every(({ by_status }) => by_status.processed === 0),
        'nobody is called',
      )
    })
  }

  test('the called process, where the node is of obj_type 0', async () => {
    await using engine = await openEngine(':memory:')
    await engine.processes.put(called)
    assert.deepEqual((await engine.processes.put(caller([[own_keys]], 0))).warnings, [])
    await engine.create({ conv_id: 1, ref: 'r', data: { n: 5 } })
    const task = await engine.task({ conv_id: 1, ref: 'r' })
    assert.deepEqual(task?.data, { n: 5, real: 'paid' })
  })

  test('conditions on the whole data, with group all', async () => {
    await using engine = await openEngine(':memory:')
    await engine.processes.put(caller([[when('m', 'x'), own_keys]], 4, 'all'))
    await engine.create({ conv_id: 1, ref: 'r', data: { n: 5, m: 'x' } })
    assert.equal((await engine.task({ conv_id: 1, ref: 'r' }))?.node_id, 'ok')
  })
})

const never = 'no branch of its stub holds always: a task for which none holds has no reply'
const warnings: readonly [what: string, logics: unknown, says: readonly string[]][] = [
  ['a branch that holds always', [[own_keys]], []],
  ['conditions alone', [[when('sent', '6'), own_keys]], [never]],
]

describe('a stub is shown', () => {
  for (const [what, logics, says] of warnings) {
    test(`by the import: ${what}`, async () => {
      await using engine = await openEngine(':memory:')
      const put = await engine.processes.put(caller(logics))
      const place = 'nodes[1] "Pay": logics[0] api_rpc:'
      const first = 'is answered from its stub, process 2 is not called'
      assert.deepEqual(
        put.warnings,
        [first, ...says].map((text) => `${place} ${text}`),
      )
    })
  }

  const mistakes: readonly [logics: unknown, says: string][] = [
    [7, 'stub: logics is 7, an array of at most 1000 branches was expected'],
    [[[]], 'stub: logics[0]: conditions (go_if_const) and one api_rpc_reply were expected'],
    [
      [[{ type: 'go' }, own_keys]],
      'stub: logics[0]: conditions (go_if_const) and one api_rpc_reply',
    ],
    [[[reply({}, { mode: 'x' })]], 'stub: logics[0]: mode "x" is neither "key_value" nor "keys"'],
  ]
  for (const [logics, says] of mistakes) {
    test(`with its mistake: ${says}`, async () => {
      await using engine = await openEngine(':memory:')
      await assert.rejects(engine.processes.put(caller(logics)), (error: Error) =>
        error.message.includes(says),
      )
    })
  }

  test('by the process, in doctor’s diagnosis and in its drawing, until it is gone', async () => {
    await using engine = await openEngine(':memory:')
    await engine.processes.put(caller([[own_keys]]))
    const shown = async () => {
      const { nodes, definition_text } = await engine.processes.show(1)
      const box = graphOf(definition_text).boxes.find(({ node_id }) => node_id === 'call')
      const { stubs } = await servedEngine(engine).diagnose()
      return [nodes.find(({ id }) => id === 'call')?.is_stub, box?.does, stubs]
    }
    assert.deepEqual(await shown(), [true, 'answer from a stub', [{ conv_id: '1', nodes: 1 }]])
    await engine.processes.put(caller([[own_keys]], 0))
    assert.deepEqual(await shown(), [undefined, 'call a process', []])
  })
})
