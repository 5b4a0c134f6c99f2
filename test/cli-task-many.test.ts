/**
 * The command line on many tasks: the filters of `task list`, counts, and changes that are made
 * only once their number was typed or with `--yes`. Each runs on a file that it opens itself, and
 * through the socket of the process that holds it.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { type Engine, openEngine } from '../src/index.ts'
import { callback_process } from './support/cli-process.ts'
import { type Ran, type RunOptions, rowsOf, run, tempFolder } from './support/cli-run.ts'
import { sortingProcess } from './support/search-setup.ts'

interface Harness {
  /** Words of a verb; a word in it may hold blanks. */
  on(words: readonly string[], options?: RunOptions): Promise<Ran>
  rows(...words: string[]): Promise<Record<string, unknown>[]>
}

async function filled(path: string, count: number, options = {}): Promise<Engine> {
  const engine = await openEngine(path, { background: false, ...options })
  await engine.processes.put(sortingProcess('a'))
  await engine.processes.put(callback_process)
  const kinds = ['wait', 'bank', 'fail', 'wait', 'done']
  for (let from = 0; from < count; from += 500) {
    const ops = Array.from({ length: Math.min(500, count) }, (_, at) => ({
      ...{ type: 'create', obj: 'task', conv_id: 'a', ref: `r${from + at}` },
      data: { kind: kinds[(from + at) % 5], n: from + at, at: 2e9 },
    }))
    for (const { proc } of await engine.apply(ops)) assert.equal(proc, 'ok')
  }
  return engine
}

const ways: readonly [
  name: string,
  open: (db: string, dir: string, count: number) => Promise<() => Promise<void>>,
][] = [
  [
    'a file of its own',
    async (db, _dir, count) => {
      await (await filled(db, count)).close()
      return async () => {}
    },
  ],
  [
    'the socket of the holder',
    async (db, runtime_dir, count) => {
      const engine = await filled(db, count, { admin: true, runtime_dir })
      return () => engine.close()
    },
  ],
]

for (const [name, open] of ways) {
  describe(name, () => {
    const withHarness = async (
      count: number,
      fn: (harness: Harness) => Promise<void>,
    ): Promise<void> => {
      const folder = tempFolder()
      const db = join(folder.path, 'a.lmdb')
      const close = await open(db, join(folder.path, 'run'), count)
      const on: Harness['on'] = (words, options) => run([...words, '--db', db], options)
      await fn({
        on,
        async rows(...words) {
          const { exit, out, err } = await on([...words, '--json'])
          assert.equal(exit, 0, err)
          return rowsOf(out)
        },
      })
      assert.equal((await on(['check'])).out, '')
      await close()
      folder.remove()
    }

    it('finds, counts and changes', () =>
      withHarness(2_000, async ({ on, rows }) => {
        // biome-ignore format: a table
        const lists: readonly (readonly [flags: readonly string[], found: number])[] = [
          [['a', '--all'], 1600], [['--all'], 1600], [['a', '--node', 'Bank', '--all'], 400],
          [['a', '--status', 'failed', '--limit', '7', '--newest'], 7], [['a', '--ref-prefix', 'r24'], 8],
          [['a', '--where', '{"n":{"gte":10,"lt":20}}', '--status', 'any'], 10],
          [['a', '--where', '{"n":1e1}', '--status', 'any'], 1],
          [['a', '--created-until', '1h'], 0], [['a', '--created-since', '1h', '--limit', '3'], 3],
          [['a', '--due-before', '2100-01-01', '--all'], 400], [['a', '--due-before', '+1d'], 0],
        ]
        for (const [flags, found] of lists.slice(name === 'a file of its own' ? 9 : 0)) {
          assert.equal((await rows('task', 'list', ...flags)).length, found, flags.join(' '))
        }
        const first = await on(['task', 'list', 'a', '--limit', '2', '--json'])
        const [, cursor = ''] = /--cursor (\S+)/.exec(first.err) ?? []
        const next = await rows('task', 'list', 'a', '--limit', '2', '--cursor', cursor)
        assert.deepEqual(
          [...rowsOf(first.out), ...next].map(({ ref }) => ref),
          ['r0', 'r1', 'r2', 'r3'],
        )

        const [counts] = await rows('task', 'count', 'a', '--status', 'live')
        assert.deepEqual(
          [counts?.total, counts?.by_status],
          [1600, { processing: 0, delayed: 1200, failed: 400 }],
        )
        const table = (await on(['task', 'count'])).out
        assert.match(table, /^PROCESS +TITLE +TASKS +PROCESSING +DELAYED/)
        assert.match(table, /\na +Process a +2000 +0 +1200 +400 +400 +0\nall +2000/)

        const tried = await on(['task', 'cancel', 'a', '--node', 'Bank', '--dry-run'])
        assert.match(tried.out, /the first 10 of 400 tasks, nothing was changed\n$/)
        for (const stdin of ['', '4000\n']) {
          const asked = await on(['task', 'cancel', 'a', '--node', 'Bank'], { stdin })
          assert.equal(asked.exit, 1)
          assert.match(asked.err, /cancel 400\? Type their number: that is not the number/)
        }
        assert.equal((await rows('task', 'list', 'a', '--node', 'Bank', '--all')).length, 400)
        const typed = await on(['task', 'cancel', 'a', '--node', 'Bank'], { stdin: '400\n' })
        assert.equal(typed.out, 'cancel: 400 of 400 done\n', typed.err)
        const none = await on(['task', 'cancel', 'a', '--node', 'Bank'])
        assert.equal(none.out, '0 tasks, nothing was changed\n')

        const flags = ['--status', 'failed', '--to', 'w1', '--yes']
        const retried = await on(['task', 'retry', 'a', ...flags])
        assert.equal(retried.out, 'retry: 400 of 400 done\n', retried.err)
        const moved = await on([
          'task',
          'move',
          'a',
          '--node',
          'w1',
          '--to',
          'x1',
          '--yes',
          '--id',
          'night',
        ])
        assert.equal(moved.out, 'move: 1200 of 1200 done\n', moved.err)
        assert.match(
          moved.err,
          /job night: if cut off, go on with `conveyor task bulk night --db \S+`/,
        )
        const again = await on(['task', 'bulk', 'night'])
        assert.equal(again.out, moved.out)
        const [job] = await rows('task', 'bulk', 'night')
        assert.deepEqual([job?.is_done, job?.changed, job?.action], [true, 1200, 'move'])
        assert.match(
          (await on(['task', 'bulk'])).out,
          /night +\S+ \S+ +yes +move .*1200 of 1200 done/,
        )
        const sent = await on([
          'task',
          'modify',
          'a',
          '--where',
          '{"n":{"lt":100}}',
          '--data',
          '{"x":1.10}',
          '--yes',
          '--json',
        ])
        assert.equal(rowsOf(sent.out)[0]?.changed, 60)
        const [one] = await rows(
          'task',
          'list',
          'a',
          '--status',
          'processed',
          '--where',
          '{"x":1.1}',
        )
        assert.equal((one?.data as { x: number } | undefined)?.x, 1.1)

        const paused = await on(['process', 'pause', 'a'])
        assert.equal(paused.exit, 0)
        const refused = await on(['task', 'move', 'a', '--all', '--to', 'w1', '--yes'])
        assert.equal(refused.exit, 1)
        assert.equal(refused.out, 'move: 0 of 1140 done; 1140 refused, conveyor_is_not_active\n')
      }))

    it('one task: what it was and is', () =>
      withHarness(20, async ({ on, rows }) => {
        const moved = await on(['task', 'move', 'a', 'r0', '--to', 'w2'])
        assert.equal(moved.out, 'moved: delayed in node w2, was delayed in node w1\n')
        const [canceled] = await rows('task', 'cancel', 'a', 'r0')
        assert.deepEqual(canceled?.was, { status: 'delayed', node_id: 'w2' })
        assert.deepEqual(canceled?.now, { status: 'canceled', node_id: 'w2' })
      }))

    // biome-ignore format: a table
    const mistakes: readonly (readonly [line: string, exit: number, says: RegExp])[] = [
      ['task cancel a',                             2, /name the task/],
      ['task cancel a r1 --node w1',                2, /name one task, or say which by --node, not both/],
      ['task cancel a r1 --yes',                    2, /not both/],
      ['task move a --node w1 --yes',               2, /--to is missing/],
      ['task modify a --sync --all --yes',          2, /--sync is for one task/],
      ['task cancel a --all --yes --status fialed', 2, /--status is one of processing, delayed/],
      ['task cancel a --all --yes --where {',       2, /--where is/],
      ['task cancel a --created-since now --yes',   2, /--created-since is a time/],
      ['task cancel a --status processed --yes',    1, /takes live tasks/],
      ['task cancel a --node w9 --yes',             1, /no node "w9" in process a; there are .*w1 "Wait"/],
      ['task cancel aa --all --yes',                1, /a "Process a"/],
      ['task list a --node w9',                     1, /w1 "Wait"/],
      ['task list --cursor x',                      1, /cursor/],
      ['task count a --node w9',                    1, /w1 "Wait"/],
      ['task bulk none',                            1, /no bulk job "none"/],
    ]
    it('mistakes change nothing and say what there is', () =>
      withHarness(20, async ({ on, rows }) => {
        const before = (await rows('task', 'count'))[0]
        for (const [line, exit, says] of mistakes.slice(name === 'a file of its own' ? 9 : 0)) {
          const ran = await on(line.split(' '), { env: { CONVEYOR_YES: '1', CONVEYOR_ALL: '1' } })
          assert.equal(ran.exit, exit, `${line}: ${ran.err}`)
          assert.match(ran.err, says, line)
        }
        assert.deepEqual((await rows('task', 'count'))[0], before)
      }))
  })
}
