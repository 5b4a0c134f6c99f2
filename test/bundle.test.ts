/**
 * The bundle as someone runs it who has that one file: alone in an empty folder, with lmdb and what
 * lmdb itself needs beside it, by plain node.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { buildSync, transformSync } from 'esbuild'
import { version } from '../src/core/version.ts'
import * as library from '../src/index.ts'
import type { Seen } from './support/bundle-probe.ts'
import {
  installed,
  linkPackages,
  run,
  tempFolder,
  top,
  withDependencies,
} from './support/package-folder.ts'

describe('the bundle', () => {
  const folder = tempFolder()
  const bundle = join(folder.path, 'conveyor.mjs')
  const temp = join(folder.path, 'temp')
  let text = ''

  before(() => {
    run(top, process.execPath, ['--import', 'tsx', 'bin/bundle.ts', bundle])
    text = readFileSync(bundle, 'utf8')
    const probe = readFileSync(join(top, 'test/support/bundle-probe.ts'), 'utf8')
    const { code } = transformSync(probe, { loader: 'ts', format: 'esm', target: 'node20' })
    writeFileSync(join(folder.path, 'probe.mjs'), code)
    linkPackages(folder.path, withDependencies('lmdb'))
    mkdirSync(temp)
  })
  after(() => folder.remove())

  const probe = (file: string, temp_folder: string): Seen =>
    JSON.parse(
      run(folder.path, process.execPath, ['probe.mjs', file], {
        PATH: process.env.PATH,
        TMPDIR: temp_folder,
      }),
    )

  test('runs alone: a file, a process, a task, a signed callback, an end, a second opener', () => {
    const seen = probe('tasks.lmdb', temp)
    const examples = readdirSync(join(top, 'src/examples')).filter((name) => name.endsWith('.json'))
    assert.deepEqual(seen, {
      exports: [...Object.keys(library), 'examples', 'createHandler', 'serveHttp'].sort(),
      examples: examples.sort(),
      version,
      created: 'ok',
      second: 'file_held',
      answer: { request_proc: 'ok', ops: [{ ref: 'order-1', proc: 'ok' }] },
      hash: createHash('sha1').update('x').digest('hex'),
      status: 'processed',
      reopened: '{"amount":120,"paid":true}',
      breaches: [],
      merged: 8_000,
      hidden: ['fs-native-extensions', 're2js', 'fast-json-stable-stringify'],
    } satisfies Seen)
    assert.deepEqual(readdirSync(temp), [], 'what it unpacked is gone')
  })

  test('locks all the same where the temporary folder cannot be used', () => {
    const seen = probe('other.lmdb', join(folder.path, 'no-such-folder'))
    assert.equal(seen.second, 'file_held')
    const left = readdirSync(folder.path).filter((name) => name.startsWith('conveyor-'))
    assert.deepEqual(left, [])
  })

  test('has a native lock for each platform that lmdb has a native part for', () => {
    const carried = [...text.matchAll(/^\s*"([a-z0-9]+-[a-z0-9]+)": "H4sI/gm)].map(([, one]) => one)
    const { optionalDependencies = {} } = installed('lmdb')
    const wanted = Object.keys(optionalDependencies)
      .map((name) => name.replace('@lmdb/lmdb-', ''))
      // 32-bit ARM is the one that fs-native-extensions does not build for.
      .filter((platform) => platform !== 'linux-arm')
    assert.deepEqual(carried.sort(), wanted.sort())
  })

  test('imports nothing but lmdb and what node has', () => {
    const { metafile } = buildSync({
      entryPoints: [bundle],
      bundle: true,
      write: false,
      metafile: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
    })
    const [made] = Object.values(metafile.outputs)
    const names = new Set(made?.imports.map(({ path }) => path))
    const outside = [...names].filter((name) => !builtinModules.includes(name.replace('node:', '')))
    assert.deepEqual(outside, ['lmdb'])
    assert.ok(names.has('node:http'), 'imports are listed')
  })

  test('tells nothing of the machine it was made on, and names whose work it carries', () => {
    const readable = text.replaceAll(/"[A-Za-z0-9+/=]{200,}"/g, '""')
    assert.ok(readable.length < text.length, 'the pattern finds the native parts')
    const places = readable.split(top).length - 1
    assert.equal(places, 0)
    const named = readable.match(/^ *\/\/ \S+\.(ts|js|json)$/gm) ?? []
    assert.ok(named.length > 0, 'the pattern finds the names of source files')
    const outside = named.filter((name) => !/\/\/ (src|bin|node_modules|conveyor\.ts)/.test(name))
    assert.deepEqual(outside, [])
    for (const name of ['fs-native-extensions', 're2js', 'moment', 'saxes', 'xmlchars']) {
      assert.ok(readable.includes(`${name} ${installed(name).version}`), name)
    }
  })
})
