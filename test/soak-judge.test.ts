/**
 * How the soak judges what it has sampled: what is flat, what has grown, and what has become slower.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { growthOf, slopeOf, slowdownOf } from './support/soak-judge.ts'

const times = 40
const made = (value: (n: number) => number): number[] =>
  Array.from({ length: times }, (_, n) => value(n))
const saw = (n: number): number => 100 + (n % 5)

describe('a figure', () => {
  const rows: readonly (readonly [what: string, values: readonly number[], is_grown: boolean])[] = [
    ['that is the same all the while', made(() => 100), false],
    ['that goes up and down', made(saw), false],
    ['that grows while the run warms up', made((n) => (n < 10 ? 10 * n : 100)), false],
    ['that shrinks', made((n) => 200 - n), false],
    ['with one sample that is off, in the middle', made((n) => (n === 25 ? 1_000 : 100)), false],
    ['that grows by a tenth', made((n) => 100 + n / 3), true],
    ['that goes up and down and grows', made((n) => saw(n) + n / 3), true],
    ['that jumps in the end', made((n) => (n > 37 ? 120 : 100)), true],
    ['of too few samples', [100, 100, 100], true],
  ]
  for (const [what, values, is_grown] of rows) {
    test(`${what} has ${is_grown ? '' : 'not '}grown`, () => {
      const growth = growthOf({ name: 'held', bound: { share: 0.05, floor: 1 }, values })
      assert.equal(growth !== undefined, is_grown, growth)
    })
  }
  test('has the slope that most pairs of its samples have', () => {
    assert.equal(slopeOf([0, 2, 4, 100, 8, 10]), 2)
  })
})

describe('answers', () => {
  const rows: readonly (readonly [
    what: string,
    p99_ms: readonly number[],
    machine_ms: readonly number[],
    is_slower: boolean,
  ])[] = [
    ['that are as fast', [9, 4, 4, 5], [1, 1, 1, 1], false],
    ['that are slower', [9, 4, 4, 7], [1, 1, 1, 1], true],
    ['that are slower as the machine is', [9, 4, 4, 7], [1, 1, 1, 2], false],
    ['that are slower than the machine is', [9, 4, 4, 16], [1, 1, 1, 2], true],
    ['of a machine that is disturbed early', [9, 4, 4, 7], [1, 2, 1, 1], true],
    [
      'that are slow only in the last minute, as the machine is',
      [9, 4, 4, 4, 4, 4, 4, 4, 4, 40],
      [1, 1, 1, 1, 1, 1, 1, 1, 1, 3],
      false,
    ],
    [
      'that become slower from minute to minute on a machine that is disturbed',
      [4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
      [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2],
      true,
    ],
  ]
  for (const [what, p99_ms, machine_ms, is_slower] of rows) {
    test(what, () => {
      assert.equal(slowdownOf({ p99_ms, machine_ms }) !== undefined, is_slower)
    })
  }
})
