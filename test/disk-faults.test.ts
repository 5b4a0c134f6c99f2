/**
 * Disk faults row by row, where proof:io, proof:hung and proof:full try any: a full disk, a file that
 * is lost, a failing and a hanging disk. What was acknowledged is in the file when it is opened
 * again, and `serve` ends with 3 and one sentence.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { connect } from '../src/client.ts'
import { openEngine } from '../src/open.ts'
import { planOf } from './proof/hung.ts'
import type { FullDisk } from './support/disk/full-disk-child.ts'
import { diskHarness, whyNoIoLibrary } from './support/disk/harness.ts'
import { holdOnce } from './support/disk/hung-harness.ts'
import { newHungCounts, sound } from './support/disk/hung-hold.ts'
import { attempt, type IoFault } from './support/disk/io-faults.ts'
import { judgeFile, ledgerOf } from './support/disk/ledger.ts'
import { mountDisk, never_looks } from './support/disk/small-disk.ts'
import { builtOnce, builtProgram, type Edit } from './support/store-child.ts'
import { becomes } from './support/waits.ts'
import { plain as conv_id } from './support/workload.ts'

/** Writes of frames reach the disk and are answered with ENOSPC, as a late sync may be. */
const written_and_full: Edit = {
  file: 'store/commit-log/segments.ts',
  from: 'const write_ms =',
  to: `const nth = to > from + 1 ? (globalThis.nth = (globalThis.nth ?? 0) + 1) : 0
      if (nth > 9 && nth < 19) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      const write_ms =`,
}

describe('a disk', () => {
  /** [what, is the disk small, edits, bytes of a commit] */
  const rows: [string, boolean, readonly Edit[], number][] = [
    ['that fills between two looks, with small commits', true, never_looks, 4_000],
    ['that fills between two looks, with large commits', true, never_looks, 100_000],
    ['that takes a commit and says it is full', false, [written_and_full], 4_000],
  ]
  for (const [what, is_small, edits, value_bytes] of rows) {
    it(what, { timeout: 120_000 }, async (t) => {
      const { script } = await builtOnce('disk/full-disk-child.ts', edits)
      const folder = (await diskHarness()).newFolder()
      const disk = is_small ? mountDisk('tmpfs', 24) : { path: folder, remove() {} }
      if (disk === undefined) return t.skip('this user may not mount a small disk here')
      try {
        writeFileSync(join(disk.path, 'others'), Buffer.alloc(8 << 20, 1))
        const paths = [join(disk.path, 'tasks.lmdb'), join(folder, 'copy.lmdb')]
        const args = [script, ...paths, String(value_bytes)]
        const run = spawnSync(process.execPath, args, { encoding: 'utf8' })
        assert.equal(run.status, 0, run.stderr)
        const { codes, events, copied, closed } = JSON.parse(run.stdout) as FullDisk
        assert.deepEqual([...new Set(codes)], ['ok', 'no_space'])
        assert.deepEqual(codes.slice(-51), Array(51).fill('ok'))
        assert.equal(events.filter((event) => event === 'no_space').length, 1)
        assert.ok(!events.includes('store_failed'))
        assert.equal(copied[1], copied[0])
        assert.equal(closed[1], closed[0])
      } finally {
        disk.remove()
      }
    })
  }
})

describe('a file that is lost while in use', { concurrency: 3 }, () => {
  const rows: [what: string, end: string, harm: (path: string) => void][] = [
    ['a log that is removed', '-log-0', (path) => rmSync(path)],
    ['a log that is replaced', '-log-1', replace],
    ['a log that is truncated', '-log-1', (path) => spawnSync('truncate', ['-s', '0', path])],
    ['a data file that is removed', '', (path) => rmSync(path)],
    ['a data file that is replaced', '', replace],
  ]
  for (const [what, end, harm] of rows) {
    it(what, async () => {
      const harness = await diskHarness()
      const path = harness.putFile()
      const server = await harness.serve(path, { drain_ms_max: 500 })
      const { url, user, secret } = server.target
      const client = await connect({ url, user, secret })
      const { proc } = await client.create({ conv_id, ref: 'a', data: { n: 1 } })
      assert.equal(proc, 'ok')
      await client.close()
      const began_ms = performance.now()
      harm(path + end)
      const { code } = await server.ended
      assert.equal(code, 3, server.said())
      const seconds = (performance.now() - began_ms) / 1_000
      assert.ok(seconds < 20, `${seconds} s`)
      assert.ok(server.said().includes(path + end), server.said())
      assert.match(server.said(), /was removed, replaced or cut short while in use/)
      // The close has written to the data file what only the commit log had.
      if (end !== '') await judgeFile(path, ledgerOf([{ refs: ['a'], answer: { code: proc } }]))
    })
  }

  function replace(path: string): void {
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
  }
})

describe('a disk that fails', { skip: whyNoIoLibrary() ?? false }, () => {
  const rows: [
    what: string,
    fault: Pick<IoFault, 'call' | 'n' | 'how'>,
    end: string,
    says: RegExp,
  ][] = [
    [
      'in a checkpoint',
      { call: 'child.fdatasync', n: 2, how: 'ever' },
      'stopped',
      /"store_failed".*look at the disk/,
    ],
    [
      'in the mmap of the data file at the open',
      { call: 'probe.mmap', n: 1, how: 'once' },
      'did not start',
      /cannot be opened and mapped/,
    ],
    [
      'in the fsync of the data file at the open',
      { call: 'fsync', n: 1, how: 'once' },
      'did not start',
      /cannot be opened \(EIO: i\/o error, fsync\)/,
    ],
  ]
  for (const [what, fault, end, says] of rows) {
    it(what, async () => {
      const tried = await attempt({ ...fault, end: 'file', error: 'EIO', on: 'closed' }, 'closed')
      assert.deepEqual([tried.wrong, tried.is_reached, tried.end], [undefined, true, end])
      assert.match(tried.said, says)
    })
  }

  it('in a write that hangs: a signal ends the process within the drain time', async () => {
    const plan = { ...planOf(0, true), kind: 'log', end: 'SIGTERM' } as const
    await holdOnce(await diskHarness(), plan, sound, newHungCounts())
  })
})

it('a folder without write permission is reported in one sentence', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root may run it as somebody else')
  const nobody = { uid: 65_534, encoding: 'utf8' } as const
  const has_node = spawnSync(process.execPath, ['--version'], nobody).status === 0
  if (!has_node) return t.skip('this node is where nobody else may go')
  const { script, folder: shared } = await builtProgram()
  const folder = join(shared, 'shut')
  mkdirSync(folder)
  const path = join(folder, 'tasks.lmdb')
  await (await openEngine(path)).close()
  chmodSync(shared, 0o755)
  chmodSync(folder, 0o555)
  chmodSync(path, 0o666)
  const args = [script, 'serve', '--http', 'off', '--db', path]
  const { status, stderr } = spawnSync(process.execPath, args, {
    ...nobody,
    env: { ...process.env, CONVEYOR_RUNTIME_DIR: '/tmp/conveyor-65534' },
  })
  assert.equal(status, 3, stderr)
  assert.ok(stderr.startsWith(`conveyor: ${folder}: this user may not`), stderr)
})

it('sockets of killed servers are removed, and no others', async () => {
  const harness = await diskHarness()
  const runtime = join(harness.newFolder(), 'runtime')
  mkdirSync(runtime, { mode: 0o700 })
  const [dead, young, heard] = ['0', '1', '2'].map((digit) => join(runtime, digit.repeat(16)))
  for (const path of [dead, young]) {
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', script])
  }
  const server = createServer().listen(heard)
  for (const path of [dead, heard]) utimesSync(path as string, 1, 1)
  const engine = await openEngine(harness.putFile(), { admin: true, runtime_dir: runtime })
  await becomes('the socket of the killed server is removed', () => !existsSync(dead as string))
  assert.deepEqual(
    [dead, young, heard].map((path) => existsSync(path as string)),
    [false, true, true],
  )
  await engine.close()
  server.close()
})
