/**
 * The verbs of schedules on a file that they open themselves: what they print for people and for
 * programs, their exit codes, and what they refuse.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { callback_process } from './support/cli-process.ts'
import { run, tempFolder } from './support/cli-run.ts'

const folder = tempFolder()
const db = join(folder.path, 'a.lmdb')
after(() => folder.remove())
before(async () => {
  const definition = join(folder.path, 'order.conv.json')
  writeFileSync(definition, JSON.stringify(callback_process))
  assert.equal((await run(['process', 'import', definition, '--db', db])).exit, 0)
})

const add = ['schedule', 'add', 'nightly', '1234', '--cron', '0 2 * * *']
const kyiv = [...add, '--timezone', 'Europe/Kyiv', '--data', '{"n":1.10,"card":"4111"}']
const zoned = String.raw`\d{4}-\d\d-\d\d 02:00:00 Europe/Kyiv`
const utc = String.raw`\d{4}-\d\d-\d\d \d\d:00:00Z`
const state = { conv_id: '1234', timezone: 'Europe/Kyiv', catch_up: 'latest', cron: '0 2 * * *' }

/** [the arguments, the exit, what is printed on either stream: text, or members of the JSON] */
const rows: readonly (readonly [readonly string[], number, RegExp | object])[] = [
  [kyiv, 0, new RegExp(`^schedule nightly: created, due next ${zoned} \\(${utc}\\)\n$`)],
  [[...kyiv, '--json'], 0, { id: 'nightly', state: 'unchanged' }],
  [['schedule', 'list', '--json'], 0, { ...state, id: 'nightly', state: 'active' }],
  [
    ['schedule', 'list'],
    0,
    new RegExp(`^SCHEDULE .*\nnightly +1234 .* in Europe/Kyiv +${zoned} +${utc} +-\n$`),
  ],
  [['schedule', 'show', 'nightly', '--json'], 0, { ...state, data: { n: 1.1, card: '***' } }],
  [['schedule', 'show', 'nightly'], 0, /^data +\{"n":1\.10,"card":"\*\*\*"\}$/m],
  [['schedule', 'pause', 'nightly', '--json'], 0, { id: 'nightly', paused: true }],
  [['schedule', 'show', 'nightly'], 0, /^state +paused$/m],
  [['schedule', 'resume', 'nightly'], 0, /^$/],
  [['schedule', 'run', 'nightly'], 0, /^[0-9a-f]{24}\n$/],
  [['schedule', 'run', 'nightly', '--json'], 0, { proc: 'ok' }],
  [[...add, '--catch-up', 'none'], 0, /: updated, due next \S+ 02:00:00Z\n$/],
  [
    ['schedule', 'add', 'once', '1234', '--at', '2099-01-01T02:00:00+02:00'],
    0,
    / 2099-01-01 00:00:00Z\n$/,
  ],
  [['schedule', 'add', 'often', '1234', '--every', '15m', '--due-key', 'due'], 0, /: created/],
  [['schedule', 'show', 'often'], 0, /^when +every 900 s$/m],
  [['schedule', 'remove', 'often', '--json'], 0, { id: 'often', removed: true }],
  [['schedule', 'show', 'often'], 1, /there is no schedule "often"/],
  [[...add, '--every', '1h'], 2, /one of --cron, --every and --at says when/],
  [['schedule', 'add', 'x', '1234'], 2, /one of --cron, --every and --at says when/],
  [['schedule', 'add', 'x', '1234', '--at', '2099-01-01T02:00:00'], 2, /a time and its offset/],
  [['schedule', 'add', 'x', '1234', '--at', '2020-01-01T02:00:00Z'], 1, /at_ms: \d+ is past/],
  [
    ['schedule', 'add', 'x', '1234', '--every', '0s'],
    1,
    /every_ms: 0 is no whole number from 1000 on/,
  ],
  [['schedule', 'add', 'x', '1234', '--cron', '0 0 30 2 *'], 1, /is never due/],
  [[...add, '--timezone', 'Moon'], 1, /timezone: "Moon" is no time zone/],
  [[...add, '--catch-up', 'some'], 2, /--catch-up is one of none, latest, all/],
  [[...add, '--data', '[1]'], 2, /--data is not a JSON object/],
  [['schedule', 'add', 'x', '404', '--every', '1h'], 1, /404 does not exist/],
]

for (const [args, exit, wanted] of rows) {
  test(args.join(' '), async () => {
    const ran = await run([...args, '--db', db])
    assert.equal(ran.exit, exit, ran.err)
    if (wanted instanceof RegExp) assert.match(ran.out + ran.err, wanted)
    else assert.deepEqual({ ...JSON.parse(ran.out), ...wanted }, JSON.parse(ran.out))
  })
}

test('the schedules are sound, and so are the tasks that were run by hand', async () => {
  assert.equal((await run(['check', '--db', db])).exit, 0)
})
