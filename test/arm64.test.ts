/**
 * The bundle on Linux on arm64, under qemu (bin/node-arm64.sh): lmdb, the file lock and QuickJS as a
 * machine with that processor loads them.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { buildSync } from 'esbuild'
import type { Seen } from './support/arm64-probe.ts'
import {
  installed,
  linkPackages,
  run,
  tempFolder,
  top,
  withDependencies,
} from './support/package-folder.ts'

const folder = tempFolder()
after(() => folder.remove())

const script = join(top, 'bin/node-arm64.sh')
const { status, stdout, stderr } = spawnSync('sh', [script], { encoding: 'utf8' })
const nothing_there = 69
const skip = status === nothing_there && stderr.trim()

test('the script has the native part of the lmdb that is installed', () => {
  const lock = JSON.parse(readFileSync(join(top, 'package-lock.json'), 'utf8'))
  const text = readFileSync(script, 'utf8')
  assert.ok(text.includes(`@lmdb/lmdb-linux-arm64@${installed('lmdb').version} `))
  assert.ok(text.includes(lock.packages['node_modules/@lmdb/lmdb-linux-arm64'].integrity))
})

test('a file, a task with a handler and code, a second opener, a reopening', { skip }, () => {
  assert.equal(status, 0, stderr)
  run(top, process.execPath, [
    '--import',
    'tsx',
    'bin/bundle.ts',
    join(folder.path, 'conveyor.mjs'),
  ])
  buildSync({
    entryPoints: [join(top, 'test/support/arm64-probe.ts')],
    outfile: join(folder.path, 'probe.mjs'),
    ...{ bundle: true, platform: 'node', format: 'esm', target: 'node20' },
  })
  // A copy: by a link it would look for its native part where this machine's is.
  const packages = join(folder.path, 'node_modules')
  cpSync(join(top, 'node_modules/lmdb'), join(packages, 'lmdb'), { recursive: true })
  cpSync(join(stdout.trim(), 'lmdb'), join(packages, '@lmdb/lmdb-linux-arm64'), { recursive: true })
  linkPackages(folder.path, withDependencies('lmdb'))
  const data = join(folder.path, 'data')
  mkdirSync(data)
  const ran = run(folder.path, 'sh', [script, 'probe.mjs', join(data, 'tasks.lmdb')])
  const ended = { amount: 20, paid: true, receipt: 21, twice: 42 }
  const seen = JSON.parse(ran) as Seen
  assert.deepEqual(seen, {
    ...{ machine: 'linux-arm64', created: 'ok', modified: 'ok', data: ended },
    ...{ second: 'file_held', reopened: ended, files: seen.files },
  })
  for (const end of ['-lock', '-owner', '-log-0']) {
    assert.ok(!seen.files.includes(`tasks.lmdb${end}`), end)
  }
})
