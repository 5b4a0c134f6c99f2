/**
 * `conveyor smoke` on this machine, and on one that lacks something, which a hook before the program
 * takes away: the row says which fallback is in use, or in one sentence that there is none.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { adminSocketPath, isPipe } from '../src/server/admin/socket-path.ts'
import { syncPath } from '../src/store/disk/file-system.ts'
import { node_args } from './support/cli-serve.ts'
import { tempFolder, top } from './support/package-folder.ts'

const folder = tempFolder()
after(() => folder.remove())

interface Row {
  readonly name: string
  readonly level: string
  readonly says: string
}

/** Runs it with a hook in it and in all its children. */
async function smoke(hook: string): Promise<{ rows: Map<string, Row>; exit: number }> {
  const file = join(folder.path, 'hook.cjs')
  writeFileSync(file, hook)
  const words = ['--require', file, ...node_args, 'smoke', '--json', '--in', folder.path]
  const child = spawn(process.execPath, words, { cwd: top, stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.on('data', (chunk) => {
    out += String(chunk)
  })
  const [exit] = await once(child, 'close')
  assert.deepEqual(
    readdirSync(folder.path).filter((name) => name !== 'hook.cjs'),
    [],
  )
  const { checks } = JSON.parse(out) as { checks: Row[] }
  return { rows: new Map(checks.map((row) => [row.name, row])), exit }
}

/** Opens with this flag are refused, as some file systems do. */
const withoutFlag = (name: string): string => `
  const fs = require('node:fs')
  const open = fs.open
  fs.open = (path, flags, ...rest) => {
    if ((flags & fs.constants.${name}) !== fs.constants.${name}) return open(path, flags, ...rest)
    rest.at(-1)(Object.assign(new Error('EINVAL'), { code: 'EINVAL', syscall: 'open' }))
  }
  require('node:module').syncBuiltinESMExports()`

const withoutNative = (part: string): string => `
  const load = process.dlopen
  process.dlopen = (module, path, ...rest) => {
    if (path.includes('${part}')) throw new Error('no such file')
    return load(module, path, ...rest)
  }`

const withoutWatch = `
  fs.watch = fs.watchFile = () => { throw new Error('no watching here') }
  require('node:module').syncBuiltinESMExports()`

const none = /its file was not installed/

/** [what is switched off, the hook, the exit, the rows that it changes] */
const machines: readonly (readonly [string, string, number, Record<string, [string, RegExp]>])[] = [
  ['nothing', '', 0, {}],
  [
    'O_DIRECT, and the watching of the system',
    withoutFlag('O_DIRECT') + withoutWatch,
    0,
    { 'disk writes': ['warn', /^without O_DIRECT: by the page cache/] },
  ],
  [
    'O_DSYNC',
    withoutFlag('O_DSYNC'),
    0,
    { 'disk writes': ['warn', /^without O_DSYNC.*: by a sync after each write/] },
  ],
  [
    'the native file of the lock',
    withoutNative('fs-native-extensions'),
    1,
    Object.fromEntries(
      ['data file', 'lock', 'disk writes', 'kill', 'socket, stop'].map((name) => [
        name,
        ['bad', none],
      ]),
    ),
  ],
]

const names = ['node', 'memory', 'data file', 'lock', 'disk writes', 'file watching', 'kill']

describe('a machine without', { skip: process.platform !== 'linux' }, () => {
  for (const [what, hook, wanted_exit, changed] of machines) {
    test(what, async () => {
      const { rows, exit } = await smoke(hook)
      assert.deepEqual([...rows.keys()], [...names, 'socket, stop'])
      for (const [name, { level, says }] of rows) {
        const [wanted, sentence] = changed[name] ?? ['ok', /./]
        assert.equal(level, wanted, `${name}: ${says}`)
        assert.match(says, sentence)
      }
      assert.equal(exit, wanted_exit)
    })
  }
})

test('on Windows the socket is a pipe, whose name depends on the file', () => {
  const of = (path: string) => adminSocketPath(path, { platform: 'win32' }).socket
  assert.match(of('C:\\tasks.lmdb'), /^\\\\\.\\pipe\\conveyor-[0-9a-f]{16}$/)
  assert.notEqual(of('C:\\tasks.lmdb'), of('C:\\other.lmdb'))
  assert.deepEqual([isPipe(of('a')), isPipe('/tmp/conveyor-0/0')], [true, false])
})

test('on Windows no folder is synced, and a file is opened to write', async () => {
  const file = join(folder.path, 'hook.cjs')
  writeFileSync(file, '')
  await syncPath(folder.path, 'win32')
  await syncPath(file, 'win32')
  await assert.rejects(syncPath(join(folder.path, 'missing'), 'win32'), { code: 'ENOENT' })
})
