/**
 * `npm run proof:NAME [-- --seed S] [--n N] [--quick]`: the proof in NAME.ts, in its long form unless
 * told otherwise. Exits with 0 if the claim held and each control failed, 1 if not, 2 for a wrong
 * call. Where something is missing that it needs, it says what, and exits with 0.
 */
import { parseArgs } from 'node:util'
import { systemChance } from '../../src/core/clock.ts'
import { judge, type Proof } from './proof.ts'

const {
  values,
  positionals: [name],
} = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, n: { type: 'string' }, quick: { type: 'boolean' } },
})
const seed = Number(values.seed ?? Math.floor(systemChance.fraction() * 1_000_000_000))
const n = values.n === undefined ? undefined : Number(values.n)
if (!Number.isSafeInteger(seed) || (n !== undefined && !(Number.isSafeInteger(n) && n > 0))) {
  console.error('--seed and --n take whole numbers, --n from 1')
  process.exit(2)
}
const { proof } = (await import(`./${name}.ts`)) as { readonly proof: Proof }
const missing = proof.missing?.()
if (missing !== undefined) {
  console.log(`${proof.name}: skipped, ${missing}`)
  process.exit(0)
}
const form = values.quick ? 'quick' : 'long'
const is_held = await judge(proof, form, n === undefined ? { seed } : { seed, n }, console.log)
process.exit(is_held ? 0 : 1)
