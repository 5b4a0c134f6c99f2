/**
 * Shapes of data: any data that fit a shape come back from their values, and records of tasks with a
 * shape are read by every engine over the store, also after the commit that brought the shape was
 * refused.
 */
import assert from 'node:assert/strict'
import { it, test } from 'node:test'
import fc from 'fast-check'
import { dataOf, shapeOf, shapeOfData, valuesIn } from '../src/codec/data-shape.ts'
import { keysOfType } from '../src/codec/keys.ts'
import { fault } from '../src/core/faults.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { anyCharacter } from './support/any-text.ts'
import { engineOn } from './support/model-setup.ts'
import { tasksOf } from './support/tasks-of.ts'

/** [data, other data, its values in the shape of the first]; undefined if there is no shape or fit. */
const order = '{"amount":120,"currency":"UAH","items":[{"count":2}],"note":"a \\"b\\", c"}'
const rows: readonly (readonly [data: string, other: string, values: string | undefined])[] = [
  [order, order, '120\0UAH\0' + '2\0a \\"b\\", c'],
  [order, order.replace('120', 'null').replace('UAH', 'ї😀'), 'null\0ї😀\0' + '2\0a \\"b\\", c'],
  [order, order.replace('120', '[1,2]'), '[1,2]\0UAH\0' + '2\0a \\"b\\", c'],
  [order, order.replace('"currency"', '"money"'), undefined],
  [order, `${order.slice(0, -1)},"more":1}`, undefined],
  [order, order.replace('b', '\0'), undefined],
  ['{"a":1}', '{"a":1}', undefined],
  ['{}', '{}', undefined],
  [`{"a":"${'x'.repeat(5_000)}"}`, order, undefined],
]

for (const [data, other, values] of rows) {
  test(`${other.slice(0, 60)} in the shape of ${data.slice(0, 60)}`, () => {
    const shape = shapeOfData(data)
    assert.equal(shape && valuesIn(other, shape), values)
    if (shape && values !== undefined) assert.equal(dataOf(values, shape), other)
  })
}

test('any data come back from any shape that they fit', () => {
  const text = fc.oneof(fc.string({ unit: anyCharacter, maxLength: 9 }), fc.constant('","a":"'))
  const value = fc.oneof(text, fc.integer(), fc.constantFrom(null, true, [], {}))
  const member = fc.constantFrom('a', 'amount', 'a longer name of a member', 'ї\\"')
  const data = fc.dictionary(member, fc.oneof(value, fc.array(value, { maxLength: 3 })))
  let fits = 0
  fc.assert(
    fc.property(data, data, (one, other) => {
      const shape = shapeOfData(JSON.stringify(one))
      const given = JSON.stringify(other)
      const values = shape && valuesIn(given, shape)
      if (shape === undefined || values === undefined) return
      fits++
      assert.equal(dataOf(values, shapeOf(shape.text)), given)
    }),
    { numRuns: 5_000, seed: 1 },
  )
  assert.ok(fits > 20, `${fits} fit`)
})

it('a shape is stored again if the commit that brought it was refused', async () => {
  const tree = memoryTree()
  const [shapes, is_full] = [keysOfType('shape'), { now: false }]
  const stored = (): number => [...tree.range(shapes.from, shapes.to, false)].length
  const nodes = [
    { id: 'start', obj_type: 1, condition: { logics: [{ type: 'api_callback' }] } },
    { id: 'end', obj_type: 2 },
  ]
  const open = () =>
    engineOn({
      ...tree,
      commit: (changes) => (is_full.now ? Promise.reject(fault('no_space')) : tree.commit(changes)),
    })
  const create = (ref: string) => ({ conv_id: 1, ref, data: { amount: 1, a_long_name: ref } })
  let engine = await open()
  await engine.processes.put({ obj_id: 1, title: 'P', scheme: { nodes } })
  for (const ref of ['a', 'b']) await engine.create(create(ref))
  assert.equal(stored(), 0)
  is_full.now = true
  await assert.rejects(engine.create(create('refused')))
  is_full.now = false
  assert.equal(stored(), 0)
  for (const ref of ['c', 'd']) await engine.create(create(ref))
  assert.equal(stored(), 1)
  for (let opened = 0; opened < 2; opened++) {
    assert.deepEqual((await engine.check()).breaches, [])
    const data = (await tasksOf(engine, 1)).map((task) => task.data)
    assert.deepEqual(
      data,
      ['a', 'b', 'c', 'd'].map((ref) => create(ref).data),
    )
    await engine.close()
    engine = await open()
  }
  await engine.close()
})
