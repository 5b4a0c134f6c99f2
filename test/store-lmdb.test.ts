/**
 * The data file by itself: which files are refused, what a commit is, the owner record, copies.
 */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Fault, fault } from '../src/core/faults.ts'
import { encodeChange, encodedBytes, nextOffset } from '../src/store/changes/change-encoding.ts'
import { openDataFile } from '../src/store/data-file.ts'
import { openingError } from '../src/store/disk/file-system.ts'
import { openWritableTree } from '../src/store/lmdb/commits.ts'
import { lastOfRuns, putFences, removeFences } from '../src/store/lmdb/full-pages.ts'
import type { LmdbWriter, WritableTree } from '../src/store/lmdb/lmdb-tree.ts'
import { type InProcessTree, openInProcess } from './support/in-process-tree.ts'
import { turns } from './support/store-trees.ts'

let folder: string
let count = 0
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'conveyor-store-'))
})
after(() => rm(folder, { recursive: true, force: true }))

const newPath = () => join(folder, `${count++}.conveyor`)

/** What the closed file holds under a key. */
async function valueIn(path: string, key: string): Promise<string | undefined> {
  const tree = await openInProcess(path)
  const value = tree.get(key)?.toString()
  await tree.close()
  return value
}

/** Puts values of these lengths in one commit, as a checkpoint does. */
function fillInOrder(tree: InProcessTree, entries: readonly (readonly [string, number])[]): void {
  const changes = entries
    .map(([key, bytes]) => [key, Buffer.alloc(bytes)] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  const arena = Buffer.alloc(
    changes.reduce((sum, [key, value]) => sum + encodedBytes(key, value), 0),
  )
  const offsets: number[] = []
  let end = 0
  for (const [key, value] of changes) {
    encodeChange(arena, end, key, value)
    offsets.push(end)
    end = nextOffset(arena, end)
  }
  const last_keys = lastOfRuns(tree, arena, Uint32Array.from(offsets))
  tree.commit((writer) => {
    putFences(writer, last_keys)
    for (const [key, value] of changes) writer.put(key, value)
    removeFences(writer, last_keys)
  })
}

/** A database of three keys, one of them large, closed again. */
async function filled(path = newPath()): Promise<string> {
  const tree = await openInProcess(path)
  tree.commit((writer) => {
    writer.put('a', Buffer.from('1'))
    writer.put('large', Buffer.alloc(100_000, 'x'))
    writer.put('z', Buffer.from('26'))
  })
  await tree.close()
  return path
}

it('a key after the last one of a growing family is looked up once the file may have it', async () => {
  const path = newPath()
  const growing = [{ from: '\x0e\x01', to: '\x0e\x02' }]
  const tree = await openInProcess(path, { growing })
  const other = await openWritableTree(path)
  const put = (into: WritableTree, key: string): void =>
    into.commit((writer) => writer.put(key, Buffer.from(key)))
  const rows: readonly (readonly [string, () => void])[] = [
    ['\x0e\x01a', () => put(tree, '\x0e\x01a')],
    ['\x0e\x01c', () => put(other, '\x0e\x01c')],
    ['\x0e\x01b', () => put(other, '\x0e\x01b')],
    ['\x0e\x03', () => put(other, '\x0e\x03')],
    ['\x0fx', () => put(other, '\x0fx')],
  ]
  for (const [key, change] of rows) {
    assert.equal(tree.get(key), undefined)
    change()
    tree.refresh()
    assert.equal(tree.get(key)?.toString(), key)
  }
  put(tree, '\x0e\x01d')
  assert.equal(tree.get('\x0e\x01d')?.toString(), '\x0e\x01d')
  await other.close()
  await tree.close()
})

it('what the system or LMDB refuses at an opening is not_possible; a bug stays what it is', () => {
  const bug = new TypeError('x is undefined')
  const rows: readonly (readonly [unknown, unknown])[] = [
    [Object.assign(new Error('EIO: i/o error, stat'), { code: 'EIO', syscall: 'stat' }), 'EIO'],
    [Object.assign(new Error('Input/output error'), { code: 5 }), 5],
  ]
  for (const [error, code] of rows) {
    const { cause, ...refusal } = openingError('/a/file', error) as Fault
    assert.equal(refusal.code, 'not_possible')
    assert.equal((cause as { code: unknown }).code, code)
  }
  for (const own of [bug, fault('file_held'), undefined]) {
    assert.equal(openingError('/a/file', own), own)
  }
})

describe('lmdb: files that are refused', () => {
  const rows: [
    what: string,
    make: (path: string) => Promise<string>,
    code: string,
    says: RegExp,
  ][] = [
    [
      'text',
      write('a letter to somebody, long enough to be looked at'),
      'not_a_database',
      /no conveyor/,
    ],
    ['a little text', write('x'), 'not_a_database', /no conveyor/],
    ['SQLite', write(`SQLite format 3\0${'\0'.repeat(9000)}`), 'not_a_database', /no conveyor/],
    ['many zeros', write('\0'.repeat(200_000)), 'not_a_database', /no conveyor/],
    ['one page of a database', cut(4096), 'not_a_database', /a meta page is damaged/],
    ['the first pages of a database', cut(3 * 4096), 'not_a_database', /ends too early/],
    ['all but the last page', cut(-4096), 'not_a_database', /ends too early/],
    ['zeros in the first meta page', zeroed(0), 'not_a_database', /a meta page is damaged; run/],
    ['zeros in the other meta page', zeroed(4096), 'not_a_database', /a meta page is damaged; run/],
    ['a folder', madeFolder, 'not_possible', /is a folder/],
    ['a missing folder', async (path) => join(path, 'db'), 'not_possible', /does not exist/],
    ['a path through a file', async () => join(await filled(), 'db'), 'not_possible', /no folder/],
    ['a device', async () => '/dev/null', 'not_possible', /no regular file/],
    ['a long path', async (path) => path + 'x'.repeat(300), 'not_possible', /too long/],
  ]
  for (const [what, make, code, says] of rows) {
    it(what, async () => {
      const path = await make(newPath())
      const contents = await readFile(path).catch(() => undefined)
      await assert.rejects(openInProcess(path), (error: Error & { code: string }) => {
        assert.equal(error.code, code)
        assert.match(error.message, says)
        assert.ok(error.message.startsWith(path), 'the sentence names the path')
        return true
      })
      assert.deepEqual(await readFile(path).catch(() => undefined), contents, 'nothing is changed')
    })
  }

  const root = process.getuid?.() === 0
  it('a file that may not be written', { skip: root && 'root may do all' }, async () => {
    const path = await filled()
    const handle = await open(path)
    await handle.chmod(0o400)
    await handle.close()
    await assert.rejects(openInProcess(path), { code: 'not_possible' })
  })

  for (const bytes of [0, 4096, 8192]) {
    it(`${bytes} zero bytes, as a power cut leaves a new file, are a new database`, async () => {
      const path = await write('\0'.repeat(bytes))(newPath())
      const tree = await openInProcess(path)
      tree.commit((writer) => writer.put('a', Buffer.from('1')))
      await tree.close()
      assert.equal(await valueIn(path, 'a'), '1')
    })
  }
})

describe('lmdb: files that a power cut or a crash left', () => {
  /** The bytes of a new file, of two pages. */
  async function newFile(path: string): Promise<Buffer> {
    await (await openInProcess(path)).close()
    return readFile(path)
  }

  const page = 4096
  const torn: [what: string, tear: (bytes: Buffer) => Buffer, is_new: boolean][] = [
    ['only the first page', (bytes) => bytes.fill(0, page), true],
    ['only the second page', (bytes) => bytes.fill(0, 0, page), true],
    ['no sector', (bytes) => bytes.fill(0), true],
    ['only the first page, cut', (bytes) => bytes.fill(0, page).subarray(0, page), false],
    ['only the first page, and noise', (bytes) => bytes.fill(7, page), false],
    ['half a sector', (bytes) => bytes.fill(0, 40), false],
  ]
  for (const [what, tear, is_new] of torn) {
    it(`a new file of which ${what} came to disk is ${is_new ? 'new again' : 'refused'}`, async () => {
      const path = newPath()
      const bytes = tear(await newFile(path))
      await writeFile(path, bytes)
      if (is_new) assert.equal(await valueIn(path, 'a'), undefined)
      else await assert.rejects(openInProcess(path), { code: 'not_a_database' })
      if (!is_new) assert.deepEqual(await readFile(path), bytes)
    })
  }

  it('a short file that lacks free pages only is opened', async () => {
    const path = newPath()
    const tree = await openInProcess(path)
    for (const large of [null, null, null, null, Buffer.alloc(20_000, 'x'), null]) {
      tree.commit((writer) => {
        writer.put('a', Buffer.from('1'))
        writer.put('large', large)
      })
    }
    await tree.close()
    const bytes = await readFile(path)
    const lost = bytes.subarray(-page)
    assert.ok(lost.includes('x'.repeat(3_000)), 'the last page is one of the deleted value')
    await writeFile(path, bytes.subarray(0, -page))
    assert.equal(await valueIn(path, 'a'), '1')
  })

  it('a short file without its list of free pages is refused', async () => {
    const path = await filled()
    const tree = await openInProcess(path)
    tree.commit((writer) => writer.put('a', Buffer.from('2')))
    await tree.close()
    const { size } = await stat(path)
    const last_page = await readFile(path).then((bytes) => bytes.subarray(size - page))
    assert.ok(!last_page.includes('26'), 'the last page is no page of entries')
    const handle = await open(path, 'r+')
    await handle.truncate(size - page)
    await handle.close()
    await assert.rejects(openInProcess(path), { code: 'not_a_database', message: /ends too early/ })
  })
})

function write(text: string): (path: string) => Promise<string> {
  return async (path) => {
    await writeFile(path, text)
    return path
  }
}

async function madeFolder(path: string): Promise<string> {
  await mkdir(path)
  return path
}

/** A database cut to its first bytes, or by as many where negative. */
function cut(bytes: number): (path: string) => Promise<string> {
  return async (path) => {
    await filled(path)
    const handle = await open(path, 'r+')
    const { size } = await handle.stat()
    await handle.truncate(bytes < 0 ? size + bytes : bytes)
    await handle.close()
    return path
  }
}

/** A database with zeros in place of the page at this byte. */
function zeroed(at: number): (path: string) => Promise<string> {
  return async (path) => {
    await filled(path)
    const handle = await open(path, 'r+')
    await handle.write(Buffer.alloc(4096), 0, 4096, at)
    await handle.close()
    return path
  }
}

describe('lmdb: the file', () => {
  it('is readable by its owner alone, as is its lock', async () => {
    const umask = process.umask(0)
    try {
      const path = await filled()
      for (const end of ['', '-lock']) {
        assert.equal((await stat(path + end)).mode & 0o777, 0o600, end)
      }
    } finally {
      process.umask(umask)
    }
  })

  it('knows the free bytes of its disk and of the file itself', async () => {
    const path = await filled()
    const tree = await openInProcess(path)
    assert.ok(tree.freeBytes() > 0)
    const before = tree.usage()
    tree.commit((writer) => writer.put('large', null))
    const { used_bytes, reusable_bytes } = tree.usage()
    assert.ok(used_bytes < before.used_bytes - 90_000)
    assert.ok(reusable_bytes > before.reusable_bytes + 90_000)
    await tree.close()
  })

  it('is unchanged by a commit whose function throws, and refuses every later commit', async () => {
    const path = newPath()
    const tree = await openInProcess(path)
    tree.commit((writer) => writer.put('a', Buffer.from('1')))
    const broken = (writer: LmdbWriter): void => {
      writer.put('a', Buffer.from('2'))
      for (let n = 0; n < 3000; n++) writer.put(`b${n}`, Buffer.from('2'))
      throw new Error('broken off')
    }
    assert.throws(() => tree.commit(broken), /broken off/)
    assert.throws(() => tree.commit((writer) => writer.put('c', null)), /broken off/)
    assert.equal(tree.get('a')?.toString(), '1')
    await tree.close()
    assert.equal(await valueIn(path, 'b0'), undefined)
  })

  it('writes keys and values that are slices of an arena', async () => {
    const tree = await openInProcess(newPath())
    const around = Buffer.from('........k\x00\xffvalue..gone..k2....', 'latin1')
    const room = around.subarray(3)
    tree.commit((writer) => writer.put('gone', Buffer.from('1')))
    tree.commit((writer) => {
      writer.putSlice(room, 5, 3, 5)
      writer.putSlice(room, 15, 4, -1)
      writer.put('by name', Buffer.from('2'))
      writer.putSlice(room, 21, 2, 0)
      writer.putSlice(Buffer.from('other room'), 0, 5, 5)
    })
    const found = [...tree.range('', '\xff\xff', false)]
    assert.deepEqual(
      found.map(({ key, value }) => [key, value.toString('latin1')]),
      [
        ['by name', '2'],
        ['k\x00\xff', 'value'],
        ['k2', ''],
        ['other', ' room'],
      ],
    )
    await tree.close()
  })

  it('keeps its pages full of keys that arrive in order before others, and nothing else', async () => {
    const tree = await openInProcess(newPath())
    const expected = new Map<string, number>([['c', 1]])
    let first_bytes = 0
    tree.commit((writer) => writer.put('c', Buffer.alloc(1)))
    for (let round = 0; round < 8; round++) {
      const added = ['a', 'b'].flatMap((type) =>
        Array.from({ length: 2_000 }, (_, n): [string, number] => [
          `${type}${(round * 2_000 + n).toString().padStart(8, '0')}`,
          type === 'a' ? 10 : 250,
        ]),
      )
      for (const [key, bytes] of added) expected.set(key, bytes)
      fillInOrder(tree, added)
      if (round === 0) first_bytes = tree.usage().used_bytes
    }
    const found = [...tree.range('', '\xff', false)]
    assert.deepEqual(
      found.map(({ key, value }) => [key, value.length]),
      [...expected].sort(([one], [other]) => (one < other ? -1 : 1)),
    )
    const grown_bytes = tree.usage().used_bytes - first_bytes
    const added_bytes = 7 * 2_000 * (2 * (9 + 10) + 10 + 250)
    assert.ok(grown_bytes < 1.3 * added_bytes, `${added_bytes} bytes took ${grown_bytes}`)
    await tree.close()
  })

  it('loses no key to the fence of a run', async () => {
    const run = Array.from({ length: 200 }, (_, n): [string, number] => [`a${1_000 + n}`, 20])
    for (const after of ['a1199\x00\x00', 'a1199\x00\x01', 'a1199\x01', 'a11990', 'b']) {
      const tree = await openInProcess(newPath())
      tree.commit((writer) => writer.put(after, Buffer.from('kept')))
      fillInOrder(tree, run)
      assert.equal([...tree.range('', '\xff', false)].length, 201)
      assert.equal(tree.get(after)?.toString(), 'kept')
      await tree.close()
    }
  })

  it('refuses everything once it is closed', async () => {
    const tree = await openInProcess(newPath())
    await tree.close()
    await tree.close()
    const shut = { code: 'shutting_down' }
    assert.throws(() => tree.get('a'), shut)
    assert.throws(() => [...tree.range('a', 'b', false)], shut)
    await assert.rejects(tree.backup(newPath()), shut)
    const file = await openDataFile(newPath())
    await file.close()
    await assert.rejects(file.write({ frames: [] }), shut)
  })
})

describe('lmdb: backup', () => {
  it('holds the durable state', async () => {
    const tree = await openInProcess(await filled())
    tree.commit((writer) => writer.put('\xff'.repeat(1978), Buffer.from('last')))
    const path = newPath()
    const made = await tree.backup(path)
    assert.deepEqual(made, { path, bytes: (await stat(path)).size })
    await tree.close()
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    const copy = await openInProcess(path)
    assert.deepEqual(
      [...copy.range('', '\xff', false)].map((entry) => entry.key),
      ['a', 'large', 'z'],
    )
    assert.equal(copy.get('\xff'.repeat(1978))?.toString(), 'last')
    assert.ok(copy.get('large')?.equals(Buffer.alloc(100_000, 'x')))
    await copy.close()
  })

  it('during which a commit comes fails, and leaves nothing behind', async () => {
    const tree = await openInProcess(await filled())
    const path = newPath()
    let is_copying = true
    const copied = tree.backup(path).finally(() => {
      is_copying = false
    })
    copied.catch(() => {})
    for (let n = 0; is_copying; n++) {
      tree.commit((writer) => writer.put('n', Buffer.from([n & 255])))
      await turns(1)
    }
    await assert.rejects(copied, { code: 'not_possible', message: /written meanwhile/ })
    await assert.rejects(stat(path), { code: 'ENOENT' })
    await tree.close()
  })

  const rows: [what: string, target: (path: string) => Promise<string>][] = [
    ['an existing file', (path) => write('precious')(path)],
    ['an existing folder', madeFolder],
    ['a missing folder', async (path) => join(path, 'copy')],
  ]
  for (const [what, target] of rows) {
    it(`to ${what} is refused and leaves nothing behind`, async () => {
      const tree = await openInProcess(await filled())
      const path = await target(newPath())
      const names = (await readdir(folder)).sort()
      await assert.rejects(tree.backup(path), (error: Error & { code: string }) => {
        assert.equal(error.code, 'not_possible')
        assert.ok(error.message.startsWith(path))
        return true
      })
      assert.deepEqual((await readdir(folder)).sort(), names)
      if (what === 'an existing file') assert.equal(await readFile(path, 'utf8'), 'precious')
      await tree.close()
    })
  }

  it('leaves one file and no other', async () => {
    const tree = await openInProcess(await filled())
    const path = newPath()
    const names = await readdir(dirname(path))
    await tree.backup(path)
    assert.deepEqual((await readdir(folder)).sort(), [...names, basename(path)].sort())
    await tree.close()
  })
})
