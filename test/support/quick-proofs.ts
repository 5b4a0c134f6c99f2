/**
 * The quick forms of the proofs, controls included, from a new seed in each run; in three test files,
 * because files run at once. `npm run proof:NAME` has the long forms.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemChance } from '../../src/core/clock.ts'
import { judge, type Proof } from '../proof/proof.ts'
import { codePath } from './package-folder.ts'

export const proof_groups = {
  crashes: ['kill', 'power', 'io', 'hung', 'full', 'backup', 'rot', 'drain'],
  callers: ['fuzz', 'vectors', 'slow', 'timing', 'race', 'replay'],
  time: ['model', 'time', 'soak'],
} as const

/** Makes a test of each proof of a group. */
export async function testQuickly(group: keyof typeof proof_groups): Promise<void> {
  for (const name of proof_groups[group]) {
    const { proof } = (await import(codePath(`test/proof/${name}`))) as { readonly proof: Proof }
    test(`${name}: ${proof.says}`, { skip: proof.missing?.() ?? false }, async () => {
      const lines: string[] = []
      const seed = Math.floor(systemChance.fraction() * 1_000_000_000)
      const is_held = await judge(proof, 'quick', { seed }, (line) => lines.push(line))
      assert.ok(is_held, lines.join('\n'))
    })
  }
}
