/** Answers of one connection go out in their order, a few in each turn of the event loop. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newPace } from '../src/doors/grpc/pace.ts'

/** A native turn of the event loop, begun before whatever is sent in it. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** [what, how many at once, in how many turns they go out] */
const rows: [string, number, number][] = [
  ['one', 1, 1],
  ['as many as a turn takes', 32, 1],
  ['one more', 33, 2],
  ['a hundred', 100, 4],
]
for (const [name, count, turns] of rows) {
  test(`${name}: ${turns} turns`, async () => {
    const pace = newPace()
    const wanted = [...Array(count).keys()]
    // Twice, for what the first leaves behind.
    for (let round = 0; round < 2; round++) {
      const sent: number[] = []
      for (const n of wanted) pace(() => sent.push(n))
      let used = 1
      for (; sent.length < count; used++) {
        assert.equal(sent.length, 32 * used)
        await turn()
      }
      assert.equal(used, turns)
      assert.deepEqual(sent, wanted)
      await turn()
    }
  })
}

test('what comes while others wait goes behind them', async () => {
  const pace = newPace()
  const sent: string[] = []
  for (let n = 0; n < 40; n++) pace(() => sent.push('first'))
  await turn()
  pace(() => sent.push('last'))
  assert.deepEqual(sent, [...Array(40).fill('first'), 'last'])
  for (let n = 0; n < 40; n++) pace(() => pace(() => sent.push('inner')))
  while (sent.length < 81) await turn()
  assert.equal(sent.at(-1), 'inner')
})
