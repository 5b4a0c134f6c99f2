/**
 * No byte of an answer leaves the HTTP door before the commit it speaks of is on disk: read from
 * what the server asked of the kernel. The reader of the trace is shown to see mistakes in
 * sync-order.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { logOrderMistakes } from './support/log-strace.ts'
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

  const forms = [
    ['its commit', false],
    ['its frame in the log, and costs one sync', true],
  ] as const
  for (const [what, log] of forms) {
    it(`each answer comes after ${what}`, async () => {
      const path = join(built.folder, `${log}.lmdb`)
      const args = [built.script, path, String(requests), String(log)]
      const run = await runTraced(args, { log: `${path}.trace` })
      assert.equal(run.code, 0, run.stderr)
      assert.equal(run.calls.filter(isReply).length, requests)
      const ready = run.calls.find((call) => isWriteOf(call, '"ready')) as Call
      const mistakes = log
        ? logOrderMistakes(run.calls, path, isReply, ready.ended)
        : syncOrderMistakes(run.calls, path, isReply)
      assert.deepEqual(mistakes, [])
    })
  }
})
