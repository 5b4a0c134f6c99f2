/**
 * `serve --backup-to` and `restore --from` as commands: a killed server loses nothing that was
 * shipped, each moment opens alone, and a target with missing, swapped, cut or altered parts, or
 * without the moment, is refused with a sentence and leaves no file.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openEngine } from '../src/open.ts'
import { run } from './support/cli-run.ts'
import { codePath } from './support/package-folder.ts'
import { is_slow } from './support/short-run.ts'
import { quickFolder } from './support/store-folder.ts'

let folder: string
let files = 0
const newPath = (): string => join(folder, String(files++))
/** The long mode is CONVEYOR_BACKUP_KILLS=500. */
const kills = Number(process.env.CONVEYOR_BACKUP_KILLS ?? (is_slow ? 8 : 2))

let target: string
let path: string
/** Of the frames, and of the snapshot. */
let [parts, snapshot]: [string[], string] = [[], '']
let last_seq = 0

const at = (folder: string, name: string): string => join(folder, name)

after(() => rm(folder, { recursive: true, force: true }))
before(async () => {
  folder = await quickFolder('conveyor-backups-restore-')
  ;[target, path] = [newPath(), newPath()]
  mkdirSync(target)
  const engine = await openEngine(path, { backup_to: target, backup_lag_ms: 20, background: false })
  const { id } = await engine.users.add()
  for (let n = 0; n < 100 || names().every((name) => !name.endsWith('/end')); n++) {
    if (n === 0) await engine.users.add()
    else await engine.users.rotate(id)
    await pause(10)
  }
  for (let n = 0; n < 30; n++) {
    await engine.users.rotate(id)
    await pause(10)
  }
  await engine.close()
  parts = names().filter((name) => name.includes('/frames-'))
  snapshot = names().find((name) => name.endsWith('/chunk-00000001')) ?? ''
  last_seq = Number(parts.at(-1)?.split('-')[2])
})

function names(): string[] {
  return readdirSync(target, { recursive: true, encoding: 'utf8' }).sort()
}

const middle = (): string => parts.at(-8) as string
const other = (): string => parts.at(-6) as string
const change = (file: string, change: (bytes: Buffer) => Buffer): void =>
  writeFileSync(file, change(readFileSync(file)))
const flip = (bytes: Buffer): Buffer => {
  const [at] = [Math.floor(bytes.length / 2)]
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  return bytes
}

/** [what has happened to the target, how, the arguments, the sentence] */
const rows: readonly (readonly [string, (folder: string) => void, string, RegExp])[] = [
  ['a missing part', (to) => rmSync(at(to, middle())), '--latest', /parts are missing there/],
  [
    'a part cut short',
    (to) => change(at(to, middle()), (all) => all.subarray(0, 64)),
    '--latest',
    /is damaged/,
  ],
  ['an empty part', (to) => writeFileSync(at(to, middle()), ''), '--latest', /is damaged/],
  ['a flipped bit', (to) => change(at(to, middle()), flip), '--latest', /is damaged/],
  [
    'swapped parts',
    (to) => {
      const one = readFileSync(at(to, middle()))
      cpSync(at(to, other()), at(to, middle()))
      writeFileSync(at(to, other()), one)
    },
    '--latest',
    /has the contents of another part or file/,
  ],
  [
    'a missing chunk',
    (to) => rmSync(at(to, snapshot)),
    '--latest',
    /chunk-00000001 in .* is missing/,
  ],
  ['a flipped bit of a chunk', (to) => change(at(to, snapshot), flip), '--latest', /is damaged/],
  [
    'a snapshot without its end',
    (to) => rmSync(at(to, snapshot.replace('chunk-00000001', 'end'))),
    '--latest',
    /no complete snapshot yet/,
  ],
  [
    'a damaged beginning',
    (to) => writeFileSync(at(to, '00000001/begin'), 'x'),
    '--latest',
    /begin in .* is damaged/,
  ],
  [
    'a later version',
    (to) =>
      change(at(to, '00000001/begin'), (all) =>
        Buffer.from(all.toString().replace('"format":1', '"format":2')),
      ),
    '--latest',
    /was written by a later version/,
  ],
  [
    'parts of another file',
    (to) => {
      const begin = readFileSync(at(to, '00000001/begin'), 'utf8')
      mkdirSync(at(to, '00000002'))
      const log = /"log":"([0-9a-f]{16})"/
      writeFileSync(at(to, '00000002/begin'), begin.replace(log, '"log":"0000000000000000"'))
    },
    '--latest',
    /has parts of 2 files/,
  ],
  [
    'an empty folder',
    (to) => rmSync(at(to, '00000001'), { recursive: true }),
    '--latest',
    /has no backup/,
  ],
  ['no folder', (to) => rmSync(to, { recursive: true }), '--latest', /cannot be read \(ENOENT/],
  [
    'a moment before it begins',
    () => {},
    '--to 2020-01-01T00:00:00Z',
    /begins at 20.*; name a later time/,
  ],
  ['a moment in the future', () => {}, '--to 2999-01-01T00:00Z', /is in the future; --latest/],
  ['a position before it begins', () => {}, '--to-position 1', /begins with position \d+, at/],
  [
    'a position after its end',
    () => {},
    '--to-position 999999',
    /ends with position \d+; --latest/,
  ],
  ['no moment', () => {}, '', /--from takes one of --latest, --to TIME, --to-position N/],
  ['two moments', () => {}, '--latest --to-position 5', /--from takes one of/],
  ['no time', () => {}, '--to yesterday', /--to takes a time such as/],
]

for (const [what, breakIt, args, sentence] of rows) {
  test(`${what} is refused, and nothing is written`, async () => {
    const [to, db] = [newPath(), newPath()]
    cpSync(target, to, { recursive: true })
    breakIt(to)
    for (const more of [['--db', db], ['--dry-run']]) {
      const { exit, err } = await run([
        'restore',
        '--from',
        to,
        ...args.split(' ').filter(Boolean),
        ...more,
      ])
      assert.notEqual(exit, 0)
      assert.match(err, sentence)
      assert.equal(existsSync(db), false)
    }
  })
}

test('a restored moment opens alone, and has what was there then', async () => {
  const db = newPath()
  const checked = await run(['restore', '--from', target, '--latest', '--dry-run', '--json'])
  assert.equal(checked.exit, 0, checked.err)
  assert.equal(JSON.parse(checked.out).position, last_seq)
  const { exit, err, out } = await run([
    ...['restore', '--from', target, '--to-position', String(last_seq - 3), '--db', db],
    ...['--key-file', `${path}.key`, '--json'],
  ])
  assert.equal(exit, 0, err)
  const { position, at_ms, users } = JSON.parse(out)
  assert.deepEqual([position, users], [last_seq - 3, 2])
  const engine = await openEngine(db)
  assert.equal((await engine.users.list()).length, 2)
  await engine.close()
  const by_time = await run([
    ...['restore', '--from', target, '--to', new Date(at_ms).toISOString(), '--dry-run', '--json'],
  ])
  assert.ok(JSON.parse(by_time.out).position >= position, by_time.err)
  const taken = await run(['restore', '--from', target, '--latest', '--db', db])
  assert.match(taken.err, /exists; --replace moves it aside/)
})

test('a restored file does not continue in the target that it came from', async () => {
  const db = newPath()
  const key = ['--key-file', `${path}.key`]
  const made = await run(['restore', '--from', target, '--latest', '--db', db, ...key])
  assert.equal(made.exit, 0, made.err)
  const seen: string[] = []
  const log = (line: unknown): void => void seen.push(JSON.stringify(line))
  const logger = { debug() {}, info() {}, warn: log, error: log }
  const engine = await openEngine(db, { backup_to: target, backup_lag_ms: 20, logger })
  for (let n = 0; n < 500 && seen.length === 0; n++) await pause(10)
  await engine.close()
  assert.match(seen.join(), /backup_refused.*has the backup of another data file/)
})

test('a target is listed and verified, and old parts go once the rest is whole', async () => {
  const [to, path] = [newPath(), newPath()]
  mkdirSync(to)
  const count = (end: string): number =>
    readdirSync(to, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(end))
      .length
  // A closed file that goes on in an empty folder begins with a snapshot there, and so does each
  // tenure after a change that was not shipped.
  for (let tenure = 0; tenure < 3; tenure++) {
    const engine = await openEngine(path, { backup_to: to, backup_lag_ms: 20, background: false })
    await engine.users.add()
    for (let n = 0; n < 500 && count('/end') <= tenure; n++) await pause(10)
    await engine.users.add()
    await engine.close()
    const limits = { checkpoint_bytes: 1 }
    const alone = await openEngine(path, { background: false, limits })
    for (let n = 0; n < 20; n++) {
      await alone.users.add()
      await pause(5)
    }
    await alone.close()
  }
  assert.equal(count('/end'), 3)
  const listed = await run(['backups', 'list', to, '--json'])
  const rows = listed.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.equal(rows.length, 3)
  assert.ok(rows[0].to_position < rows[1].snapshot, 'what was not shipped is a gap')
  const gaps = await run(['backups', 'verify', to])
  assert.equal(gaps.exit, 0)
  assert.match(gaps.out, /parts are missing between position/)
  assert.match((await run(['backups', 'prune', to])).err, /say what stays/)
  const kept = await run(['backups', 'prune', to, '--keep', '1', '--keep-days', '1', '--json'])
  assert.equal(JSON.parse(kept.out).removed, 0, 'all are of this day')
  const chunk = readdirSync(to, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('/chunk-00000001'))
    .sort()
    .at(-1) as string
  const whole = readFileSync(at(to, chunk))
  change(at(to, chunk), flip)
  const damaged = await run(['backups', 'verify', to])
  assert.equal(damaged.exit, 5)
  assert.match(damaged.out, /chunk-00000001 in .* is damaged/)
  const refused = await run(['backups', 'prune', to, '--keep', '1'])
  assert.match(refused.err, /nothing was removed, because what stays is not whole/)
  assert.equal(count('/end'), 3)
  writeFileSync(at(to, chunk), whole)
  const pruned = await run(['backups', 'prune', to, '--keep', '1', '--json'])
  assert.equal(pruned.exit, 0, pruned.err)
  assert.ok(JSON.parse(pruned.out).removed > 4)
  assert.equal(count('/end'), 1)
  assert.equal(count('/begin'), 1)
  assert.equal((await run(['backups', 'verify', to])).exit, 0)
  const restored = await run(['restore', '--from', to, '--latest', '--dry-run', '--json'])
  assert.equal(JSON.parse(restored.out).position, rows[2].to_position)
  const goes_on = await openEngine(path, { backup_to: to, backup_lag_ms: 20, background: false })
  for (let n = 0; n < 500 && count('/end') < 2; n++) await pause(10)
  await goes_on.close()
  assert.equal((await run(['restore', '--from', to, '--latest', '--dry-run'])).exit, 0)
})

/** [the options, the sentence] */
const refused: readonly (readonly [string, RegExp])[] = [
  ['--backup-lag-ms 5', /--backup-lag-ms is for --backup-to FOLDER/],
  ['--backup-to F --backup-lag-ms 0', /--backup-lag-ms is at least 1/],
  ['--backup-to F --commit-log postgres://u@h/d', /--backup-to is for a data file of its own/],
  ['--backup-to ftp://host/x', /is no backup target; name a folder/],
]

for (const [args, sentence] of refused) {
  test(`serve ${args} is refused`, async () => {
    const { exit, err } = await run([
      'serve',
      '--http',
      '127.0.0.1:0',
      '--db',
      newPath(),
      ...args.split(' '),
    ])
    assert.notEqual(exit, 0)
    assert.match(err, sentence)
  })
}

test(`after ${kills} kills, a restore has all that was acknowledged and shipped, in order`, async () => {
  const [to, db] = [newPath(), newPath()]
  mkdirSync(to)
  let next = 0
  for (let round = 0; round < kills; round++) {
    const child = spawn(process.execPath, [
      ...['--import', 'tsx', codePath('test/support/shipping-child')],
      ...[db, to, String(next)],
    ])
    const ended = once(child, 'exit')
    const acks: { readonly n: number; readonly at_ms: number }[] = []
    const lines = createInterface(child.stdout)
    lines.on('line', (line) => {
      acks.push({ n: Number(line), at_ms: performance.now() })
      // Before the first snapshot there is nothing to restore.
      const is_begun = () =>
        readdirSync(to, { recursive: true }).some((name) => /end$/.test(String(name)))
      if (acks.length >= 200 + 150 * (round % 4) && is_begun()) child.kill('SIGKILL')
    })
    await ended
    const killed_ms = performance.now()
    assert.ok(acks.length > 100, 'the child has worked')
    const restored = newPath()
    const made = await run(['restore', '--from', to, '--latest', '--db', restored])
    assert.equal(made.exit, 0, made.err)
    const engine = await openEngine(restored, { background: false })
    let found = 0
    while ((await engine.task({ conv_id: 7, ref: `r${found}` })) !== undefined) found++
    // In order and without a hole: no task comes after the first that is missing.
    const { total } = await engine.tasks.count({ conv_id: 7 })
    assert.equal(total, found)
    await engine.close()
    const last = acks.at(-1)?.n ?? 0
    // One create may be durable and unanswered.
    assert.ok(found <= last + 2, `${found} of ${last}`)
    const due = acks.findLast(({ at_ms }) => at_ms < killed_ms - 1_000)?.n ?? 0
    assert.ok(found >= due, `${found} of ${due} that are a second old`)
    next = last + 1
  }
})
