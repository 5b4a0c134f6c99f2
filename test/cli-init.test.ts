/**
 * `conveyor init`: what it writes, and that it replaces nothing. package.test.ts runs what it has
 * written, from the packed package.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { run, tempFolder } from './support/cli-run.ts'

const folder = tempFolder()
after(() => folder.remove())

const written = ['Containerfile', 'order.mjs', 'order.test.mjs', 'package.json', 'service.mjs']

test('it writes a service of some forty lines, and says what comes next', async () => {
  const path = join(folder.path, 'My Shop')
  const { exit, out, err } = await run(['init', path])
  assert.deepEqual([exit, err], [0, ''])
  assert.deepEqual(readdirSync(path).sort(), written)
  const text = (name: string) => readFileSync(join(path, name), 'utf8')
  const manifest = JSON.parse(text('package.json'))
  assert.equal(manifest.name, 'my-shop')
  assert.deepEqual(Object.keys(manifest.dependencies), ['conveyor-engine'])
  const lines = `${text('order.mjs')}${text('service.mjs')}`.split('\n').length
  assert.ok(lines <= 60, `${lines} lines`)
  assert.match(out, /npm install\n {2}node --test\n {2}node service\.mjs\n/)
})

/** [a file that is there, whether the whole is refused] */
const there: readonly (readonly [string, boolean])[] = [
  ['package.json', false],
  ['notes.txt', false],
  ['service.mjs', true],
  ['Containerfile', true],
]
for (const [name, is_refused] of there) {
  test(`${name} is there: ${is_refused ? 'refused' : 'kept'}`, async () => {
    const path = join(folder.path, `has-${name}`)
    mkdirSync(path)
    writeFileSync(join(path, name), '{}')
    const { exit, out, err } = await run(['init', path, '--json'])
    assert.equal(readFileSync(join(path, name), 'utf8'), '{}')
    assert.equal(existsSync(join(path, 'order.mjs')), !is_refused)
    if (is_refused) {
      assert.equal(exit, 1)
      assert.match(err, new RegExp(`^{"error":"not_possible",.*has ${name}`))
    } else {
      assert.equal(exit, 0, err)
      const { files, next } = JSON.parse(out) as { files: string[]; next: string[] }
      assert.deepEqual(
        files.toSorted(),
        written.filter((one) => one !== name),
      )
      if (name === 'package.json') assert.match(next.join('\n'), /npm install \S+/)
    }
  })
}

test('a folder that cannot be made is one plain sentence', async () => {
  writeFileSync(join(folder.path, 'file'), '')
  const { exit, err } = await run(['init', join(folder.path, 'file/shop')])
  assert.equal(exit, 1)
  assert.match(err, /^conveyor: .*no folder; correct the path\n$/)
})
