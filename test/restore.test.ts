/**
 * Backup and restore as a drill: a server is killed, its data file is lost, and a backup that was
 * made under load takes its place, with all that was acknowledged before it. What a restore refuses
 * leaves everything as it was, and a kill at any of its steps leaves the old file or the new one.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import fs, { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { connect } from '../src/client.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { serveHttp } from '../src/http.ts'
import { openEngine } from '../src/open.ts'
import { lockFile } from '../src/store/disk/file-lock.ts'
import { type Ran, rowsOf, run } from './support/cli-run.ts'
import { node_args, startServe } from './support/cli-serve.ts'
import { mountDisk } from './support/disk/small-disk.ts'
import { quickFolder } from './support/store-folder.ts'

let folder: string

before(async () => {
  folder = await quickFolder('conveyor-restore-')
})
after(() => rm(folder, { recursive: true, force: true }))

const node = (
  id: string,
  obj_type: number,
  logics: readonly object[],
  semaphors: object[] = [],
) => ({
  ...{ id, obj_type, condition: { logics, semaphors }, options: '{"save_task":true}' },
})
const wait = { type: 'time', value: 1, dimension: 'sec', to_node_id: 'end' }
const timed = {
  obj_id: 7,
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [], [wait]),
      node('end', 2, []),
    ],
  },
}
const waiting = {
  obj_id: 8,
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }]),
      node('end', 2, []),
    ],
  },
}

interface Made {
  readonly path: string
  readonly user: string
  readonly secret: string
}

/** A closed file with a user, two processes and `tasks` tasks, in a folder of its own. */
async function makeFile(tasks: number): Promise<Made> {
  const path = join(await mkdtemp(join(folder, 'made-')), 'tasks.lmdb')
  const engine = await openEngine(path, { background: false })
  await engine.processes.putMany([timed, waiting])
  const { id: user, secret } = await engine.users.add()
  for (const conv_id of [7, 8]) await engine.processes.share(conv_id, user)
  for (let n = 0; n < tasks; n++) await engine.create({ conv_id: 8, ref: `r${n}`, data: {} })
  await engine.close()
  return { path, user, secret }
}

const ok = async (argv: readonly string[], env = {}): Promise<Ran> => {
  const ran = await run(argv, { env })
  assert.equal(ran.exit, 0, ran.err)
  return ran
}

describe('the drill', () => {
  it('a lost file comes back with all that was acknowledged before the backup', async (t) => {
    const { path, user, secret } = await makeFile(0)
    const backup = join(folder, 'drill.lmdb')
    const key_copy = join(folder, 'drill.key')
    await copyFile(`${path}.key`, key_copy)
    const served = await startServe([
      ...[process.execPath, ...node_args, 'serve', '--json', '--db', path],
      ...['--http', '127.0.0.1:0'],
    ])
    const client = await connect({ url: served.url, user, secret, retries_max: 0 })
    const acked: string[] = []
    let onAck = (): void => {}
    const load = async (sequence: number): Promise<void> => {
      for (let n = 0; ; n++) {
        const ref = `${sequence}-${n}`
        const ops = [7, 8].map(
          (conv_id) => ({ type: 'create', conv_id, ref, data: { n } }) as const,
        )
        try {
          await client.apply(ops)
        } catch {
          return
        }
        acked.push(ref)
        onAck()
      }
    }
    const acks = (count: number): Promise<void> =>
      new Promise((resolve) => {
        const wanted = acked.length + count
        onAck = () => acked.length >= wanted && resolve()
      })
    const sequences = [0, 1, 2, 3].map(load)
    await acks(40)
    const before_backup = [...acked]
    const made = await ok(['backup', backup, '--db', path, '--json'])
    await acks(40)
    served.child.kill('SIGKILL')
    await Promise.all([...sequences, served.ended])
    await client.close()
    const [{ key_id }] = rowsOf(made.out) as [{ key_id: string }]
    for (const name of [path, `${path}.key`]) await rm(name)

    const argv = ['restore', backup, '--db', path]
    assert.equal((await run(argv)).exit, 1, 'the key is lost too')
    const { out } = await ok([...argv, '--key-file', key_copy])
    assert.match(out, new RegExp(`put the key ${key_id} in place, from ${key_copy}`))
    assert.match(
      out,
      /restored .*: \d+ tasks, 2 processes, 1 users, last change 20.*Z, in [\d.]+ s\n$/,
    )
    t.diagnostic(out.trim().split('\n').at(-1) ?? '')

    const engine = await openEngine(path)
    assert.deepEqual((await engine.check()).breaches, [])
    for (const ref of before_backup) {
      assert.ok(await engine.task({ conv_id: 8, ref }), `${ref} was acknowledged`)
    }
    const ref = before_backup.at(-1) as string
    const ended = await engine.result({ conv_id: 7, ref }, { timeout_ms: 60_000 })
    assert.equal(ended.status, 'processed', 'its timer ran')
    const http = await serveHttp(engine, { port: 0 })
    const signed = await connect({ url: http.url, user, secret })
    assert.equal((await signed.create({ conv_id: 8, ref: 'after', data: {} })).proc, 'ok')
    const held = await run(['restore', backup, '--db', path, '--replace'])
    assert.equal(held.exit, 3)
    assert.match(held.err, new RegExp(`is held by process ${process.pid}: stop it first`))
    await signed.close()
    await http.drain()
    await engine.close()
  })
})

/** What a kill leaves: an open file with its commit log, and its key. */
async function makeKilled(tasks: number): Promise<Made> {
  const made = await makeFile(0)
  const path = join(await mkdtemp(join(folder, 'killed-')), 'tasks.lmdb')
  const engine = await openEngine(made.path, { background: false })
  for (let n = 0; n < tasks; n++) await engine.create({ conv_id: 8, ref: `old-${n}`, data: {} })
  for (const end of ['', '-log-0', '-log-1', '.key']) await copyFile(made.path + end, path + end)
  await engine.close()
  return { ...made, path }
}

/** How many tasks it has, and whether its key fits. */
async function look(path: string): Promise<string> {
  const engine = await openEngine(path, { background: false })
  try {
    const { breaches, counts } = await engine.check()
    const { problem } = servedEngine(engine).keyState()
    return `${counts.task} tasks, ${breaches.length} breaches, ${problem ?? 'key fits'}`
  } finally {
    await engine.close()
  }
}

/** The names and bytes of all files there. */
function filesIn(path: string): Map<string, Buffer> {
  const names = readdirSync(path, { recursive: true, encoding: 'utf8', withFileTypes: true })
  const files = names.filter((one) => one.isFile() && !one.name.endsWith('-lock'))
  return new Map(files.map(({ parentPath, name }) => [name, readFileSync(join(parentPath, name))]))
}

describe('a restore', () => {
  it('that is killed at any step leaves the old file or the new one, whole and with its key', async () => {
    const { path } = await makeKilled(3)
    const { path: backup } = await makeFile(5)
    const states: string[] = []
    let last_names = ''
    const steps = ['rename', 'link', 'rm'] as const
    const real = Object.fromEntries(steps.map((name) => [name, fs[name]]))
    for (const name of steps) {
      const run = fs[name] as (...args: unknown[]) => Promise<unknown>
      Object.assign(fs, {
        async [name](...args: unknown[]) {
          const names = readdirSync(dirname(path)).sort().join()
          if (names !== last_names) {
            const state = join(folder, `state-${states.length}`)
            states.push(join(state, basename(path)))
            cpSync(dirname(path), state, { recursive: true })
          }
          last_names = names
          return run(...args)
        },
      })
    }
    syncBuiltinESMExports()
    try {
      await ok(['restore', backup, '--db', path, '--replace', '--key-file', `${backup}.key`])
    } finally {
      Object.assign(fs, real)
      syncBuiltinESMExports()
    }
    const [old, fresh] = ['3 tasks', '5 tasks'].map((what) => `${what}, 0 breaches, key fits`)
    const seen = []
    for (const state of states) seen.push(await look(state))
    const at = seen.indexOf(fresh as string)
    assert.ok(at > 3 && at < seen.length - 2, seen.join('\n'))
    assert.deepEqual(seen, [...Array(at).fill(old), ...Array(seen.length - at).fill(fresh)])
    assert.equal(await look(path), fresh)
    // What was there can be restored in turn, with a key that no later change of the key reaches.
    await writeFile(`${path}.key`, 'x')
    const [aside] = readdirSync(dirname(path)).filter((name) => /lmdb\.\d{8}T\d{9}Z$/.test(name))
    await ok(['restore', join(dirname(path), aside as string), '--db', path, '--replace'])
    assert.equal(await look(path), old)
    // A repetition finds what a killed one has left, and removes it.
    const half = states[at - 1] as string
    await ok(['restore', backup, '--db', half, '--replace', '--key-file', `${backup}.key`])
    assert.equal(await look(half), fresh)
    assert.deepEqual(
      readdirSync(dirname(half)).filter((name) => name.startsWith('.')),
      [],
    )
  })

  it('that was cut off is finished by who opens the file through a link, and by no other name', async () => {
    const { path } = await makeFile(3)
    const { path: backup } = await makeFile(5)
    const link = join(await mkdtemp(join(folder, 'link-')), 'tasks.lmdb')
    await symlink(path, link)
    // What is left by a kill after the rename that decides.
    await copyFile(backup, `${path}.restore-decided`)
    assert.match(await look(link), /^5 tasks, 0 breaches/)
    // A copy beside it that somebody restored to look at, say.
    await copyFile((await makeFile(1)).path, `${path}-restored`)
    assert.match(await look(path), /^5 tasks, 0 breaches/)
    assert.ok(readdirSync(dirname(path)).includes('tasks.lmdb-restored'))
  })

  // biome-ignore format: a table
  const refused: readonly (readonly [string, number, RegExp, (made: Made, backup: string) => Promise<string[]>])[] = [
    ['over a file that is there', 1, /exists; --replace moves it aside/, async (_, backup) => [backup]],
    ['of the file itself', 1, /is the data file itself/, async ({ path }) => [path, '--replace']],
    ['of a link to the file', 1, /is the data file itself/, async ({ path }) => {
      await symlink(path, `${path}.link`)
      return [`${path}.link`, '--replace']
    }],
    ['of a missing backup', 2, /there is no such file/, async () => ['/nowhere/x', '--replace']],
    ['of an empty file', 3, /is no backup/, (_, backup) => spoilt(backup, '')],
    ['of zeros', 3, /is no backup/, (_, backup) => spoilt(backup, Buffer.alloc(8_192))],
    ['of another file', 3, /is no backup/, (_, backup) => spoilt(backup, 'x'.repeat(9_000))],
    ['of a folder', 3, /is no backup/, async (_, backup) => {
      await mkdir(`${backup}.folder`, { recursive: true })
      return [`${backup}.folder`, '--replace']
    }],
    ['of a pipe', 3, /is no backup/, async (_, backup) => {
      if (!existsSync(`${backup}.pipe`)) execFileSync('mkfifo', [`${backup}.pipe`])
      return [`${backup}.pipe`, '--replace']
    }],
    ['of a backup cut short', 3, /other\.lmdb ends too early/, async (_, backup) => spoilt(backup, readFileSync(backup).subarray(0, -4_096))],
    ['of a closed file cut short', 3, /other\.lmdb is cut short or damaged at its end/, async (_, backup) => {
      const { path } = await makeFile(1)
      return spoilt(backup, readFileSync(path).subarray(0, -512))
    }],
    ['of an open file without its commit log', 1, /other\.lmdb was copied without its commit log/, async (_, backup) => {
      const { path } = await makeKilled(1)
      return spoilt(backup, readFileSync(path))
    }],
    ['without the key', 1, /needs its key: the key is not in .*; name its kept copy with --key-file/, async (_, backup) => [backup, '--replace']],
    ['with a wrong key', 1, /needs its key/, async ({ path }, backup) => [backup, '--replace', '--key-file', `${path}.key`]],
    ['with a missing key file', 2, /there is no such file/, async (_, backup) => [backup, '--replace', '--key-file', '/nowhere/x']],
  ]

  async function spoilt(backup: string, bytes: string | Buffer): Promise<string[]> {
    const path = join(dirname(backup), 'other.lmdb')
    await writeFile(path, bytes)
    return [path, '--replace']
  }

  describe('is refused and changes nothing', () => {
    let made: Made
    let backup: string
    before(async () => {
      made = await makeKilled(2)
      const other = await makeFile(1)
      backup = join(folder, 'kept.lmdb')
      await ok(['backup', backup, '--db', other.path])
    })
    for (const [what, exit, says, argvOf] of refused) {
      it(what, async () => {
        const argv = await argvOf(made, backup)
        const files = filesIn(dirname(made.path))
        const ran = await run(['restore', ...argv, '--db', made.path])
        assert.match(ran.err, says)
        assert.equal(ran.exit, exit, ran.err)
        assert.ok(!ran.err.includes('.conveyor-'), ran.err)
        assert.deepEqual(filesIn(dirname(made.path)), files)
      })
    }

    it('and a lost key stops only who signs, if that is wanted', async () => {
      await ok(['restore', backup, '--db', made.path, '--replace', '--without-key'])
      assert.match(await look(made.path), /^1 tasks, 0 breaches, .*is the key of another file/)
    })
  })

  it('puts nothing in the place of what is no file', async () => {
    const { path } = await makeFile(1)
    const pipe = `${path}.pipe`
    execFileSync('mkfifo', [pipe])
    for (const more of [[], ['--replace']]) {
      const ran = await run(['restore', path, '--db', pipe, '--without-key', ...more])
      assert.match(ran.err, /tasks\.lmdb\.pipe is no file; name the data file/)
      assert.equal(ran.exit, 1)
      assert.ok(statSync(pipe).isFIFO())
    }
  })

  it('takes the key from the environment, or one that a rekey has put aside', async () => {
    const { path } = await makeFile(1)
    const backup = `${path}.backup`
    await ok(['backup', backup, '--db', path])
    await ok(['user', 'rekey', '--db', path])
    const { out } = await ok(['restore', backup, '--db', path, '--replace'])
    assert.match(out, /put the key [0-9a-f]{8} in place, from .*tasks\.lmdb\.key\.[0-9a-f]{8}\n/)
    assert.equal(await look(path), '1 tasks, 0 breaches, key fits')
    const CONVEYOR_KEY = readFileSync(`${path}.key`, 'utf8')
    await rm(`${path}.key`)
    const by_env = ['restore', backup, '--db', path, '--replace', '--json']
    const [row] = rowsOf((await ok(by_env, { CONVEYOR_KEY })).out)
    const { tasks, processes, users, aside } = row as { aside: string[] } & Record<string, unknown>
    assert.deepEqual({ tasks, processes, users }, { tasks: 1, processes: 2, users: 1 })
    assert.deepEqual([aside.length, readFileSync(aside[0] as string).length > 0], [1, true])
    assert.ok(!readdirSync(dirname(path)).includes('tasks.lmdb.key'))
  })
})

describe('what a backup and a restore leave', () => {
  it('on a full disk is nothing but a sentence', async (t) => {
    const disk = mountDisk('tmpfs', 1)
    if (disk === undefined) return t.skip('this user may mount no disk')
    try {
      const { path } = await makeFile(20)
      const filler = join(disk.path, 'filler')
      const copy = join(disk.path, 'copy.lmdb')
      const engine = await openEngine(path, { background: false })
      const says = /copy\.lmdb: the disk is full; make room, nothing was left/
      // It may fill at any page of the copy.
      let refused = 0
      for (let pages = 0; ; pages++) {
        await writeFile(filler, Buffer.alloc(2 ** 20 - pages * 4_096))
        const made = await engine.backup(copy).catch((error: Error) => error)
        if (!(made instanceof Error)) break
        assert.match(made.message, says)
        assert.equal((made as Error & { code: string }).code, 'no_space')
        assert.deepEqual(readdirSync(disk.path), ['filler'])
        refused++
      }
      assert.ok(refused > 4, `${refused} backups were refused`)
      assert.equal(refused, Math.ceil(statSync(copy).size / 4_096))
      await engine.close()
      await rm(copy)
      await writeFile(filler, Buffer.alloc(2 ** 20 - 4_096))
      const full = await run(['backup', copy, '--db', path])
      assert.match(full.err, says)
      assert.equal(full.exit, 3)
      await ok(['backup', `${path}.copy`, '--db', path])
      const db = join(disk.path, 'tasks.lmdb')
      const again = await run(['restore', `${path}.copy`, '--db', db, '--without-key'])
      assert.match(again.err, /tasks\.lmdb: the disk is full; make room, nothing was left/)
      assert.equal(again.exit, 3)
      assert.deepEqual(readdirSync(disk.path), ['filler'])
      assert.equal(await look(path), '20 tasks, 0 breaches, key fits')
    } finally {
      disk.remove()
    }
  })

  it('where it was killed is removed by the next one; what lives or is not its own stays', async () => {
    const { path } = await makeFile(1)
    const at = (...names: string[]): string => join(dirname(path), ...names)
    const names = ['dead', 'lives', 'other'].map((what) => `.conveyor-backup-${what}`)
    // `.backup-mine` is a folder of some other program.
    for (const name of [...names, '.backup-mine']) {
      await mkdir(at(name))
      await writeFile(at(name, 'copy'), 'half')
      if (name !== names[2]) await writeFile(at(name, 'lock'), '')
    }
    const lock = await lockFile(at('.conveyor-backup-lives', 'lock'))
    await ok(['backup', at('copy.lmdb'), '--db', path])
    const left = readdirSync(dirname(path)).filter((name) => name.startsWith('.'))
    assert.deepEqual(left.sort(), ['.backup-mine', ...names.slice(1)])
    await lock?.release()
  })
})
