/**
 * `serve` on a disk that fails under it: the process soon exits with 3 and one sentence, and what
 * it acknowledged is there when the file is opened again.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openEngine } from '../src/open.ts'
import { callback_process } from './support/cli-process.ts'
import { run } from './support/cli-run.ts'
import { type Served, startServe } from './support/cli-serve.ts'
import { crash_forms } from './support/commit-log-crash.ts'
import { type BuiltChild, buildChild } from './support/store-child.ts'
import { canTrace } from './support/store-strace.ts'
import { tasksOf } from './support/tasks-of.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'
let built: BuiltChild
let checkpointing: BuiltChild
before(async () => {
  built = await buildChild('../../bin/conveyor.ts')
  checkpointing = await buildChild('../../bin/conveyor.ts', crash_forms[1]?.edits)
})
after(async () => {
  await built.remove()
  await checkpointing.remove()
})

let count = 0
/** A file with one process, closed. */
async function newFile(): Promise<string> {
  const path = join(built.folder, `${count++}.lmdb`)
  const engine = await openEngine(path)
  await engine.processes.put(callback_process)
  await engine.close()
  return path
}

const limits = ['--drain-ms-max', '500', '--slow-commit-ms', '50']

function serveWith({ script }: BuiltChild, path: string, inject: readonly string[] = []) {
  // strace counts the calls to fail per thread.
  const strace = ['env', 'UV_THREADPOOL_SIZE=1', 'strace', '-f', '-qq', '-o', `${path}.trace`]
  const traced = inject.length === 0 ? [] : [...strace, ...inject]
  const serve = [script, 'serve', '--json', '--http', '127.0.0.1:0', '--db', path, ...limits]
  return startServe([...traced, process.execPath, ...serve])
}

async function create(path: string, ref: string): Promise<number> {
  const { exit } = await run(['task', 'create', '1234', '--ref', ref, '--data', '{}', '--db', path])
  return exit
}

/** The refs of the tasks that are there. */
async function refsIn(path: string): Promise<(string | null)[]> {
  const engine = await openEngine(path, { background: false })
  try {
    assert.deepEqual((await engine.check()).breaches, [])
    return (await tasksOf(engine, 1234)).map(({ ref }) => ref)
  } finally {
    await engine.close()
  }
}

const pid = ({ line }: Served): number => line.pid as number
const seconds = (from_ms: number): number => (performance.now() - from_ms) / 1_000

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
      const path = await newFile()
      const served = await serveWith(built, path)
      assert.equal(await create(path, 'a'), 0)
      const began_ms = performance.now()
      harm(path + end)
      assert.equal(await served.ended, 3)
      assert.ok(seconds(began_ms) < 20, `${seconds(began_ms)} s`)
      assert.ok(served.err().includes(path + end), served.err())
      assert.match(served.err(), /was removed, replaced or cut short while in use/)
      // What only the commit log had is in the data file by now.
      if (end !== '') assert.deepEqual(await refsIn(path), ['a'])
    })
  }

  function replace(path: string): void {
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
  }
})

describe('a disk that fails', { skip, concurrency: true }, () => {
  it('in a checkpoint, without a request', async () => {
    const path = await newFile()
    const inject = ['-P', path, '-e', 'inject=fdatasync:error=EIO:when=2+']
    const served = await serveWith(checkpointing, path, inject)
    const refs = ['a', 'b', 'c']
    const began_ms = performance.now()
    const exits: number[] = []
    for (const ref of refs) exits.push(await create(path, ref).catch(() => 3))
    assert.equal(await served.ended, 3)
    assert.ok(seconds(began_ms) < 40)
    assert.match(served.err(), /"store_failed".*look at the disk/)
    const acked = refs.filter((_, at) => exits[at] === 0)
    for (const ref of acked) assert.ok((await refsIn(path)).includes(ref), ref)
  })

  const openings: [call: string, says: RegExp][] = [
    ['mmap', /cannot be opened and mapped/],
    ['fsync', /cannot be opened \(EIO: i\/o error, fsync\)/],
  ]
  for (const [call, says] of openings) {
    it(`in the ${call} of the data file at the open: one sentence`, async () => {
      const path = await newFile()
      const inject = ['-P', path, '-e', `inject=${call}:error=EIO:when=1`]
      const failed = await serveWith(built, path, inject).catch((error: Error) => error.message)
      assert.match(String(failed), /^[^\n]*serve ended with 3: /)
      assert.match(String(failed), says)
      assert.deepEqual(await refsIn(path), [])
    })
  }

  it('in a write that hangs: a signal ends the process within the drain time', async () => {
    const path = await newFile()
    const inject = ['-P', `${path}-log-0`, '-e', 'inject=pwrite64:delay_enter=6s:when=3+']
    const served = await serveWith(built, path, inject)
    // The commit log grows ahead of its first commit, in a write of its own.
    assert.equal(await create(path, 'a'), 0)
    const refs = ['b', 'c', 'd']
    const sent = refs.map((ref) => create(path, ref).catch(() => 3))
    await writeHangs(pid(served))
    process.kill(pid(served), 'SIGTERM')
    const killed = /a write hangs, so the process is killed/
    for (let tries = 0; tries < 50 && !killed.test(served.err()); tries++) {
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    // It says so while the write hangs, which strace alone then waits for.
    assert.match(served.err(), killed)
    assert.match(served.err(), /"event":"slow_commit"[^\n]*"is_under_way":true/)
    await served.ended
    const exits = await Promise.all(sent)
    const found = await refsIn(path)
    assert.ok(found.includes('a'))
    for (const [at, ref] of refs.entries()) if (exits[at] === 0) assert.ok(found.includes(ref))
  })
})

/** Resolves once strace has held a thread of the process in 25 looks; ends it if none is held. */
async function writeHangs(of: number): Promise<void> {
  const tasks = `/proc/${of}/task`
  for (let held = 0, looks = 0; held < 25; looks++) {
    if (looks === 2_000) {
      process.kill(of, 'SIGKILL')
      assert.fail('no write hangs')
    }
    held = readdirSync(tasks).some((id) => isTraced(`${tasks}/${id}/stat`)) ? held + 1 : 0
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** False for a thread that has ended since it was listed. */
function isTraced(stat: string): boolean {
  try {
    return readFileSync(stat, 'utf8').includes(' t ')
  } catch {
    return false
  }
}

it('a folder without write permission is reported in one sentence', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root may run it as somebody else')
  const nobody = { uid: 65_534, encoding: 'utf8' } as const
  const has_node = spawnSync(process.execPath, ['--version'], nobody).status === 0
  if (!has_node) return t.skip('this node is where nobody else may go')
  const folder = join(built.folder, 'shut')
  mkdirSync(folder)
  const path = join(folder, 'tasks.lmdb')
  await (await openEngine(path)).close()
  chmodSync(built.folder, 0o755)
  chmodSync(folder, 0o555)
  chmodSync(path, 0o666)
  const args = [built.script, 'serve', '--http', 'off', '--db', path]
  const { status, stderr } = spawnSync(process.execPath, args, {
    ...nobody,
    env: { ...process.env, CONVEYOR_RUNTIME_DIR: '/tmp/conveyor-65534' },
  })
  assert.equal(status, 3, stderr)
  assert.ok(stderr.startsWith(`conveyor: ${folder}: this user may not`), stderr)
})

it('sockets of killed servers are removed, and no others', async () => {
  const runtime = join(built.folder, 'runtime')
  mkdirSync(runtime, { mode: 0o700 })
  const [dead, young, heard] = ['0', '1', '2'].map((digit) => join(runtime, digit.repeat(16)))
  for (const path of [dead, young]) {
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', script])
  }
  const server = createServer().listen(heard)
  for (const path of [dead, heard]) utimesSync(path as string, 1, 1)
  const engine = await openEngine(await newFile(), { admin: true, runtime_dir: runtime })
  for (let turn = 0; turn < 200 && existsSync(dead as string); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  assert.deepEqual(
    [dead, young, heard].map((path) => existsSync(path as string)),
    [false, true, true],
  )
  await engine.close()
  server.close()
})
