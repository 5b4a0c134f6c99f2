/** The tree over the commit log in PostgreSQL passes the suite of every tree, and an idle one idles. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemChance } from '../src/core/clock.ts'
import { emitNothing } from '../src/core/events.ts'
import { postgresLog } from '../src/postgres.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { codePath, node_flags } from './support/package-folder.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { initPartition } from './support/postgres-open.ts'
import { is_slow } from './support/short-run.ts'
import { quick_place, quickFolder } from './support/store-folder.ts'
import { storeSuite, type TreeHarness } from './support/store-suite.ts'

const postgres = await postgresOrSkip({ parent: quick_place })
let folder = ''
let count = 0
before(async () => {
  folder = await quickFolder('conveyor-store-postgres-')
})
after(() => rm(folder, { recursive: true, force: true }))

async function makeHarness(): Promise<TreeHarness> {
  const partition = ++count
  const path = join(folder, `${partition}.conveyor`)
  const url = postgres?.url() as string
  await initPartition(url, partition)
  const closes: (() => Promise<void>)[] = []
  return {
    lasts: true,
    async open() {
      const below = await openInProcess(path)
      const source = postgresLog({ url, node: 'suite', partition })
      const tree = await source.open({
        ...{
          tree: below,
          path,
          emit: emitNothing,
          reserve_bytes: 0,
          checkpoint_bytes: 0,
          bytes: systemChance.bytes,
        },
        claim: () => undefined,
        checkKey: async () => {},
      })
      const close = (): Promise<void> => tree.close().finally(() => below.close())
      closes.push(close)
      return { ...tree, close }
    },
    async remove() {
      for (const close of closes) await close()
    },
  }
}

if (no_postgres === undefined) storeSuite('PostgreSQL', makeHarness, is_slow ? 100 : 8)
else test('the store over PostgreSQL', { skip: no_postgres }, () => {})

test('an open node that does nothing keeps no process alive', { skip: no_postgres }, async () => {
  const partition = ++count
  const url = postgres?.url() as string
  await initPartition(url, partition)
  const program = `
    import { openEngine } from ${JSON.stringify(codePath('src/open'))}
    import { postgresLog } from ${JSON.stringify(codePath('src/postgres'))}
    const commit_log = postgresLog(${JSON.stringify({ url, node: 'idle', partition })})
    await openEngine(${JSON.stringify(join(folder, 'idle.lmdb'))}, { commit_log })
  `
  const args = [...node_flags, '--input-type=module', '--eval', program]
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.deepEqual([status, stderr], [0, ''])
})
