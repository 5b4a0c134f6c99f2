/**
 * Kills over the commit log in PostgreSQL: proof:kill in its quick form, whose judge is the same.
 * Over files it is one of the proofs.
 */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { proof } from './proof/kill.ts'
import { judge } from './proof/proof.ts'
import { suite } from './support/postgres-open.ts'

const skip = suite === undefined && 'over files it is a test of proofs'

it(proof.says, { skip, timeout: 300_000 }, async () => {
  const lines: string[] = []
  const only_claim = { ...proof, controls: [] }
  const is_held = await judge(only_claim, 'quick', { seed: 1 }, (line) => lines.push(line))
  assert.ok(is_held, lines.join('\n'))
})
