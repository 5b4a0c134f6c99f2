/** The example programs, each run as it is, with what it prints. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { codePath, node_flags, tempFolder, top } from './support/package-folder.ts'

const examples = join(top, 'src/examples')
const folder = tempFolder()
after(() => folder.remove())

/** [program, what it prints] */
const programs: readonly (readonly [string, string])[] = [
  ['agent', 'approval 40\ndone refunded 40\n'],
  ['approval', 'quick approved 0\nslow escalated 2\nslow slow\n'],
  [
    'from-bullmq',
    '17 ok\n18 ok\n17 ok\n18 ok\n17 to a@example.org\n17 to a@example.org, 18 to b@example.org\n',
  ],
  ['from-cron', 'vacuum created\npoll created\n1 96\n'],
  ['nightly-batch', 'summed 3 800\n'],
  ['saga', 'Kyiv booked false 1\nLviv not booked true 1\n'],
  ['webhook-sender', 'at once 2 1\nlater 4\nnot delivered\n'],
]

test('each program has a row', () => {
  const found = readdirSync(examples).filter((name) => name.endsWith('.mjs'))
  assert.deepEqual(
    found.sort(),
    programs.map(([name]) => `${name}.mjs`),
  )
})

for (const [name, prints] of programs) {
  test(name, () => {
    const source = readFileSync(join(examples, `${name}.mjs`), 'utf8')
    assert.ok(source.split('\n').length <= 100)
    const file = join(folder.path, `${name}.mjs`)
    const imports = source.replaceAll(/'conveyor-engine(?:\/(\w+))?'/g, (_, entry = 'index') =>
      JSON.stringify(codePath(`src/${entry}`)),
    )
    writeFileSync(file, imports)
    const flags = [...node_flags, file]
    const { stdout, stderr, status } = spawnSync(process.execPath, flags, {
      ...{ cwd: top, encoding: 'utf8', timeout: 60_000 },
    })
    assert.deepEqual([stderr, stdout, status], ['', prints, 0])
  })
}
