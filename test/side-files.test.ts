/**
 * One data file: what lies beside it while it is open, after a close, after a kill and the opening
 * that follows, after a backup, and after a look at a closed file. The table of src/cli/README.md
 * names each file and says when it is there; no other may be.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openEngine } from '../src/open.ts'
import { callback_process } from './support/cli-process.ts'
import { run } from './support/cli-run.ts'
import { codePath, node_flags, tempFolder, top } from './support/package-folder.ts'

const folder = tempFolder()
after(() => folder.remove())
const runtime_dir = join(folder.path, 'run')
const options = { admin: true, runtime_dir } as const
const env = { CONVEYOR_RUNTIME_DIR: runtime_dir }

/** The ends of the names in the table, by when they are there. */
const documented = ((): ReadonlyMap<string, string> => {
  const page = readFileSync(join(top, 'src/cli/README.md'), 'utf8')
  const [, table = ''] = /<!-- table: files -->\n([\s\S]*?)\n\n/.exec(page) ?? []
  const rows = table.split('\n').slice(2)
  return new Map(
    rows.flatMap((row) => {
      const [names = '', when = ''] = row.split(' | ')
      const ends = [...names.matchAll(/`(?:tasks\.lmdb)?([^`]*)`/g)]
      return ends.map(([, end = '']) => [end, when] as const)
    }),
  )
})()

const endsOf = (...when: string[]): string[] =>
  [...documented].flatMap(([end, is]) => (when.includes(is) ? [end] : []))

/** A folder of its own, with the names in it as the ends behind that of the data file. */
function place(name: string): { readonly db: string; ends(): string[] } {
  const path = join(folder.path, name)
  mkdirSync(path)
  return {
    db: join(path, 'tasks.lmdb'),
    ends: () =>
      readdirSync(path)
        .map((one) => one.replace('tasks.lmdb', ''))
        .toSorted(),
  }
}

const beside = (found: readonly string[], allowed: readonly string[]): string[] =>
  found.filter((end) => !allowed.includes(end))

const closed = (): string[] => endsOf('always')
const closed_with_secrets = (): string[] => endsOf('always', 'with secrets')
const open_with_secrets = (): string[] => endsOf('always', 'with secrets', 'while open')

test('the table of files is read', () => {
  assert.deepEqual(endsOf('while open'), ['-log-0', '-log-1', '-lock', '-owner'])
  assert.deepEqual(endsOf('with secrets'), ['.key'])
})

test('while open each file is one of the table; after a close the data is alone, and its key', async () => {
  const { db, ends } = place('secrets')
  const engine = await openEngine(db, options)
  await engine.processes.put(callback_process)
  await engine.users.add()
  await engine.create({ conv_id: 1234, ref: 'a', data: {} })
  assert.deepEqual(beside(ends(), open_with_secrets()), [])
  for (const end of ['', '-lock', '-owner', '-log-0', '.key']) assert.ok(ends().includes(end), end)
  await engine.close()
  assert.deepEqual(beside(ends(), closed_with_secrets()), [])
  const again = await openEngine(db, options)
  assert.deepEqual((await again.task({ conv_id: 1234, ref: 'a' }))?.ref, 'a')
  await again.close()
  assert.deepEqual(beside(ends(), closed_with_secrets()), [])
})

test('a kill leaves what was there while open, and the opening after it clears it away', async () => {
  const { db, ends } = place('killed')
  const script = join(folder.path, 'open.mjs')
  writeFileSync(
    script,
    `import { openEngine } from ${JSON.stringify(pathToFileURL(codePath('src/index')).href)}
    const engine = await openEngine(process.argv[2])
    await engine.processes.put(${JSON.stringify(callback_process)})
    await engine.create({ conv_id: 1234, ref: 'a', data: {} })
    console.log('ready')
    setInterval(() => {}, 1_000)`,
  )
  const child = spawn(process.execPath, [...node_flags, script, db], {
    cwd: top,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'close')
  assert.deepEqual(beside(ends(), endsOf('always', 'while open')), [])
  const left = ends()
  for (const end of ['-lock', '-owner']) assert.ok(left.includes(end), end)
  assert.equal((await run(['doctor', '--db', db], { env })).exit, 0)
  assert.deepEqual(ends(), left, 'doctor changes nothing')
  const engine = await openEngine(db)
  assert.equal((await engine.task({ conv_id: 1234, ref: 'a' }))?.ref, 'a')
  await engine.close()
  assert.deepEqual(beside(ends(), closed()), [])
})

test('a backup is one file, and neither it nor a look at a closed file leaves another', async () => {
  const { db, ends } = place('looked-at')
  const engine = await openEngine(db, options)
  await engine.processes.put(callback_process)
  const served = place('served-backup')
  assert.equal((await run(['backup', served.db, '--db', db], { env })).exit, 0)
  assert.deepEqual(beside(served.ends(), closed()), [])
  assert.deepEqual(beside(ends(), endsOf('always', 'while open')), [])
  await engine.close()
  const after_close = ends()
  const copy = place('closed-backup')
  for (const words of [
    ['check'],
    ['doctor'],
    ['doctor', '--full'],
    ['backup', copy.db],
    ['check'],
  ]) {
    const { exit, err } = await run([...words, '--db', db], { env })
    assert.equal(exit, 0, err)
    assert.deepEqual(ends(), after_close, words.join(' '))
  }
  assert.deepEqual(beside(copy.ends(), closed()), [])
  const opened = await openEngine(copy.db)
  await opened.close()
  assert.deepEqual(beside(copy.ends(), closed()), [])
})

test('an opening that is refused leaves no file beside the data', async () => {
  const { db, ends } = place('refused')
  const engine = await openEngine(db)
  await assert.rejects(openEngine(db), { code: 'file_held' })
  for (const end of ['-lock', '-owner']) assert.ok(ends().includes(end), `${end} of the owner`)
  await engine.close()
  const foreign = place('foreign')
  writeFileSync(foreign.db, 'text')
  await assert.rejects(openEngine(foreign.db), { code: 'not_a_database' })
  assert.deepEqual(foreign.ends(), [''])
})
