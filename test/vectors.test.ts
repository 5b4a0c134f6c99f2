/**
 * The conformance vectors: each of test/vectors/*.json on each transport, and what the vectors
 * together must cover.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { opFaults } from '../src/core/faults.ts'
import { doneBefore } from './support/before-tests.ts'
import { closeGrpcVectors } from './support/grpc-vectors.ts'
import { suite } from './support/postgres-open.ts'
import { readVectors } from './support/vector-form.ts'
import { rules } from './support/vector-rules.ts'
import { runVector } from './support/vector-run.ts'
import { transports } from './support/vector-servers.ts'

const files = readVectors()
const vectors = [...files.values()].flat()

const bodies = new Map<string, () => void>()
const is_quick = suite?.is_quick === true
for (const [at, transport] of transports.entries()) {
  for (const [n, vector] of vectors.entries()) {
    if (is_quick && n % (3 * transports.length) !== at) continue
    const body = await doneBefore(() => runVector(vector, transport))
    bodies.set(`${transport.name}: ${vector.name}`, body)
  }
}
await closeGrpcVectors()

for (const { name } of transports) {
  for (const [file, ones] of files) {
    describe(`${name}: ${file}`, () => {
      for (const vector of ones) {
        const body = bodies.get(`${name}: ${vector.name}`)
        if (body !== undefined) test(vector.name, body)
      }
    })
  }
}

describe('what the vectors cover', () => {
  test('each vector has a name of its own', () => {
    const names = vectors.map(({ name }) => name)
    assert.deepEqual([...new Set(names)], names)
  })

  const named = new Set(vectors.flatMap(({ rule }) => rule))
  for (const [rule, says] of Object.entries(rules)) {
    test(`rule ${rule}: ${says}`, () => assert.ok(named.has(rule)))
  }
  test('no vector names a rule that is not listed', () => {
    assert.deepEqual(
      [...named].filter((rule) => !Object.hasOwn(rules, rule)),
      [],
    )
  })

  const answers = JSON.stringify(
    vectors.map(({ steps }) => steps.map((step) => [step.results, step.result])),
  )
  for (const code of Object.keys(opFaults)) {
    test(`op fault ${code} is provoked`, () => assert.ok(answers.includes(`"proc":"${code}"`)))
  }
})
