/**
 * Files that a power cut has left before their first sync: a data file of which only some sectors
 * were written is new, and a key file under its second name is made again.
 */
import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { openEngine } from '../src/open.ts'
import {
  assertState,
  closedState,
  groupOf,
  openTree,
  openWithCommitLog,
} from './support/commit-log-setup.ts'
import { sector_bytes } from './support/disk/power-disk.ts'
import { quickPaths } from './support/store-folder.ts'

const newPath = quickPaths('conveyor-torn-')

it('a data file whose first write was torn is new, at every third sector by turns before it and behind it', async () => {
  const path = newPath()
  await (await openTree(path)).close()
  const whole = readFileSync(path)
  const sectors = whole.length / sector_bytes
  for (let torn = 0; torn < 2 * sectors; torn += 3) {
    const image = Buffer.from(whole)
    const place = (torn >> 1) * sector_bytes
    if (torn % 2 === 0) image.fill(0, place)
    else image.fill(0, 0, place)
    for (const end of ['-log-0', '-log-1', '-lock']) rmSync(path + end, { force: true })
    writeFileSync(path, image, { mode: 0o600 })
    const tree = await openWithCommitLog(path)
    await tree.commit(groupOf(1))
    await tree.close()
    assertState(await closedState(path), 1)
  }
})

describe('a key file of the first user', () => {
  const key = `${'ab'.repeat(32)}\n`
  const rows: readonly (readonly [
    left: string,
    key: string | undefined,
    next: string | undefined,
  ])[] = [
    ['nothing', undefined, undefined],
    ['a second name without bytes', undefined, ''],
    ['a second name with some of them', undefined, key.slice(0, 20)],
    ['a second name with zeros', undefined, '\0'.repeat(65)],
    ['a whole one under the second name', undefined, key],
    ['a whole one', key, undefined],
  ]
  for (const [left, own, next] of rows) {
    it(`${left}: the user is added, and the next start has the key`, async () => {
      const path = newPath()
      if (own !== undefined) writeFileSync(`${path}.key`, own, { mode: 0o600 })
      if (next !== undefined) writeFileSync(`${path}.key.new`, next, { mode: 0o600 })
      const engine = await openEngine(path)
      const { id } = await engine.users.add()
      await engine.close()
      const again = await openEngine(path)
      assert.equal((await again.ready()).checks.key?.ok, true)
      assert.deepEqual(
        (await again.users.list()).map((user) => user.id),
        [id],
      )
      await again.close()
    })
  }
})
