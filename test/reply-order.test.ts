/**
 * No byte of an answer leaves the HTTP door before the commit it speaks of is on disk: read from
 * what the server asked of the kernel. The reader of the trace is shown to see mistakes in
 * sync-order.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type BuiltChild, buildChild } from './support/store-child.ts'
import {
  type Call,
  canTrace,
  isWriteOf,
  runTraced,
  syncOrderMistakes,
} from './support/store-strace.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'
const requests = 10
const isReply = (call: Call) => isWriteOf(call, '"HTTP/1.1 200 OK')

describe('the order of sync and reply', { skip }, () => {
  let built: BuiltChild
  before(async () => {
    built = await buildChild('./reply-child.ts')
  })
  after(() => built.remove())

  it('each answer comes after its commit', async () => {
    const path = join(built.folder, 'tasks.lmdb')
    const run = await runTraced([built.script, path, String(requests)], { log: `${path}.trace` })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.calls.filter(isReply).length, requests)
    assert.deepEqual(syncOrderMistakes(run.calls, path, isReply), [])
  })
})
