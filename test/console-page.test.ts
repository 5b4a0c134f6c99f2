/**
 * The operator's page as it is built: small, the same bytes each time, nothing fetched from outside
 * and no code made of text; and what it says of numbers, times and the health of a server.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Health } from '../src/console/overview/messages.ts'
import { healthRows } from '../src/console/page/overview/health-rows.ts'
import {
  agoText,
  bytesText,
  countText,
  dueText,
  durationText,
  exactText,
  rateText,
} from '../src/console/page/parts/texts.ts'
import { run, tempFolder, top } from './support/package-folder.ts'

const zipped_bytes_max = 100_000

describe('the built page', () => {
  const folder = tempFolder()
  after(folder.remove)
  const builds = ['one', 'two'].map((name) => {
    const to = join(folder.path, name)
    run(top, process.execPath, ['--import', 'tsx', 'bin/page.ts', to])
    return new Map(readdirSync(to).map((file) => [file, readFileSync(join(to, file))]))
  })
  const [first = new Map<string, Buffer>(), second] = builds
  const textOf = (file: string): string => String(first.get(file))

  test('is three files, the same each time, without source maps', () => {
    assert.deepEqual([...first.keys()].toSorted(), ['icon.svg', 'page.css', 'page.js'])
    assert.deepEqual(first, second)
    assert.doesNotMatch(textOf('page.js') + textOf('page.css'), /sourceMappingURL/)
  })

  test('is small', () => {
    const bytes = ['page.js', 'page.css'].map((file) => gzipSync(textOf(file)).length)
    assert.ok(bytes.reduce((sum, one) => sum + one) < zipped_bytes_max, `${bytes} bytes`)
  })

  test('has the licences of what is in it', () => {
    for (const name of ['preact', '@preact/signals', '@preact/signals-core']) {
      assert.match(textOf('page.js'), new RegExp(`^/\\*! ${name}\n[^*]*MIT License`, 'm'))
    }
  })

  test('fetches nothing from outside and makes no code of text', () => {
    const all = textOf('page.js') + textOf('page.css')
    const outside = all.match(/(?:https?:)?\/\/(?!www\.w3\.org\/)[a-z0-9-]+\.[a-z]{2,}/gi) ?? []
    assert.deepEqual(outside, [])
    const code = all.match(
      /@import|url\((?!["'`]?(?:data:|#)).{9}|\b(?:import|eval|Function)\(.{9}/g,
    )
    assert.deepEqual(code, null)
  })
})

test('nothing of the page is markup made of text', () => {
  const source = join(top, 'src/console/page')
  const found = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .filter((name) =>
      /dangerouslySetInnerHTML|\.(inner|outer)HTML|insertAdjacentHTML|document\.write|DOMParser/.test(
        readFileSync(join(source, name), 'utf8'),
      ),
    )
  assert.deepEqual(found, [])
})

const now_ms = Date.UTC(2026, 0, 31, 8, 5, 12)

// prettier-ignore
const said: readonly (readonly [string, string])[] = [
  [countText(0), '0'],
  [countText(1234567), '1\u202f234\u202f567'],
  [rateText(0.44), '0.4'],
  [rateText(18234.5), '18\u202f235'],
  [durationText(-5), '0 s'],
  [durationText(59_999), '59 s'],
  [durationText(200_000), '3 min 20 s'],
  [durationText(3_600_000), '1 h'],
  [durationText(187_200_000), '2 d 4 h'],
  [agoText(now_ms - 1_999, now_ms), 'now'],
  [agoText(now_ms - 200_000, now_ms), '3 min ago'],
  [agoText(now_ms + 7_300_000, now_ms), 'in 2 h'],
  [dueText(now_ms + 1, now_ms), 'in 1 s'],
  [dueText(now_ms + 200_000, now_ms), 'in 3 min 20 s'],
  [dueText(now_ms - 500, now_ms), 'now'],
  [dueText(now_ms - 4_000, now_ms), 'late by 4 s'],
  [bytesText(999), '999 bytes'],
  [bytesText(1_500), '1.5 kB'],
  [bytesText(212_400_000_000), '212 GB'],
  [exactText(8.64e15 + 1), '8640000000000001'],
]
for (const [text, expected] of said) test(`says: ${expected}`, () => assert.equal(text, expected))

test('an exact time is of the time zone of the reader', () => {
  const date = new Date(now_ms)
  assert.match(exactText(now_ms), /^2026-0[12]-\d\d \d\d:\d\d:12\.000$/)
  assert.equal(new Date(exactText(now_ms).replace(' ', 'T')).getTime(), date.getTime())
})

const well: Health = {
  ok: true,
  checks: { open: { ok: true }, commit: { ok: true }, disk: { ok: true }, key: { ok: true } },
  version: '1.0.0',
  uptime_s: 60,
  commit_ms: { p50: 0.8, p99: 3 },
  ops_per_s: 5,
  queue: { ops: 0, bytes: 0 },
  due_lag_ms: 0,
  jobs: { in_flight: 0, waiting: 0 },
  disk_free_bytes: 5e10,
  file_bytes: 1e6,
  certificates_until_ms: { http: now_ms + 90 * 86_400_000 },
}
const bad = (reason: string) => ({ ok: false, reason })

/** [what is otherwise, the rows that are not fine: name, word, and what helps has this in it] */
// prettier-ignore
const troubles: readonly (readonly [
  Partial<Health>,
  readonly (readonly [string, string, string])[],
])[] = [
  [{}, []],
  [
    { checks: { disk: { ok: true, reason: 'the disk hangs' } } },
    [['Disk', 'slow', 'The disk hangs.']],
  ],
  [{ checks: { commit: bad('the disk hangs') } }, [['Commits', 'wrong', 'The disk hangs.']]],
  [
    { checks: { commit: bad('not tried'), disk: bad('7 bytes are free') } },
    [
      ['Commits', 'wrong', 'disk is full'],
      ['Disk', 'full', '7 bytes are free.'],
    ],
  ],
  [
    { checks: { commit_log: bad('its database is away') } },
    [['Commits', 'wrong', 'Its database is away.']],
  ],
  [{ commit_ms: { p50: 90, p99: 400 } }, [['Commits', 'slow', 'slow to sync']]],
  [{ checks: { queue: bad('full') } }, [['Queue', 'full', 'callers retry']]],
  [{ checks: { background: bad('a bug') } }, [['Timers', 'stopped', 'A bug.']]],
  [{ due_lag_ms: 9_000 }, [['Timers', 'late', 'catches up']]],
  [{ disk_free_bytes: 1e9 }, [['Disk', 'low', 'Free disk space']]],
  [
    { certificates_until_ms: { http: now_ms + 1e12, grpc: now_ms + 86_400_000 } },
    [['Certificates', 'ends soon', 'conveyor certs']],
  ],
  [
    { certificates_until_ms: { http: now_ms - 1 } },
    [['Certificates', 'ended', 'conveyor certs init']],
  ],
  [{ key_problem: 'the key file is gone' }, [['Key of secrets', 'wrong', 'the key file is gone']]],
  [
    { checks: { key: { ok: true, reason: 'the key is not kept' } } },
    [['Key of secrets', 'look', 'the key is not kept']],
  ],
  [{ checks: { moon: bad('it is full') } }, [['moon', 'wrong', 'It is full.']]],
]
for (const [given, expected] of troubles) {
  test(`health: ${JSON.stringify(given)}`, () => {
    const rows = healthRows({ ...well, ...given }, now_ms)
    const found = rows.filter(({ state }) => state !== 'fine')
    assert.deepEqual(
      found.map(({ name, state, word }) => [name, word ?? state]),
      expected.map(([name, word]) => [name, word]),
    )
    for (const [at, [, , helps]] of expected.entries()) {
      assert.ok(found[at]?.helps?.includes(helps), found[at]?.helps)
    }
    assert.ok(rows.every(({ state, helps }) => (state === 'fine') === (helps === undefined)))
  })
}
