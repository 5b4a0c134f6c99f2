/** The rate of a user: rows of (milliseconds, ops) against one bucket. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { signatureOf } from '../src/codec/signature.ts'
import { nextTurn } from '../src/core/clock.ts'
import { newRateLimit } from '../src/engine/transactions/admission.ts'
import { serveHttp } from '../src/http.ts'
import { type FaultResponse, faultResponseOf } from '../src/server/http/fault-response.ts'
import { makeClient } from './support/grpc-certs.ts'
import { createOp } from './support/grpc-client.ts'
import { openGrpc } from './support/grpc-server.ts'
import { conv_id, createBody, user } from './support/http-server.ts'

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

describe('a user has one rate, at every server and by every certificate', () => {
  const ops = [createOp('one'), createOp('two')]
  const shown = { conv_id, ref: 'none' }
  /** Each costs as much as an op, or is refused. */
  const calls = [
    ['ApplyOps', { ops }],
    ['CreateTask', { conv_id }],
    ['ModifyTask', shown],
    ['GetTask', shown],
    ['CancelTask', shown],
    ['RetryTask', shown],
    ['WaitTask', shown],
    ['ListTasks', {}],
    ['CountTasks', {}],
  ] as const

  for (const [rpc, message] of calls) {
    test(`${rpc}: 200 calls of two certificates, beside signed requests`, async () => {
      const server = await openGrpc({ limits: { rate_ops_per_s: 10 } })
      const other = await makeClient(server.ca, { san: [{ type: 'url', value: 'other' }] })
      for (const name of ['uri:conveyor:test', 'uri:other']) {
        await server.engine.users.bind(user, name)
      }
      const [secret = ''] = server.engine.users.secrets(user)
      const http = await serveHttp(server.engine, { port: 0 })
      const clients = [server.connect(), server.connect(other), server.connect()]
      const began_ms = Date.now()
      const outcomes = await Promise.all(
        Array.from({ length: 200 }, (_, n) => clients[n % 3]?.statusOf(rpc, message)),
      )
      const let_in = outcomes.filter((code) => code !== 'RESOURCE_EXHAUSTED')
      const most = 10 + Math.ceil((Date.now() - began_ms) / 100) + 1
      assert.ok(let_in.length >= 5 && let_in.length <= most, `${let_in.length} of ${most}`)
      // Let in once, it takes the tokens of seconds.
      const sendMany = () => clients[1]?.statusOf('ApplyOps', { ops: many })
      while ((await sendMany()) === 'RESOURCE_EXHAUSTED') await nextTurn()
      const body = createBody('signed')
      const now_s = String(Math.floor(Date.now() / 1_000))
      const path = `${http.url}/api/1/json/${user}/${now_s}/${signatureOf(now_s, secret, body)}`
      assert.equal((await fetch(path, { method: 'POST', body })).status, 429)
      await http.drain()
      await server.close()
    })
  }
})

const many = Array.from({ length: 60 }, (_, n) => createOp(`${n}`))
