/**
 * `top` on a file that is served: printed once for people and for programs, drawn in a terminal of
 * any size until a key ends it, and its sentences where nothing serves the file.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it, test } from 'node:test'
import { overviewLines } from '../src/cli/overview-page.ts'
import type { Overview } from '../src/console/overview/messages.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { type Ran, type RunOptions, run, tempFolder } from './support/cli-run.ts'
import { pick } from './support/pick.ts'
import { sortingProcess } from './support/search-setup.ts'

const folder = tempFolder()
const db = join(folder.path, 'a.lmdb')
const evil = '\x1b[31mtitle\u202e\n'
let engine: Engine

before(async () => {
  engine = await openEngine(db, { admin: true })
  for (const id of ['a', 'b']) await engine.processes.put(sortingProcess(id))
  await engine.processes.put({ ...sortingProcess('c'), title: evil })
  for (const kind of ['wait', 'wait', 'fail', 'fail', 'done']) {
    await engine.create({ conv_id: 'a', data: { kind } })
  }
})
after(async () => {
  await engine.close()
  folder.remove()
})

const top = (flags: readonly string[] = [], options: RunOptions = {}): Promise<Ran> =>
  run(['top', ...flags, '--db', db], options)

/** Draws in a terminal of this size until there was a second picture; the lines of the last. */
async function drawn(columns: number, rows: number, key: string): Promise<string[]> {
  const pictures: string[] = []
  let press = (_key: string): void => {}
  const { exit, out } = await top([], {
    terminal: {
      columns,
      rows,
      onKeys(given) {
        press = given
      },
    },
    onOut(text) {
      if (text.startsWith('\x1b[H')) pictures.push(text)
      if (pictures.length === 2) press(key)
    },
  })
  assert.equal(exit, 0)
  assert.ok(out.startsWith('\x1b[?1049h') && out.endsWith('\x1b[?1049l'), 'the screen is put back')
  const last = (pictures.at(-1) as string).slice('\x1b[H'.length).replaceAll('\x1b[K', '')
  return last.replace('\x1b[J', '').split('\r\n')
}

describe('top', () => {
  // [flags, what the page says]
  const pages: readonly (readonly [flags: string[], says: readonly RegExp[]])[] = [
    [
      ['--once'],
      [/^conveyor \S+ {2}up .* ok$/m, /^PROCESS +TITLE/m, /^a +Process a +active +2 +0 +2 /m],
    ],
    [[], [/^FAILED +NEWEST/m, /^2 +\d+ s ago +Process a +Fail +\S+/m, /^c +·\[31mtitle··/m]],
  ]
  for (const [flags, says] of pages) {
    it(`prints it once: ${flags.join(' ')}`, async () => {
      const { exit, out, err } = await top(flags)
      assert.deepEqual([exit, err], [0, ''])
      for (const one of says) assert.match(out, one)
      assert.ok(!out.includes('\x1b'))
    })
  }

  it('prints one document for programs', async () => {
    const { exit, out } = await top(['--json'])
    const { processes, failed, health } = JSON.parse(out) as Overview
    assert.equal(exit, 0)
    assert.deepEqual(pick(processes, 'conv_id', 'by_status'), [
      ['a', { delayed: 2, failed: 2, processed: 1 }],
      ['b', {}],
      ['c', {}],
    ])
    assert.deepEqual([failed?.total, failed?.groups.length, health.ok], [2, 1, true])
  })

  // [columns, rows, key]
  const sizes = [
    [80, 24, 'q'],
    [20, 8, '\x03'],
    [200, 60, 'Q'],
  ] as const
  for (const [columns, rows, key] of sizes) {
    it(`fits a terminal of ${columns} × ${rows}, until ${JSON.stringify(key)}`, async () => {
      const lines = await drawn(columns, rows, key)
      assert.ok(lines.length < rows, `${lines.length} lines`)
      assert.ok(lines.every((line) => line.length <= columns))
      assert.match(lines[0] as string, /^conveyor /)
      assert.ok(lines.some((line) => /^a +Process/.test(line)))
    })
  }

  // [file, exit, says]
  const nothing: readonly (readonly [file: string, says: RegExp])[] = [
    ['missing.lmdb', /there is no file/],
    ['closed.lmdb', /no server has .*closed.lmdb open.*conveyor serve.* opens it/],
    ['held.lmdb', /held.lmdb is held by process \d+/],
  ]
  for (const [file, says] of nothing) {
    it(`says so: ${file}`, async () => {
      const path = join(folder.path, file)
      const opened = file === 'missing.lmdb' ? undefined : await openEngine(path)
      if (file === 'closed.lmdb') await opened?.close()
      const { exit, out, err } = await run(['top', '--db', path])
      if (file === 'held.lmdb') await opened?.close()
      assert.deepEqual([exit, out], [3, ''])
      assert.match(err, says)
    })
  }
})

// [ends a minute, failed and told ones, what the page says and does not say]
const told: readonly (readonly [number[], readonly [number, number], RegExp, is_said: boolean])[] =
  [
    [[0, 40], [0, 0], /active +0 +0 +0 +40 /, true],
    [[40, 3], [0, 0], /active +0 +0 +0 +40 /, true],
    [[], [5_000, 1_000], /^These are the newest 1000 of 5000 failed tasks\.$/m, true],
    [[], [1_000, 1_000], /These are the newest/, false],
  ]
for (const [done, [total, grouped], says, is_said] of told) {
  test(`top of ${done.join(', ')} ends and ${total} failed tasks`, () => {
    const lines = overviewLines({
      ...{ at_ms: 0, since_ms: 0, removed: [], failed: { total, grouped, groups: [] } },
      processes: [
        { ...{ conv_id: 'a', title: 'A', version: 1 }, status: 'active', by_status: {}, done },
      ],
      health: {
        ...{ ok: true, checks: {}, version: '1', uptime_s: 1, ops_per_s: 0, due_lag_ms: 0 },
        ...{ queue: { ops: 0, bytes: 0 }, jobs: { in_flight: 0, waiting: 0 } },
        ...{ file_bytes: 1, certificates_until_ms: {} },
      },
    })
    assert.equal(says.test(lines.join('\n')), is_said)
  })
}
