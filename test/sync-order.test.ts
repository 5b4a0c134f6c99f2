/**
 * A commit is on disk before anybody hears of it: read from what the process asked of the kernel.
 *
 * The same check is shown to fail for databases opened in worse ways, so that it is known to see;
 * and calls are made to fail, to see what becomes of commits then.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openLmdbTree } from '../src/store/lmdb-tree.ts'
import type { Told } from './support/store-broken-child.ts'
import { type BuiltChild, buildChild } from './support/store-child.ts'
import {
  type Call,
  canTrace,
  isWriteOf,
  readTrace,
  runTraced,
  syncOrderMistakes,
} from './support/store-strace.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'
const commits = 6
const isReply = (call: Call) => isWriteOf(call, '"durable ')

describe('sync order', { skip }, () => {
  let built: BuiltChild
  before(async () => {
    built = await buildChild('./store-sync-child.ts')
  })
  after(() => built.remove())

  const rows: [what: string, worse: object | string | undefined, mistake: RegExp | undefined][] = [
    ['as the engine opens it', undefined, undefined],
    ['in place', 'in_place', undefined],
    ['without a sync', { noSync: true }, /the pages were not synced/],
    ['without a sync of the head', { noMetaSync: true }, /the head was not synced/],
    ['with syncs that overlap', { overlappingSync: true }, /pages were not synced before the head/],
  ]
  for (const [place, [what, worse, mistake]] of rows.entries()) {
    it(what, async () => {
      const path = join(built.folder, `${place}.conveyor`)
      const told = typeof worse === 'string' ? worse : JSON.stringify(worse)
      const options = told === undefined ? [] : [told]
      const run = await runTraced([built.script, path, String(commits), ...options], {
        log: `${path}.trace`,
      })
      assert.equal(run.code, 0, run.stderr)
      assert.equal(run.calls.filter(isReply).length, commits)
      const mistakes = syncOrderMistakes(run.calls, path, isReply)
      if (mistake === undefined) assert.deepEqual(mistakes, [])
      else {
        assert.equal(mistakes.length, commits)
        for (const one of mistakes) assert.match(one, mistake)
      }
    })
  }
})

describe('reading a trace', () => {
  const open = '1 openat(AT_FDCWD, "/db", O_WRONLY|O_DSYNC) = 5</db>'
  const pages = '2 writev(4</db>, [{iov_base="x", iov_len=4096}], 1) = 4096'
  const sync = '2 fdatasync(4</db>) = 0'
  const head = '2 pwrite64(5</db>, "y"..., 128, 4136) = 128'
  const reply = '1 write(1<pipe:[9]>, "durable 1\\n", 10) = 10'
  const rows: [what: string, lines: string[], mistakes: RegExp[]][] = [
    ['all in order', [open, pages, sync, head, reply], []],
    ['no reply', [open, pages, sync, head], [/no reply/]],
    ['a reply too early', [open, pages, sync, reply, head], [/no head was written/]],
    ['the head before the sync', [open, pages, head, sync, reply], [/pages were not synced/]],
    ['pages behind the sync', [open, sync, pages, head, reply], [/pages were not synced/]],
    ['no pages', [open, sync, head, reply], [/no page/]],
    ['a sync that failed', [open, pages, sync.replace('0', '-1 EIO'), head, reply], [/not synced/]],
    ['a head that is not synced', [pages, sync, head, reply], [/head was not synced/]],
    ['a head that is synced by a call', [pages, sync, head, sync, reply], []],
    ['the second reply of one commit', [open, pages, sync, head, reply, reply], [/reply 1/]],
    [
      'a head whose write ends behind the reply',
      [
        open,
        pages,
        sync,
        '2 pwrite64(5</db>, "y"..., 128, 40 <unfinished ...>',
        reply,
        '2 <... pwrite64 resumed>) = 128',
      ],
      [/no head was written/],
    ],
    [
      'a head whose write took two lines',
      [
        ...[open, pages, sync, '2 pwrite64(5</db>, "y"..., 128, 40 <unfinished ...>'],
        ...['2 <... pwrite64 resumed>) = 128', reply],
      ],
      [],
    ],
    [
      'a sync that was begun before the pages were written',
      [
        open,
        '3 fdatasync(4</db> <unfinished ...>',
        pages,
        '3 <... fdatasync resumed>) = 0',
        head,
        reply,
      ],
      [/pages were not synced/],
    ],
  ]
  for (const [what, lines, expected] of rows) {
    it(what, () => {
      const mistakes = syncOrderMistakes(readTrace(lines.join('\n')), '/db', isReply)
      assert.equal(mistakes.length, expected.length, mistakes.join())
      for (const [index, mistake] of expected.entries()) assert.match(`${mistakes[index]}`, mistake)
    })
  }
})

describe('a disk that fails', { skip }, () => {
  let built: BuiltChild
  before(async () => {
    built = await buildChild('./store-broken-child.ts')
  })
  after(() => built.remove())

  // Where writing the head fails, LMDB itself refuses to read on.
  const rows: [what: string, inject: string, view: string, afterwards: string[]][] = [
    ['while syncing', 'fdatasync:error=EIO:when=2', '0', ['0']],
    ['while writing pages: full', 'writev:error=ENOSPC:when=2+', '0', ['0']],
    ['while writing the head', 'pwrite64:error=EIO:when=2', 'store_failed', ['0', '1']],
    ['while writing the head, for ever', 'pwrite64:error=EIO:when=2+', 'store_failed', ['0', '1']],
    [
      'with a number LMDB has other uses for',
      'pwrite64:error=ENOENT:when=2',
      'store_failed',
      ['0', '1'],
    ],
  ]
  // The thread that opens a new file makes its heads.
  const later = (inject: string): string => inject.replace(/(pwrite64.*when=)2/, '$13')
  const all = rows.flatMap(([what, inject, ...row]) => [
    [what, [], inject, ...row] as const,
    [`${what}, in place`, ['in_place'], later(inject), ...row] as const,
  ])
  for (const [place, [what, args, inject, view, afterwards]] of all.entries()) {
    it(what, async () => {
      const path = join(built.folder, `${place}.conveyor`)
      const run = await runTraced([built.script, path, ...args], {
        log: `${path}.trace`,
        inject,
        // The calls that fail are counted by thread.
        env: { UV_THREADPOOL_SIZE: '1' },
      })
      assert.equal(run.code, 0, run.stderr)
      const told = JSON.parse(run.stdout) as Told
      assert.deepEqual(told, {
        updates: ['ok', 'store_failed', 'store_failed', 'store_failed'],
        views: ['0', view, view, view],
        failures: ['store_failed'],
        unhandled: [],
      })
      const tree = await openLmdbTree(path)
      assert.ok(afterwards.includes(`${tree.get('last')}`), 'what was answered is there')
      await tree.commit(new Map([['last', Buffer.from('after')]]))
      assert.equal(tree.get('last')?.toString(), 'after')
      await tree.close()
    })
  }
})
