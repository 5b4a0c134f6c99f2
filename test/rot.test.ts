/**
 * Flipped bits, row by row, where test/proof/rot.ts flips any: what is refused, what is named, and
 * which sums of pages do not count.
 */
import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { keyText } from '../src/codec/key-text.ts'
import { atNodeKey, type Key, taskKey } from '../src/codec/keys.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/index.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { frameOf } from '../src/store/commit-log/checkpoint.ts'
import { openDataFile } from '../src/store/data-file.ts'
import { callback_process } from './support/cli-process.ts'
import { run } from './support/cli-run.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { quickPaths } from './support/store-folder.ts'
import { withEvents } from './support/told-events.ts'

const newPath = quickPaths('conveyor-rot-test-')
const conv_id = 1234

/** A closed file with one task, whose data is `text`. */
async function filled(): Promise<{ readonly path: string; readonly obj_id: string }> {
  const path = newPath()
  const engine = await openEngine(path)
  await engine.processes.put(callback_process)
  const { obj_id = '' } = await engine.create({ conv_id, ref: 'one', data: { text: 'some text' } })
  // A close leaves so little behind the pages, where frames have checksums of their own.
  await engine.backup(newPath())
  await engine.close()
  return { path, obj_id }
}

/**
 * Flips a bit of the byte after each place in the file where these bytes are, also in old pages; as a
 * disk does, which leaves the time of the last write as it was.
 */
function flipAfter(path: string, bytes: string, more = 0, bit = 4): void {
  const { atimeMs, mtimeMs } = statSync(path)
  const file = readFileSync(path)
  for (let at = file.indexOf(bytes, 0, 'latin1'); at !== -1; ) {
    const flipped = at + bytes.length + more
    file[flipped] = (file[flipped] as number) ^ bit
    at = file.indexOf(bytes, flipped + 1, 'latin1')
  }
  writeFileSync(path, file)
  utimesSync(path, atimeMs / 1_000, Math.floor(mtimeMs) / 1_000 + 0.000_5)
}

async function breachesOf(engine: Engine): Promise<readonly string[]> {
  return (await engine.check()).breaches
}

describe('a task whose record is damaged is named, and can be canceled', () => {
  const rows: readonly (readonly [string, (path: string, obj_id: string) => void])[] = [
    ['in its data', (path) => flipAfter(path, '"text":"so')],
    ['in its status', (path, obj_id) => flipAfter(path, taskKey(obj_id), 1, 1)],
  ]
  for (const [where, damage] of rows) {
    it(where, async () => {
      const { path, obj_id } = await filled()
      damage(path, obj_id)
      await using engine = await openEngine(path)
      await assert.rejects(engine.task({ conv_id, ref: 'one' }), { code: 'task_damaged' })
      assert.deepEqual(await breachesOf(engine), [`task ${obj_id} is damaged`])
      const { proc, was } = await engine.tasks.cancel({ conv_id, ref: 'one' })
      assert.deepEqual([proc, was], ['ok', { status: 'delayed', node_id: 'wait' }])
      assert.deepEqual(await breachesOf(engine), [])
      assert.equal((await engine.create({ conv_id, ref: 'one', data: {} })).proc, 'ok')
    })
  }
})

it('a file with a damaged key is refused, and the sentence names the keys', async () => {
  const { path, obj_id } = await filled()
  flipAfter(path, atNodeKey('1234', 'wait', obj_id), -1)
  await assert.rejects(openEngine(path), {
    code: 'not_a_database',
    message: /page \d+ is damaged: in it .*; run `npx conveyor restore BACKUP`$/,
  })
})

it('a page that is damaged while the file is open is named by check and by backup', async () => {
  const { path, obj_id } = await filled()
  await using engine = await openEngine(path)
  flipAfter(path, atNodeKey('1234', 'wait', obj_id), -1)
  const [breach = ''] = await breachesOf(engine)
  assert.match(breach, /page \d+ is damaged/)
  const target = newPath()
  const made = await engine.backup(target)
  assert.deepEqual(made.damage, { count: 1, says: [breach] })
  assert.equal(made.path, `${target}.damaged`)
  assert.ok(!existsSync(target))
  await assert.rejects(openEngine(made.path), { code: 'not_a_database' })
  flipAfter(path, 'x')
  rmSync(path)
})

it('a backup of a damaged task is kept under a name that says so', async () => {
  const { path, obj_id } = await filled()
  flipAfter(path, '"text":"so')
  const target = newPath()
  await using engine = await openEngine(path)
  const [made, events] = await withEvents(() => engine.backup(target))
  assert.deepEqual(made.damage, {
    count: 1,
    says: [`task ${obj_id} of process ${conv_id} is damaged`],
  })
  assert.deepEqual(
    events.map(({ event }) => event).filter((event) => event.startsWith('backup')),
    ['backup_begun', 'backup_damaged'],
  )
  // The rest of it can be read, the task is damaged there too.
  await using copy = await openEngine(made.path)
  assert.deepEqual(await breachesOf(copy), [`task ${obj_id} is damaged`])
  assert.equal((await copy.create({ conv_id, ref: 'two', data: {} })).proc, 'ok')
  await assert.rejects(engine.backup(target), { code: 'not_possible', message: /damaged exists/ })
})

it('conveyor backup of a damaged task exits 5 and names it; its copy is not restored', async () => {
  const { path, obj_id } = await filled()
  flipAfter(path, '"text":"so')
  const target = newPath()
  const made = await run(['backup', target, '--db', path])
  assert.equal(made.exit, 5)
  assert.match(made.out, /are damaged, 1 of them:\ntask \w+ of process 1234 is damaged\n/)
  const restored = await run(['restore', `${target}.damaged`, '--db', newPath(), '--without-key'])
  assert.equal(restored.exit, 1)
  assert.match(restored.err, new RegExp(`is damaged: 1 breaches, the first: task ${obj_id}`))
})

const page_bytes = 4096

/** A change of both marks with the checksums of the last commit. */
function eachMark(path: string, change: (mark: Buffer) => void): void {
  const file = readFileSync(path)
  for (const at of [512, page_bytes + 512]) change(file.subarray(at, at + 512))
  writeFileSync(path, file)
}

describe('a file keeps the checksums of its pages', () => {
  const rows: readonly (readonly [string, (path: string, backup: string) => void])[] = [
    ['after a clean close', () => {}],
    ['as a copy with another time', (path) => utimesSync(path, 1, 1)],
    [
      'as a backup that another tool put in its place',
      (path, backup) => copyFileSync(backup, path),
    ],
    ['with zeros in place of its marks', (path) => eachMark(path, (mark) => mark.fill(0))],
    ['with a mark that is damaged', (path) => eachMark(path, (mark) => mark.fill(7, 30, 40))],
  ]
  for (const [what, change] of rows) {
    it(what, async () => {
      const { path } = await filled()
      const backup = newPath()
      const engine = await openEngine(path)
      await engine.backup(backup)
      await engine.close()
      change(path, backup)
      const again = await openEngine(path)
      assert.deepEqual(await breachesOf(again), [])
      await again.close()
      flipAfter(path, 'format', 0)
      await assert.rejects(openEngine(path), { code: 'not_a_database' })
    })
  }
})

describe('a large file is read page by page until a thread has compared all of it', () => {
  const large = { quick_bytes: 0 }
  const keyOf = (n: number): Key => `\x7f${n.toString().padStart(5, '0')}`
  const textOf = (n: number): Buffer =>
    Buffer.from(`value ${n} ${'x'.repeat(n % 7 === 0 ? 9_000 : 40)}`)
  const count = 2_000

  async function madeFile(): Promise<string> {
    const path = newPath()
    const tree = await openInProcess(path)
    for (let from = 0; from < count; from += 500) {
      tree.commit((writer) => {
        for (let n = from; n < from + 500; n++) writer.put(keyOf(n), textOf(n))
      })
    }
    await tree.close()
    return path
  }

  /** The page of a key, or the first page of its value. */
  function pageOf(file: Buffer, n: number): number {
    const at = file.indexOf(`value ${n} `, 0, 'latin1')
    return Math.floor(at / page_bytes)
  }

  it('each key has its value before and after, in both directions', async () => {
    const tree = await openDataFile(await madeFile(), large)
    const all = Array.from({ length: count }, (_, n) => [keyOf(n), textOf(n).toString()])
    const read = (from: Key, to: Key, reverse: boolean): unknown[] =>
      [...tree.range(from, to, reverse)].map(({ key, value }) => [key, value.toString()])
    for (const is_done of [false, true]) {
      if (is_done) await tree.verified()
      assert.equal(tree.verified() === undefined, is_done)
      assert.deepEqual(read('', '\xff', false), all)
      assert.deepEqual(read('', '\xff', true), [...all].reverse())
      assert.deepEqual(read(keyOf(7), keyOf(9), false), all.slice(7, 9))
      assert.deepEqual(read(`${keyOf(7)}x`, `${keyOf(9)}x`, true), [all[9], all[8]])
      assert.equal(tree.get(keyOf(count)), undefined)
      for (const n of [0, 1, 7, 999, count - 1]) assert.deepEqual(tree.get(keyOf(n)), textOf(n))
    }
    await tree.write({ frames: [frameOf(changesOf([[keyOf(0), null]]))] })
    assert.equal(tree.get(keyOf(0)), undefined)
    assert.deepEqual(await tree.damage(), [])
    await tree.close()
  })

  const swap = (file: Buffer, one: number, other: number): void => {
    const kept = Buffer.from(file.subarray(one * page_bytes, (one + 1) * page_bytes))
    file.copy(file, one * page_bytes, other * page_bytes, (other + 1) * page_bytes)
    kept.copy(file, other * page_bytes)
  }
  const zero = (file: Buffer, page: number): void =>
    void file.fill(0, page * page_bytes, (page + 1) * page_bytes)
  const rows: readonly (readonly [string, readonly number[], (file: Buffer) => void])[] = [
    ['zeros', [200], (file) => zero(file, pageOf(file, 200))],
    ['swapped pages', [200, 801], (file) => swap(file, pageOf(file, 200), pageOf(file, 801))],
    ['a bit of a value', [201], (file) => void file.write('w', file.indexOf('value 201 '))],
    ['zeros in a large value', [700], (file) => zero(file, pageOf(file, 700) + 1)],
  ]
  for (const [what, damaged, change] of rows) {
    it(`${what}: refused where they are, and by the thread`, async () => {
      const path = await madeFile()
      const file = readFileSync(path)
      change(file)
      writeFileSync(path, file)
      const tree = await openDataFile(path, large)
      const expected = {
        code: 'store_failed',
        message: /page \d+ is damaged: (in it key|it cannot be read).*BACKUP`$/,
      }
      for (const n of damaged) assert.throws(() => tree.get(keyOf(n)), expected)
      assert.throws(() => [...tree.range('', '\xff', false)], expected)
      assert.deepEqual(tree.get(keyOf(1_500)), textOf(1_500))
      await assert.rejects(async () => tree.verified(), expected)
      assert.deepEqual(tree.get(keyOf(1_500)), textOf(1_500))
      await tree.close()
    })
  }

  it('an engine fails as one that cannot write, once the thread finds the damage', async () => {
    const { path } = await filled()
    const tree = await openInProcess(path)
    const filler = Buffer.alloc(1024 * 1024, 'filler')
    tree.commit((writer) => {
      for (let n = 0; n < 66; n++) writer.put(keyOf(n), filler)
    })
    await tree.close()
    const handle = await open(path, 'r+')
    await handle.write('wrong', statSync(path).size / 2)
    await handle.close()
    let emitFailed = (_failure: Error): void => {}
    const failed = new Promise<Error>((resolve) => {
      emitFailed = resolve
    })
    const says = /page \d+ is damaged: in it key .*; run `npx conveyor restore/
    const opened = await openEngine(path, { onFailure: emitFailed }).catch((error: Error) => error)
    // The thread may be faster than the opening.
    if (opened instanceof Error) return void assert.match(opened.message, says)
    await using engine = opened
    assert.match((await failed).message, says)
    await assert.rejects(engine.create({ conv_id, ref: 'two', data: {} }), { code: 'store_failed' })
  })
})

it('keys as operators read them', () => {
  const obj_id = '5cf67011094bab1b9a00a31d'
  const rows: readonly (readonly [Key, string])[] = [
    [taskKey(obj_id), `task ${obj_id}`],
    [atNodeKey('1234', 'wait', obj_id), `at_node ${obj_id}`],
    ['\x09\x31\x00order-1', 'ref "order-1" of 1'],
    ['\xfe\x00\x01broken', 'key broken'],
  ]
  for (const [key, expected] of rows) assert.equal(keyText(key), expected)
})
