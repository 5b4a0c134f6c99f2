/**
 * Without disk space for a commit log, a commit goes into LMDB and is on disk before its
 * acknowledgement: read from a system call trace.
 *
 * The same check fails for databases that are opened with fewer syncs, and on traces made by hand.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Edit } from './support/store-child.ts'
import {
  canTrace,
  isDurableSaid,
  readTrace,
  syncOrderMistakes,
  traceCommits,
} from './support/store-strace.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'
const commits = 6

describe('sync order', { skip }, () => {
  const no_room: Edit = {
    file: 'store/commit-log/segments.ts',
    from: 'const new_commit_log_bytes = 3',
    to: 'const new_commit_log_bytes = Number.MAX_SAFE_INTEGER * 3',
  }
  const worse = (option: string): Edit => ({
    file: 'store/lmdb/database.ts',
    from: 'noSubdir: true,',
    to: `noSubdir: true, ${option}: true,`,
  })
  const rows: [what: string, edits: readonly Edit[], mistake?: RegExp][] = [
    ['as the engine opens it', []],
    ['without a sync', [worse('noSync')], /the pages were not synced/],
    ['without a sync of the meta page', [worse('noMetaSync')], /the meta page was not synced/],
  ]
  for (const [what, edits, mistake] of rows) {
    it(what, async () => {
      const { calls, path } = await traceCommits([no_room, ...edits], commits)
      const mistakes = syncOrderMistakes(calls, path, isDurableSaid)
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
  const meta_page = '2 pwrite64(5</db>, "y"..., 128, 4136) = 128'
  const reply = '1 write(1<pipe:[9]>, "durable 1\\n", 10) = 10'
  const rows: [what: string, lines: string[], mistakes: RegExp[]][] = [
    ['all in order', [open, pages, sync, meta_page, reply], []],
    ['no reply', [open, pages, sync, meta_page], [/no reply/]],
    ['a reply too early', [open, pages, sync, reply, meta_page], [/no meta page was written/]],
    [
      'the meta page before the sync',
      [open, pages, meta_page, sync, reply],
      [/pages were not synced/],
    ],
    ['pages after the sync', [open, sync, pages, meta_page, reply], [/pages were not synced/]],
    ['no pages', [open, sync, meta_page, reply], [/no page/]],
    [
      'a sync that failed',
      [open, pages, sync.replace('0', '-1 EIO'), meta_page, reply],
      [/not synced/],
    ],
    [
      'a meta page that is not synced',
      [pages, sync, meta_page, reply],
      [/meta page was not synced/],
    ],
    ['a meta page that is synced by a call', [pages, sync, meta_page, sync, reply], []],
    ['the second reply of one commit', [open, pages, sync, meta_page, reply, reply], [/reply 1/]],
    [
      'a meta page whose write ends after the reply',
      [
        open,
        pages,
        sync,
        '2 pwrite64(5</db>, "y"..., 128, 40 <unfinished ...>',
        reply,
        '2 <... pwrite64 resumed>) = 128',
      ],
      [/no meta page was written/],
    ],
    [
      'a meta page whose write takes two lines',
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
        meta_page,
        reply,
      ],
      [/pages were not synced/],
    ],
  ]
  for (const [what, lines, expected] of rows) {
    it(what, () => {
      const mistakes = syncOrderMistakes(readTrace(lines.join('\n')), '/db', isDurableSaid)
      assert.equal(mistakes.length, expected.length, mistakes.join())
      for (const [index, mistake] of expected.entries()) assert.match(`${mistakes[index]}`, mistake)
    })
  }
})
