/**
 * The order of writes and syncs with a commit log, read from a system call trace: a group is on
 * disk before its acknowledgement, by one sync and no more, and no frame is overwritten before it
 * is in LMDB.
 *
 * The same check fails for programs that sync less, and on traces made by hand.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { commitLogOrderMistakes, roundsOf } from './support/commit-log-strace.ts'
import type { Edit } from './support/store-child.ts'
import { canTrace, isDurableSaid, readTrace, traceCommits } from './support/store-strace.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'
const commits = process.env.CONVEYOR_SLOW === '1' ? 60 : 40

const segment = 'store/commit-log/segments.ts'
const file = 'store/commit-log/segment-file.ts'
const rows: [what: string, edits: readonly Edit[], mistake?: RegExp][] = [
  ['as the engine does it', []],
  [
    'with synchronous writes only',
    [{ file: segment, from: 'took_ms_max: 0.3', to: 'took_ms_max: 1000' }],
  ],
  [
    'with a sync call per write',
    [
      { file, from: 'constants.O_DSYNC : undefined', to: '0 + 0 : undefined' },
      { file, from: "=== 'linux'", to: "=== 'none'" },
    ],
  ],
  ['without O_DIRECT', [{ file, from: 'constants.O_DIRECT', to: 'undefined' }]],
  [
    'without a sync',
    [{ file, from: 'constants.O_DSYNC :', to: 'constants.O_NOATIME :' }],
    /its frame was not synced/,
  ],
]

describe('sync order of a commit log', { skip }, () => {
  for (const [what, edits, mistake] of rows) {
    it(what, async (t) => {
      const { calls, path } = await traceCommits(edits, commits)
      const mistakes = commitLogOrderMistakes(calls, path, isDurableSaid)
      if (mistake === undefined) {
        assert.deepEqual(mistakes, [])
        const rounds = roundsOf(calls, path)
        assert.ok(rounds > 0, 'no segment was overwritten')
        t.diagnostic(`${commits} groups, ${rounds} segments overwritten`)
      } else {
        assert.equal(mistakes.length, commits)
        for (const one of mistakes) assert.match(one, mistake)
      }
    })
  }
})

describe('reading the trace of a commit log', () => {
  const opened = '1 openat(AT_FDCWD, "/db-log-0", O_RDWR|O_CREAT|O_EXCL|O_DSYNC) = 7</db-log-0>'
  const other = '1 openat(AT_FDCWD, "/db-log-1", O_RDWR|O_CREAT|O_EXCL|O_DSYNC) = 8</db-log-1>'
  const meta_descriptor = '1 openat(AT_FDCWD, "/db", O_WRONLY|O_DSYNC) = 5</db>'
  const fill = '2 pwrite64(7</db-log-0>, "\\0\\0\\0\\0\\0\\0\\0\\0"..., 1048576, 0) = 1048576'
  const first = '2 pwrite64(7</db-log-0>, "CVLF"..., 64, 0) = 64'
  const frame = '2 pwrite64(7</db-log-0>, "CVLF"..., 128, 64) = 128'
  const in_other = '2 pwrite64(8</db-log-1>, "CVLF"..., 128, 0) = 128'
  const again = '2 pwrite64(7</db-log-0>, "CVLF"..., 4096, 0) = 4096'
  const over = '2 pwrite64(7</db-log-0>, "CVLF\\3"..., 128, 0) = 128'
  const sync = '2 fdatasync(7</db-log-0>) = 0'
  const pages = '3 writev(4</db>, [{iov_base="x", iov_len=4096}], 1) = 4096'
  const pages_sync = '3 fdatasync(4</db>) = 0'
  const meta_page = '3 pwrite64(5</db>, "y"..., 128, 4136) = 128'
  const reply = '1 write(1<pipe:[9]>, "durable 1\\n", 10) = 10'
  const opening = [meta_descriptor, opened, other, fill, first]
  const unsynced = opening.map((line) => line.replace('|O_DSYNC) = 7', ') = 7'))
  const merged = [pages, pages_sync, meta_page]
  const traces: [what: string, lines: string[], mistakes: RegExp[]][] = [
    ['all in order', [...opening, frame, reply], []],
    ['no reply', [...opening, frame], [/no reply/]],
    ['preallocation', [...opening, frame, fill, reply], []],
    ['a reply too early', [...opening, reply, frame], [/no frame/]],
    ['the second reply of one frame', [...opening, frame, reply, reply], [/reply 1: no frame/]],
    ['a block written again', [...opening, again, reply], []],
    ['a block that begins in a frame', [...opening, frame.replace('CVLF', 'text'), reply], []],
    ['two frames', [...opening, frame, frame, reply], [/2 frames/]],
    ['a descriptor that does not sync', [...unsynced, frame, reply], [/not synced/]],
    ['a sync by a call', [...unsynced, frame, sync, reply], []],
    ['a sync before the write', [...unsynced, sync, frame, reply], [/not synced/]],
    ['a sync too late', [...unsynced, frame, reply, sync], [/not synced/]],
    ['a sync that failed', [...unsynced, frame, sync.replace('0', '-1'), reply], [/not synced/]],
    ['a sync too many', [...opening, frame, sync, reply], [/1 syncs more/]],
    ['two syncs by calls', [...unsynced, frame, sync, sync, reply], [/1 syncs more/]],
    [
      'a frame whose write ends after the reply',
      [
        ...opening,
        '2 pwrite64(7</db-log-0>, "CVLF"..., 128, 64 <unfinished ...>',
        reply,
        '2 <... pwrite64 resumed>) = 128',
      ],
      [/no frame/],
    ],
    [
      'a segment overwritten after its checkpoint',
      [...opening, frame, reply, in_other, reply, ...merged, over, reply],
      [],
    ],
    [
      'a segment overwritten without a checkpoint',
      [...opening, frame, reply, in_other, reply, over, reply],
      [/db-log-0 was written over/],
    ],
    [
      'a segment overwritten before the meta page of its checkpoint',
      [...opening, frame, reply, in_other, reply, pages, pages_sync, over, reply, meta_page],
      [/db-log-0 was written over/],
    ],
    [
      'a checkpoint whose pages are not synced',
      [...opening, frame, reply, in_other, reply, pages, meta_page, over, reply],
      [/db-log-0 was written over/, /the tree: the pages were not synced/],
    ],
  ]
  for (const [what, lines, expected] of traces) {
    it(what, () => {
      const mistakes = commitLogOrderMistakes(readTrace(lines.join('\n')), '/db', isDurableSaid)
      assert.equal(mistakes.length, expected.length, mistakes.join())
      for (const [index, mistake] of expected.entries()) assert.match(`${mistakes[index]}`, mistake)
    })
  }
})
