/**
 * A disk that fails under a log: in its own writes, or in those of a merge. Callers hear of it, from
 * then on nothing is written, closing comes to its end, and the next opening has all that was
 * acknowledged and no group by half.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import type { LogTold } from './support/log-broken-child.ts'
import { crash_forms } from './support/log-crash.ts'
import { assertState, foldedState } from './support/log-setup.ts'
import { type BuiltChild, buildChild, type Edit } from './support/store-child.ts'
import { canTrace, runTraced } from './support/store-strace.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'
const groups = 60

const segment = 'store/log/segment.ts'
const worker = 'store/log/checkpoint-worker.ts'
const in_place: Edit = { file: segment, from: 'took_ms_max: 0.3', to: 'took_ms_max: 1000' }
const fills_often: Edit = { file: segment, from: '1024 * 1024', to: '4096' }
const in_thread = 'runCheckpoint(await opening, withBuffers(job), scratch)'
const garbled: Edit = {
  file: 'store/log/checkpoint.ts',
  from: 'own.set(frames)',
  to: 'own.set(frames); own[own.length - 1] ^= 1',
}
const dies: Edit = { file: worker, from: in_thread, to: `process.exit(7); ${in_thread}` }
const throws: Edit = {
  file: worker,
  from: in_thread,
  to: `setImmediate(() => { throw new Error('on purpose') }); await new Promise(() => {}); ${in_thread}`,
}
const merges = crash_forms.at(-1)?.edits ?? []

interface Row {
  readonly what: string
  /** The file whose calls fail, by the end of its name. */
  readonly on: string
  readonly inject?: string
  readonly edits?: readonly Edit[]
  /** How many groups were acknowledged at least and at most, where that is known. */
  readonly acked?: readonly [number, number]
  readonly opened?: string
  /** What LMDB prints of a page that it could not write runs over its buffer (lmdb 3.5.6). */
  readonly may_die?: boolean
}

// Of the log's writes the first tries the file, the second fills it, and the third opens the log.
const rows: Row[] = [
  {
    ...{
      what: 'a log that cannot be made at once',
      on: '-log-0',
      inject: 'pwrite64:error=ENOSPC:when=1',
    },
    acked: [groups, groups],
  },
  {
    ...{ what: 'a log that can never be made', on: '-log-0' },
    ...{ inject: 'pwrite64:error=ENOSPC:when=2+', acked: [groups, groups] },
  },
  {
    ...{ what: 'a disk that wants the cache', on: '-log-0' },
    ...{ inject: 'pwrite64:error=EINVAL:when=1', acked: [groups, groups] },
  },
  {
    ...{ what: 'a log that cannot be opened', on: '-log-0', inject: 'pwrite64:error=EIO:when=3' },
    ...{ acked: [0, 0], opened: 'not_possible' },
  },
  {
    ...{ what: 'a second segment that cannot be made', on: '-log-1' },
    ...{ inject: 'openat:error=EACCES:when=2', acked: [0, 0], opened: 'not_possible' },
  },
  {
    ...{ what: 'a write of the log', on: '-log-0', inject: 'pwrite64:error=EIO:when=6' },
    acked: [2, 2],
  },
  {
    ...{ what: 'all writes of the log: full', on: '-log-0' },
    ...{ inject: 'pwrite64:error=ENOSPC:when=6+', acked: [2, 2] },
  },
  {
    ...{ what: 'a write that is cut short', on: '-log-0', inject: 'pwrite64:retval=0:when=7' },
    acked: [3, 3],
  },
  {
    ...{ what: 'a write past the cache that is refused later', on: '-log-0' },
    ...{ inject: 'pwrite64:error=EINVAL:when=6', acked: [groups, groups] },
  },
  {
    ...{ what: 'one in place that is refused later', on: '-log-0' },
    ...{ inject: 'pwrite64:error=EINVAL:when=4', edits: [in_place] },
    acked: [groups, groups],
  },
  {
    ...{ what: 'a write in place', on: '-log-0', inject: 'pwrite64:error=EIO:when=4' },
    ...{ edits: [in_place], acked: [3, 3] },
  },
  {
    ...{ what: 'a write in place that is cut short', on: '-log-0' },
    ...{ inject: 'pwrite64:retval=0:when=4', edits: [in_place], acked: [3, 3] },
  },
  {
    ...{ what: 'a write once the log could not be filled further', on: '-log-0' },
    ...{ inject: 'pwrite64:error=ENOSPC:when=7+', edits: [fills_often], acked: [1, groups - 1] },
  },
  {
    ...{ what: 'a fill alone', on: '-log-0', inject: 'pwrite64:error=ENOSPC:when=3' },
    ...{ edits: [fills_often], acked: [1, groups] },
  },
  {
    ...{ what: 'the first sync of a merge', on: '', inject: 'fdatasync:error=EIO:when=2' },
    edits: merges,
  },
  {
    ...{ what: 'a later sync of a merge', on: '', inject: 'fdatasync:error=EIO:when=7' },
    edits: merges,
  },
  {
    ...{ what: 'the pages of a merge: full', on: '', inject: 'writev:error=ENOSPC:when=3+' },
    ...{ edits: merges, acked: [groups, groups] },
  },
  {
    ...{ what: 'the head or a page of a merge', on: '', inject: 'pwrite64:error=EIO:when=4' },
    ...{ edits: merges, may_die: true },
  },
  {
    ...{ what: 'all heads of merges', on: '', inject: 'pwrite64:error=EIO:when=7+' },
    ...{ edits: merges, may_die: true },
  },
  { what: 'frames that are not what was written', on: '', edits: [...merges, garbled] },
  { what: 'a thread that ends', on: '', edits: [...merges, dies] },
  { what: 'a thread that throws', on: '', edits: [...merges, throws] },
]

describe('a disk that fails under a log', { skip, timeout: 120_000, concurrency: 4 }, () => {
  const built = new Map<string, Promise<BuiltChild>>()
  const childWith = (edits: readonly Edit[]): Promise<BuiltChild> => {
    const name = JSON.stringify(edits)
    const child = built.get(name) ?? buildChild('log-broken-child.ts', edits)
    built.set(name, child)
    return child
  }
  after(async () => {
    for (const child of built.values()) await (await child).remove()
  })

  for (const [place, row] of rows.entries()) {
    it(row.what, async () => {
      const { on, inject, edits = [], opened = 'ok' } = row
      const child = await childWith(edits)
      const path = join(child.folder, `${place}.lmdb`)
      // Checkpoints fail between two groups, so those rows give them time.
      const pause_ms = merges.every((edit) => edits.includes(edit)) ? 10 : 1
      const args = [child.script, path, String(groups), String(pause_ms)]
      const run = await runTraced(args, {
        log: `${path}.trace`,
        only: path + on,
        ...(inject === undefined ? {} : { inject }),
        // The calls that fail are counted by thread.
        env: { UV_THREADPOOL_SIZE: '1' },
      })
      const lines = run.stdout.trimEnd().split('\n')
      const acked = lines.filter((line) => line === 'ok').length
      const [from, to] = row.acked ?? [1, groups - 1]
      if (row.may_die !== true || run.code === 0) {
        assert.equal(run.code, 0, run.stderr)
        const told = JSON.parse(lines.at(-1) ?? '') as LogTold
        const failed = told.updates.slice(acked)
        assert.equal(told.opened, opened)
        assert.deepEqual(told.unhandled, [])
        const says = failed.length === 0 ? [] : ['store_failed']
        assert.deepEqual(told.failures, says)
        assert.deepEqual([...new Set(failed)], says, told.updates.join())
        if (opened === 'ok') {
          assert.equal(told.closed, 'ok')
          for (const [n, view] of told.views.entries()) {
            const last = String(Math.min(n + 1, acked))
            assert.ok(view === last || view === 'store_failed', `${view} after ${last}`)
          }
        }
      }
      assert.ok(acked >= from && acked <= to, `${acked} groups were acknowledged`)
      const state = new Map(await foldedState(path))
      assertState(state, acked, acked + 1)
    })
  }
})
