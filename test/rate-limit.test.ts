/** The rate of a user: rows of (milliseconds, ops) against one bucket. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newRateLimit } from '../src/engine/rate-limit.ts'
import type { FaultResponse } from '../src/server/http/fault-response.ts'
import { faultResponseOf } from '../src/server/http/fault-response.ts'
import { createOp } from './support/grpc-client.ts'
import { openGrpc } from './support/grpc-server.ts'

type Step = [at_ms: number, user: string, ops: number, expected: 'in' | number]

// biome-ignore format: one line a row; expected is "let in" or the Retry-After in seconds
const rows: [string, number, Step[]][] = [
  ['a rate of 0 limits nothing', 0, [[0, 'a', 1e9, 'in'], [0, 'a', 1e9, 'in']]],
  ['a second’s worth at once', 10, [[0, 'a', 9, 'in'], [0, 'a', 1, 'in'], [0, 'a', 1, 1]]],
  ['it fills again', 10, [[0, 'a', 10, 'in'], [0, 'a', 1, 1], [50, 'a', 1, 'in'], [51, 'a', 1, 1]]],
  ['a batch over the bucket is paid off', 10, [
    [0, 'a', 45, 'in'], [1000, 'a', 1, 3], [3400, 'a', 1, 1], [3501, 'a', 1, 'in'],
  ]],
  ['each user has a bucket', 1, [[0, 'a', 5, 'in'], [0, 'b', 1, 'in'], [0, 'a', 1, 4]]],
  ['it holds no more than a second', 10, [
    [0, 'a', 1, 'in'], [1e9, 'a', 10, 'in'], [1e9, 'a', 1, 1],
  ]],
  ['a clock that steps back gives nothing', 10, [
    [5000, 'a', 10, 'in'], [0, 'a', 1, 1], [101, 'a', 1, 'in'],
  ]],
]

describe('rate limit', () => {
  for (const [says, rate, steps] of rows) {
    test(says, () => {
      let now_ms = 0
      const limit = newRateLimit(rate, () => now_ms)
      for (const [at_ms, user, ops, expected] of steps) {
        now_ms = at_ms
        assert.equal(
          enter(() => limit.check(user)),
          expected,
          `at ${at_ms}`,
        )
        if (expected === 'in') limit.take(user, ops)
      }
    })
  }

  function enter(check: () => void): 'in' | number {
    try {
      check()
      return 'in'
    } catch (thrown) {
      const refusal: FaultResponse = faultResponseOf(thrown, () => assert.fail())
      assert.equal(refusal.code, 'rate_limited')
      return Number(refusal.headers[refusal.headers.indexOf('Retry-After') + 1])
    }
  }
})

test('a certificate has the rate of its user', async () => {
  const server = await openGrpc({ limits: { rate_ops_per_s: 10 } })
  await server.engine.users.bind('13000', 'uri:conveyor:test')
  const client = server.connect()
  const ops = Array.from({ length: 30 }, (_, n) => createOp(`${n}`))
  assert.equal(await client.statusOf('ApplyOps', { ops }), 'OK')
  assert.equal(await client.statusOf('ApplyOps', { ops }), 'RESOURCE_EXHAUSTED')
  await server.close()
})
