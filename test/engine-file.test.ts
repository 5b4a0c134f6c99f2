/**
 * Opening a data file: one owner at a time; files of other programs or formats are refused
 * with a sentence and not changed; a refused open leaves no lock.
 */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { metaKey } from '../src/codec/keys.ts'
import { format } from '../src/engine/file/format.ts'
import { openEngine } from '../src/open.ts'
import { readOwner } from '../src/store/disk/owner-file.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { tasksOf } from './support/tasks-of.ts'

async function inFolder(fn: (folder: string, path: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'conveyor-open-'))
  try {
    await fn(folder, join(folder, 'tasks.lmdb'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

it('a second engine is refused with the owner of the file; the first goes on', () =>
  inFolder(async (_folder, path) => {
    const engine = await openEngine(path)
    const held = { code: 'file_held', message: new RegExp(`held by process ${process.pid};`) }
    for (let n = 0; n < 3; n++) await assert.rejects(openEngine(path), held)
    assert.equal((await readOwner(path))?.pid, process.pid)
    await engine.users.list()
    await engine.close()
    await (await openEngine(path)).close()
  }))

for (const text of ['', 'null', '[]', '"x"', '{"pid":1', '{"pid":"1"}', '{"pid":1,"socket":7}']) {
  it(`an owner record ${JSON.stringify(text)} names nobody`, () =>
    inFolder(async (_folder, path) => {
      const engine = await openEngine(path)
      await writeFile(`${path}-owner`, text)
      assert.equal(await readOwner(path), undefined)
      await assert.rejects(openEngine(path), { code: 'file_held', message: /by another process;/ })
      await engine.close()
    }))
}

/** Writes keys as another program might. */
async function writeKeys(path: string, keys: Readonly<Record<string, string>>): Promise<void> {
  const tree = await openInProcess(path)
  tree.commit((batch) => {
    for (const [key, text] of Object.entries(keys)) batch.put(key, Buffer.from(text))
  })
  await tree.close()
}

// biome-ignore format: a table
const refused: readonly (readonly [string, string, (path: string) => Promise<void>])[] = [
  ['of a later format', 'newer_format',   (path) => writeKeys(path, { [metaKey('format')]: String(format + 1) })],
  ['of an earlier format', 'older_format', (path) => writeKeys(path, { [metaKey('format')]: String(format - 1) })],
  ['of another LMDB user', 'not_a_database', (path) => writeKeys(path, { hello: 'world' })],
  ['of text',           'not_a_database', (path) => writeFile(path, 'hello world, this is no database')],
  ['of noise',          'not_a_database', (path) => writeFile(path, Buffer.alloc(50_000, 7))],
  ['that is a folder',  'not_possible',   async (path) => void (await mkdir(path))],
]

for (const [what, code, make] of refused) {
  it(`a file ${what} is refused with ${code} and not changed`, () =>
    inFolder(async (folder, path) => {
      await make(path)
      const before = what === 'that is a folder' ? '' : await readFile(path)
      for (let n = 0; n < 2; n++) {
        await assert.rejects(openEngine(path), (error: Error & { code: string }) => {
          assert.equal(error.code, code)
          assert.ok(error.message.includes(path), 'the sentence names the file')
          return true
        })
      }
      if (what === 'that is a folder') return
      assert.deepEqual(await readFile(path), before)
      assert.ok(!(await readdir(folder)).includes('tasks.lmdb.key'))
    }))
}

it('a missing folder is refused and not created', () =>
  inFolder(async (folder) => {
    const path = join(folder, 'none', 'tasks.lmdb')
    await assert.rejects(openEngine(path), { code: 'not_possible', message: /folder/ })
    assert.deepEqual(await readdir(folder), [])
  }))

it('an invalid limit is refused, and the file can be opened after that', () =>
  inFolder(async (_folder, path) => {
    for (const limits of [{ ops_max: -1 }, { max_ops: 5 } as object]) {
      const message = new RegExp(Object.keys(limits)[0] ?? '')
      await assert.rejects(openEngine(path, { limits }), { name: 'RangeError', message })
    }
    await (await openEngine(path)).close()
  }))

it('ids, tasks and processes survive reopening, and ids go on ascending', () =>
  inFolder(async (_folder, path) => {
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      await using engine = await openEngine(path)
      const start = { id: 's', obj_type: 1, condition: { logics: [{ type: 'api_callback' }] } }
      const { state } = await engine.processes.put({ obj_id: 1, scheme: { nodes: [start] } })
      assert.equal(state, n === 0 ? 'created' : 'unchanged')
      ids.push((await engine.create({ conv_id: 1, data: {} })).obj_id as string)
      assert.deepEqual(
        (await tasksOf(engine, 1)).map(({ obj_id }) => obj_id),
        ids,
      )
    }
    assert.deepEqual([...ids].sort(), ids)
  }))
