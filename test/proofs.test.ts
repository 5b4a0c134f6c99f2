/**
 * The proofs of package.json: each has a row in their page and a test of its quick form, and the
 * frame of them all.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type Experiment, judge, tryEach } from './proof/proof.ts'
import { top } from './support/package-folder.ts'
import { proof_groups } from './support/quick-proofs.ts'

const { scripts } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}
const names = Object.values(scripts)
  .flatMap((command) => /test\/proof\/main\.ts (\w+)$/.exec(command)?.[1] ?? [])
  .toSorted()

test('the page of the proofs has a row for each', () => {
  const page = readFileSync(join(top, 'test/proof/README.md'), 'utf8')
  const rows = [...page.matchAll(/^\| \[`(\w+)`\]/gm)].map((match) => match[1] as string)
  assert.deepEqual(rows.toSorted(), names)
})

test('the quick form of each is in one test file', () => {
  assert.deepEqual(Object.values(proof_groups).flat().toSorted(), names)
})

describe('the frame', () => {
  /** [what the claim finds, what its control finds, whether the proof holds] */
  const rows: readonly (readonly [string | undefined, string | undefined, boolean])[] = [
    [undefined, 'wrong', true],
    ['wrong', 'wrong', false],
    [undefined, undefined, false],
  ]
  for (const [found, control_found, expected] of rows) {
    test(`a claim with ${found ?? 'no'} failure, a control with ${control_found ?? 'none'}`, async () => {
      const finds = (failure: string | undefined) => ({
        says: 'something',
        quick: 3,
        long: 3,
        run: (given: Parameters<typeof tryEach>[0]) =>
          tryEach(given, async () =>
            failure === undefined ? { faults: 1 } : { faults: 1, failure },
          ),
      })
      const proof = { name: 'x', unit: 'tries', ...finds(found), controls: [finds(control_found)] }
      assert.equal(await judge(proof, 'quick', { seed: 7 }, () => {}), expected)
    })
  }
  test('the quick form tries the control that its seed chooses, the long form each', async () => {
    const tried: string[] = []
    const finds = (says: string): Experiment => ({
      ...{ says, quick: 1, long: 1 },
      async run() {
        tried.push(says)
        return { tried: 1, faults: 0, failures: says === 'claim' ? [] : [{ seed: 7, says }] }
      },
    })
    const controls = [finds('one'), finds('two')]
    const proof = { name: 'x', unit: 'tries', ...finds('claim'), controls }
    const rows = [
      ['quick', 7, ['claim', 'two']],
      ['quick', 8, ['claim', 'one']],
      ['long', 7, ['claim', 'one', 'two']],
    ] as const
    for (const [form, seed, expected] of rows) {
      tried.length = 0
      assert.equal(await judge(proof, form, { seed }, () => {}), true)
      assert.deepEqual(tried, expected)
    }
  })
  test('a try that throws is a failure with the seed that repeats it', async () => {
    const { failures } = await tryEach(
      { n: 3, seed: 7, failures_max: 3, emit: () => {} },
      async (seed) => {
        if (seed === 8) throw new Error('broken')
        return { faults: 0 }
      },
    )
    assert.deepEqual(
      failures.map(({ seed }) => seed),
      [8],
    )
  })
})
