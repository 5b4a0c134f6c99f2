/**
 * A disk that fails under the commit log, in a write of the commit log or of a checkpoint. Callers
 * get an error, no further write is made, the close ends, and the next open has every acknowledged
 * group and no group in part.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import type { Results } from './support/commit-log-broken-child.ts'
import { crash_forms } from './support/commit-log-crash.ts'
import { assertState, closedState } from './support/commit-log-setup.ts'
import { type BuiltChild, buildChild, type Edit } from './support/store-child.ts'
import { canTrace, runTraced } from './support/store-strace.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'
const groups = 60

const segment = 'store/commit-log/segments.ts'
const child_script = 'store/commit-log/checkpoint-child.ts'
const inline: Edit = { file: segment, from: 'took_ms_max: 0.3', to: 'took_ms_max: 1000' }
const fills_often: Edit = { file: segment, from: '1024 * 1024', to: '4096' }
const in_child = 'const tree = await opening\n'
const garbled: Edit = {
  file: 'store/commit-log/checkpoint.ts',
  from: 'const frames = checkedFrames(own, job)',
  to: 'own[own.length - 1] ^= 1; const frames = checkedFrames(own, job)',
}
const dies: Edit = { file: child_script, from: in_child, to: `process.exit(7)\n${in_child}` }
const throws: Edit = {
  file: child_script,
  from: in_child,
  to: `setImmediate(() => { throw new Error('on purpose') }); await new Promise(() => {})\n${in_child}`,
}
/** Native code may print what it likes. */
const prints: Edit = {
  file: child_script,
  from: in_child,
  to: `process.stdout.write('{"says":oh no\\n'); process.stderr.write('Write error: \\0\\n\\n{"level"')
    process.abort()\n${in_child}`,
}
/** One that dies is replaced once. */
const dies_once: Edit = {
  file: child_script,
  from: in_child,
  to: `const { existsSync, writeFileSync } = await import('node:fs')
    if (!existsSync(path + '.died')) {
      writeFileSync(path + '.died', '')
      process.kill(process.pid, 'SIGKILL')
    }\n${in_child}`,
}
const checkpoints = crash_forms.at(-1)?.edits ?? []

interface More {
  readonly edits?: readonly Edit[]
  /** Least and greatest number of acknowledged groups, if known. */
  readonly acked?: readonly [number, number]
  readonly opened?: string
  /** The disk is full: commits are refused, and it is tried again with the same. */
  readonly is_full?: boolean
}

const all = { acked: [groups, groups] } as const
const full = { is_full: true } as const
const none = { acked: [0, 0], opened: 'not_possible' } as const

/** What fails, the suffix of the file whose calls fail, and how they do. */
type Row = readonly [what: string, on: string, inject: string | undefined, more?: More]

// The commit log's first write tries O_DIRECT, the second preallocates, the third is the first
// frame.
const of_log: readonly (readonly [what: string, inject: string, more: More, on?: string])[] = [
  ['a commit log that cannot be created at first', 'pwrite64:error=ENOSPC:when=1', all],
  ['a commit log that can never be created', 'pwrite64:error=ENOSPC:when=2+', all],
  ['a disk without O_DIRECT', 'pwrite64:error=EINVAL:when=1', all],
  ['a commit log that cannot be opened', 'pwrite64:error=EIO:when=3', none],
  ['a second segment that cannot be created', 'openat:error=EACCES:when=2', none, '-log-1'],
  ['a write of the commit log', 'pwrite64:error=EIO:when=6', { acked: [2, 2] }],
  [
    'all writes of the commit log: full',
    'pwrite64:error=ENOSPC:when=6+',
    { acked: [2, 2], ...full },
  ],
  ['one write of the commit log: full', 'pwrite64:error=ENOSPC:when=6', { ...all, ...full }],
  [
    'one write and the next, which clears its place: full',
    'pwrite64:error=ENOSPC:when=6..7',
    { ...all, ...full },
  ],
  ['a short write', 'pwrite64:retval=0:when=7', { ...all, ...full }],
  ['a disk that loses O_DIRECT later', 'pwrite64:error=EINVAL:when=6', all],
  [
    'a disk that loses O_DIRECT in a synchronous write',
    'pwrite64:error=EINVAL:when=4',
    { ...all, edits: [inline] },
  ],
  ['a synchronous write', 'pwrite64:error=EIO:when=4', { edits: [inline], acked: [3, 3] }],
  ['a short synchronous write', 'pwrite64:retval=0:when=4', { ...all, ...full, edits: [inline] }],
  [
    'a write after the preallocation failed',
    'pwrite64:error=ENOSPC:when=7+',
    { ...full, edits: [fills_often], acked: [1, groups - 1] },
  ],
  ['one preallocation', 'pwrite64:error=ENOSPC:when=3', { ...all, ...full, edits: [fills_often] }],
]

const of_checkpoints: readonly (readonly [
  what: string,
  inject?: string | undefined,
  more?: More,
])[] = [
  ['the first sync of a checkpoint', 'fdatasync:error=EIO:when=2'],
  ['a later sync of a checkpoint', 'fdatasync:error=EIO:when=7'],
  ['the pages of a checkpoint: full', 'writev:error=ENOSPC:when=3+', all],
  ['a meta page or a page of a checkpoint', 'pwrite64:error=EIO:when=4'],
  ['all meta pages of checkpoints', 'pwrite64:error=EIO:when=7+'],
  ['frames that differ from what was written', undefined, { edits: [garbled] }],
  ['a process that ends', undefined, { edits: [dies] }],
  ['a process that throws', undefined, { edits: [throws] }],
  ['a process that prints and dies', undefined, { edits: [prints] }],
  ['a process that is killed once', undefined, { ...all, edits: [dies_once] }],
]

const rows: readonly Row[] = [
  ...of_log.map(([what, inject, more, on = '-log-0']): Row => [what, on, inject, more]),
  ...of_checkpoints.map(
    ([what, inject, { edits = [], ...more } = {}]): Row => [
      what,
      '',
      inject,
      { ...more, edits: [...checkpoints, ...edits] },
    ],
  ),
]

describe('a disk that fails under a commit log', { skip, timeout: 120_000, concurrency: 4 }, () => {
  const built = new Map<string, Promise<BuiltChild>>()
  const childWith = (edits: readonly Edit[]): Promise<BuiltChild> => {
    const name = JSON.stringify(edits)
    const child = built.get(name) ?? buildChild('commit-log-broken-child.ts', edits)
    built.set(name, child)
    return child
  }
  after(async () => {
    for (const child of built.values()) await (await child).remove()
  })

  for (const [place, [what, on, inject, more = {}]] of rows.entries()) {
    it(what, async () => {
      const { edits = [], opened = 'ok', is_full = false } = more
      const child = await childWith(edits)
      const path = join(child.folder, `${place}.lmdb`)
      // A checkpoint that fails has to fail before the last group.
      const waits = checkpoints.every((edit) => edits.includes(edit)) && more.acked === undefined
      const args = [child.script, path, String(groups), waits ? 'wait' : '']
      const run = await runTraced(args, {
        trace: `${path}.trace`,
        only: path + on,
        ...(inject === undefined ? {} : { inject }),
        // The calls that fail are counted by thread.
        env: { UV_THREADPOOL_SIZE: '1' },
      })
      const lines = run.stdout.trimEnd().split('\n')
      const acked = lines.filter((line) => line === 'ok').length
      const [from, to] = more.acked ?? [1, groups - 1]
      {
        assert.equal(run.code, 0, run.stderr)
        const results = JSON.parse(lines.at(-1) ?? '') as Results
        const failed = results.updates.filter((update) => update !== 'ok')
        assert.equal(results.opened, opened)
        assert.deepEqual(results.unhandled, [])
        const code = is_full ? 'no_space' : 'store_failed'
        const says = failed.length === 0 ? [] : [code]
        assert.deepEqual(results.failures, is_full ? [] : says)
        assert.deepEqual([...new Set(failed)], says, results.updates.join())
        assert.deepEqual(
          results.events.filter((event) => event === 'store_failed'),
          results.failures,
        )
        assert.equal(
          results.events.includes('slow_writes'),
          inject?.includes('EINVAL:when=1') === true,
        )
        if (opened === 'ok') {
          assert.equal(results.closed, 'ok')
          let seen = 0
          for (const [n, view] of results.views.entries()) {
            if (results.updates[n] === 'ok') seen++
            const last = String(seen)
            assert.ok(view === last || view === 'store_failed', `${view} after ${last}`)
          }
        }
      }
      assert.ok(acked >= from && acked <= to, `${acked} groups were acknowledged`)
      const state = new Map(await closedState(path))
      assertState(state, acked, is_full ? acked : acked + 1)
    })
  }
})
