/**
 * No byte of an answer leaves the HTTP server before its commit is on disk: read from a trace of
 * the server's system calls. commit-log-order shows that the reader of the trace finds mistakes.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { commitLogOrderMistakes } from './support/commit-log-strace.ts'
import { buildChild } from './support/store-child.ts'
import { type Call, canTrace, isWriteOf, runTraced } from './support/store-strace.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'
const requests = 10
const isReply = (call: Call) => isWriteOf(call, '"HTTP/1.1 200 OK')

test('each answer comes after its frame in the commit log, and costs one sync', {
  skip,
}, async () => {
  const built = await buildChild('./reply-child.ts')
  try {
    const path = join(built.folder, 'tasks.lmdb')
    const run = await runTraced([built.script, path, String(requests)], { trace: `${path}.trace` })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.calls.filter(isReply).length, requests)
    const has_commit_log = run.calls.some((call) => isWriteOf(call, `<${path}-log-`))
    assert.ok(has_commit_log, `no commit log was written: ${run.stderr}`)
    const ready = run.calls.find((call) => isWriteOf(call, '"ready')) as Call
    assert.deepEqual(commitLogOrderMistakes(run.calls, path, isReply, ready.ended), [])
  } finally {
    await built.remove()
  }
})
