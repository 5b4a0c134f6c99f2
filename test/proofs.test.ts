/**
 * Each proof of package.json in its quick form, controls included, from a new seed in each run.
 * `npm run proof:NAME` has the long one; test/proof/README.md says what each tries.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { systemChance } from '../src/core/clock.ts'
import { judge, type Proof, tryEach } from './proof/proof.ts'
import { codePath, top } from './support/package-folder.ts'

const { scripts } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}
const names = Object.values(scripts).flatMap((command) => {
  const [, name] = /test\/proof\/main\.ts (\w+)$/.exec(command) ?? []
  return name === undefined ? [] : [name]
})

test('the page of the proofs has a row for each', () => {
  const page = readFileSync(join(top, 'test/proof/README.md'), 'utf8')
  const rows = [...page.matchAll(/^\| \[`(\w+)`\]/gm)].map((match) => match[1] as string)
  assert.deepEqual(rows.toSorted(), names.toSorted())
})

for (const name of names) {
  const { proof } = (await import(codePath(`test/proof/${name}`))) as { readonly proof: Proof }
  test(`${name}: ${proof.says}`, { skip: proof.missing?.() ?? false }, async () => {
    const lines: string[] = []
    const seed = Math.floor(systemChance.fraction() * 1_000_000_000)
    const is_held = await judge(proof, 'quick', { seed }, (line) => lines.push(line))
    assert.ok(is_held, lines.join('\n'))
  })
}

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
  test('a try that throws is a failure with the seed that repeats it', async () => {
    const { failures } = await tryEach(
      { n: 3, seed: 7, failures_max: 3, tell: () => {} },
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
