/**
 * Files of the present format that were written once (test/golden) open and go on: one that was
 * closed, and one with a commit log, left by a kill. Each holds a process and twenty tasks, of which
 * ten have ended and one was canceled.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openEngine } from '../src/index.ts'
import { testClock } from '../src/testing.ts'
import { tempFolder } from './support/package-folder.ts'
import { pick } from './support/pick.ts'
import { secretsOf } from './support/secrets-of.ts'
import { tasksOf } from './support/tasks-of.ts'

const ends = ['', '-log-0', '-log-1']
/** Of the day of the files: their tasks wait for a day. */
const written_ms = Date.parse('2026-11-22T03:00:00Z')
const waiting = Array.from({ length: 9 }, (_, n) => `order-${10 + n}`)

for (const name of ['plain', 'commit-log-killed']) {
  it(name, async () => {
    const folder = tempFolder()
    const path = join(folder.path, 'tasks.lmdb')
    for (const end of ends) {
      const golden = new URL(`golden/${name}${end}.gz`, import.meta.url)
      if (existsSync(golden)) writeFileSync(path + end, gunzipSync(readFileSync(golden)))
    }
    try {
      for (let opened = 0; opened < 2; opened++) {
        const options = { secret_key: '11'.repeat(32), clock: testClock(written_ms) }
        await using engine = await openEngine(path, options)
        assert.deepEqual((await engine.check()).breaches, [])
        assert.equal(secretsOf(engine, '13000').length, 1)
        const refs = (await tasksOf(engine, 1234)).map(({ ref }) => ref)
        assert.deepEqual(refs, waiting.slice(opened))
        const last = await engine.task({ conv_id: 1234, ref: 'order-18' })
        assert.equal(last?.data_text, '{"n":18,"text":"é 1"}')
        assert.deepEqual(pick(last?.history ?? [], 'why'), ['create', 'go'])
        const paid = await engine.modify({ conv_id: 1234, ref: `order-${10 + opened}`, data: {} })
        assert.equal(paid.proc, 'ok')
      }
    } finally {
      folder.remove()
    }
  })
}
