/**
 * The native files that a data file needs: which one of the lock is loaded where, that it locks under
 * musl too, and what is said at open, on the command line and by doctor where one does not load.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { lockAddons } from '../bin/lock-addons.ts'
import { native_platforms, nativeFault } from '../src/store/disk/native-part.ts'
import { codePath, node_flags, tempFolder, top } from './support/package-folder.ts'

const folder = tempFolder()
after(() => folder.remove())

const old_library =
  "/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /x/lmdb.node)"

// biome-ignore format: a table
/** [what the loader says, the platform, what the sentence has] */
const sentences: readonly (readonly [string, string, RegExp])[] = [
  [old_library,                                                'linux-x64',   /: this system has an older C or C\+\+ library than it needs; run Node on glibc 2\.34 .*Alpine \(.*GLIBCXX_3\.4\.29/],
  ["/lib64/libc.so.6: version `GLIBC_2.34' not found",          'linux-arm64', /older C or C\+\+ library/],
  ['Error loading shared library libstdc++.so.6: No such file', 'linux-x64',   /`apk add libstdc\+\+`/],
  ['No native build was found for platform=linux\n    attempted', 'linux-x64', /its file was not installed; .*\(No native build was found for platform=linux\)$/],
  ["Cannot find module 'x/lmdb.node'",                          'darwin-arm64', /for darwin-arm64 .* was not installed/],
  ["Cannot find module 'x/lmdb.node'",                          'linux-riscv64', /none for this platform; use one of darwin-arm64, .*win32-x64 \(/],
  ['invalid ELF header',                                        'linux-x64',   /install the packages again \(invalid ELF header\)$/],
  ['Bun lacks functions of libuv',                              'linux-x64',   /open data files with Node; ':memory:' works here/],
]
for (const [says, place, expected] of sentences) {
  test(`one sentence with the remedy: ${says.split('\n')[0]} on ${place}`, () => {
    const [platform = '', arch = ''] = place.split('-')
    const { code, message } = nativeFault('lmdb', new Error(says), { platform, arch })
    assert.equal(code, 'native_not_loaded')
    assert.match(message, expected)
    assert.ok(!message.includes('\n'))
  })
}

interface Ended {
  readonly status: number | null
  readonly out: string
  readonly err: string
}

/** Runs a module of ours after `before`, which changes what Node does in that process. */
function child(before: string, script: string, args: readonly string[]): Ended {
  const hook = join(folder.path, 'hook.cjs')
  writeFileSync(hook, before)
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [...node_flags, '--require', hook, script, ...args],
    { cwd: top, encoding: 'utf8' },
  )
  return { status, out: stdout, err: stderr }
}

/** Native files whose path has `part` do not load. */
const broken = (part: string, says: string): string => `
  const load = process.dlopen
  process.dlopen = (module, path, ...rest) => {
    if (path.includes(${JSON.stringify(part)})) throw new Error(${JSON.stringify(says)})
    return load(module, path, ...rest)
  }`

const parts: readonly (readonly [part: string, path: string])[] = [
  ['lmdb', 'lmdb-'],
  ['the file lock', 'fs-native-extensions'],
]
const verbs: readonly (readonly string[])[] = [
  ['serve', '--http', '127.0.0.1:0'],
  ['task', 'list'],
  ['check'],
]
for (const [part, path] of parts) {
  describe(`where ${part} does not load`, () => {
    const before = broken(path, old_library)
    const sentence = new RegExp(
      `the native part of ${part} for \\S+ does not load: this system has`,
    )
    const db = join(folder.path, `${path}.lmdb`)
    for (const verb of verbs) {
      test(`${verb.join(' ')} ends with 3 and one sentence`, () => {
        writeFileSync(db, '')
        const ended = child(before, codePath('bin/conveyor'), [...verb, '--db', db])
        assert.equal(ended.status, 3, ended.err)
        assert.match(ended.err, sentence)
        assert.equal(ended.err.trim().split('\n').length, 1, ended.err)
      })
    }
    test('openEngine rejects with a stable code and makes no file, and :memory: opens', () => {
      const script = join(folder.path, 'open.mjs')
      const fresh = join(folder.path, `${path}-fresh.lmdb`)
      const module = JSON.stringify(pathToFileURL(codePath('src/index')).href)
      writeFileSync(
        script,
        `import { openEngine } from ${module}
        await openEngine(process.argv[2]).catch(({ code }) => console.log(code))
        await openEngine(':memory:').then((engine) => engine.close())
        console.log('opened')`,
      )
      const ended = child(before, script, [fresh])
      assert.equal(ended.out, 'native_not_loaded\nopened\n', ended.err)
      assert.equal(existsSync(fresh), false)
    })
    test('doctor says so in a row of its own, with or without a file', () => {
      for (const file of [db, join(folder.path, 'missing.lmdb')]) {
        const ended = child(before, codePath('bin/conveyor'), ['doctor', '--db', file])
        assert.equal(ended.status, 3, ended.err)
        const [row = '', help = ''] = ended.out.split('\n').slice(lineOf(ended.out))
        assert.match(row, /^BAD +native files +the native part of .* does not load: this system/)
        assert.match(row, sentence)
        assert.match(help, /→ follow the sentence$/)
      }
    })
  })
}

const lineOf = (page: string): number =>
  page.split('\n').findIndex((line) => /^\S+ +native files /.test(line))

describe('the file of the lock', () => {
  test('is there for each platform, and the package does not carry others', () => {
    const paths = lockAddons(top).map(({ path }) => path)
    assert.deepEqual(
      paths.filter((path) => !existsSync(path)),
      [],
    )
    assert.equal(paths.length, native_platforms.length)
  })

  for (const runtime of ['bun', 'deno'] as const) {
    test(`is not loaded by ${runtime}, whose process it would end`, () => {
      const before = `Object.defineProperty(process, 'versions', {
        value: { ...process.versions, ${runtime}: '1.0.0' } })`
      const ended = child(before, codePath('bin/conveyor'), ['check', '--db', folder.path])
      assert.equal(ended.status, 3)
      assert.match(ended.err, /does not load: open data files with Node; .* \((Bun|Deno) lacks/)
    })
  }

  test('is the same on Alpine, where Node knows no glibc', () => {
    const before = `
      const fs = require('node:fs')
      const { existsSync } = fs
      fs.existsSync = (path) => path === '/etc/alpine-release' || existsSync(path)
      require('node:module').syncBuiltinESMExports()
      const report = process.report.getReport()
      delete report.header.glibcVersionRuntime
      process.report.getReport = () => report`
    const script = join(folder.path, 'lock.mjs')
    const module = JSON.stringify(pathToFileURL(codePath('src/store/disk/file-lock')).href)
    writeFileSync(
      script,
      `import { lockFile } from ${module}
      const path = process.argv[2]
      console.log(Boolean(await lockFile(path)), await lockFile(path))`,
    )
    const ended = child(before, script, [join(folder.path, 'alpine')])
    assert.equal(ended.out, 'true undefined\n', ended.err)
  })

  const musl = '/lib/ld-musl-x86_64.so.1'
  const is_there = existsSync(musl) && process.arch === 'x64' && hasProgram('musl-gcc')
  const skip =
    !is_there && 'musl-gcc is not installed (Debian: musl-tools); nothing runs under musl'
  test('loads and locks under the loader of musl, where no glibc is', { skip }, () => {
    const root = join(folder.path, 'root')
    mkdirSync(join(root, 'lib'), { recursive: true })
    const host = join(root, 'host')
    const source = join(top, 'test/support/musl-host.c')
    const built = spawnSync('musl-gcc', ['-rdynamic', '-o', host, source], { encoding: 'utf8' })
    assert.equal(built.status, 0, built.stderr)
    copyFileSync(musl, join(root, musl))
    const addon = lockAddons(top).find(({ place }) => place === 'linux-x64')?.path as string
    copyFileSync(addon, join(root, 'lock.node'))
    const is_root = process.getuid?.() === 0
    const ended = is_root
      ? spawnSync('chroot', [root, '/host', '/lock.node', '/data'], { encoding: 'utf8' })
      : spawnSync(host, [join(root, 'lock.node'), join(root, 'data')], { encoding: 'utf8' })
    const says =
      'loaded\nfirst: locked\nsecond: EAGAIN\nanother process: EAGAIN\nafter its end: locked\n'
    assert.equal(ended.stdout, says, ended.stderr)
    assert.ok(readdirSync(root).includes('data'))
  })
})

function hasProgram(name: string): boolean {
  return spawnSync(name, ['--version']).status === 0
}
