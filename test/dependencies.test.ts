/**
 * What the package depends on: pinned, without known faults, none with an install script that must
 * run, all of it in the list of packages that it ships, and signed (bin/signatures.ts).
 */
import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { carriedFolders } from '../bin/carried.ts'
import { version } from '../src/core/version.ts'
import { installed, run, tempFolder, top } from './support/package-folder.ts'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies: Record<string, string>
  readonly devDependencies: Record<string, string>
  readonly allowScripts: Record<string, boolean>
  readonly engines: { readonly node: string }
}

interface Locked {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
  readonly engines?: { readonly node?: string }
  readonly optionalDependencies?: Record<string, string>
}

const manifest = readJson<Manifest>('package.json')
const lock = readJson<{ packages: Record<string, Locked> }>('package-lock.json')
const folder = tempFolder()
after(() => folder.remove())

describe('versions', () => {
  test('the program tells the version of its package', () =>
    assert.equal(version, manifest.version))

  test('each package takes the oldest Node of ours, so that npm warns of none', () => {
    const oldest = Number(/\d+/.exec(manifest.engines.node)?.[0])
    const newer = Object.entries(lock.packages).filter(([, { engines }]) => {
      const majors = [...(engines?.node ?? '').matchAll(/(?:\^|>=?|^)\s*v?(\d+)/g)]
      return majors.length > 0 && majors.every(([, major]) => Number(major) > oldest)
    })
    assert.deepEqual(
      newer.map(([path, { engines }]) => [path, engines?.node]),
      [],
    )
  })

  const direct = { ...manifest.dependencies, ...manifest.devDependencies }
  for (const [name, wanted] of Object.entries(direct)) {
    test(`${name} is pinned, and what is pinned is installed`, () => {
      // A second version of a package has another name here: npm:typescript@5.9.3.
      const [, pinned] = /^(?:npm:[a-z]+@)?(\d+\.\d+\.\d+)$/.exec(wanted) ?? []
      assert.ok(pinned, wanted)
      assert.equal(lock.packages[`node_modules/${name}`]?.version, pinned)
      assert.equal(installed(name).version, pinned)
    })
  }

  test('lmdb is the version whose order of syncs was looked at', () => {
    assert.equal(manifest.dependencies.lmdb, '3.5.6')
  })

  // `npm ci` refuses a lock that leaves out what only another platform needs.
  test('the lock has each optional package, and what its bytes must be', () => {
    const entries = Object.entries(lock.packages)
    const optional = entries.flatMap(([, entry]) => Object.keys(entry.optionalDependencies ?? {}))
    assert.deepEqual(
      optional.filter((name) => !(`node_modules/${name}` in lock.packages)),
      [],
    )
    const unsure = entries.filter(([path, entry]) => path !== '' && entry.integrity === undefined)
    assert.deepEqual(unsure, [])
  })

  /** [package, the first version without the fault, the advisory] */
  const floors: readonly (readonly [string, string, string])[] = [
    ['msgpackr', '1.10.1', 'CVE-2023-52079'],
    ['esbuild', '0.25.0', 'GHSA-67mh-4wv8-f99w'],
    ['semver', '7.5.2', 'CVE-2022-25883'],
    ['ansi-regex', '5.0.1', 'CVE-2021-3807'],
    ['marked', '4.0.10', 'CVE-2022-21680'],
    ['highlight.js', '10.4.1', 'GHSA-7wwv-vh3v-89cq'],
  ]
  for (const [name, floor, advisory] of floors) {
    test(`${name} is at least ${floor} (${advisory})`, () => {
      const found = Object.entries(lock.packages).filter(([path]) =>
        `/${path}`.endsWith(`/node_modules/${name}`),
      )
      assert.ok(found.length > 0, 'the row stands for nothing that is installed')
      for (const [path, entry] of found) assert.ok(isAtLeast(entry.version, floor), path)
    })
  }
})

describe('install scripts', () => {
  const scripted = Object.entries(lock.packages).filter(([, one]) => one.hasInstallScript)
  const names = (entries: readonly (readonly [string, Locked])[]) =>
    entries.map(([path]) => nameOf(path)).toSorted()

  // biome-ignore format: a table
  /** [package, why its script need not run, whether it is needed at run time] */
  const rows: readonly (readonly [string, string, boolean])[] = [
    ['@bufbuild/buf',    'puts its program in place of a script that starts it',            false],
    ['esbuild',          'puts its program in place of a script that starts it',            false],
    ['lmdb',             'compiles where none of its packages @lmdb has the platform',      true],
    ['msgpackr-extract', 'as lmdb, and msgpackr does without',                              true],
    ['protobufjs',       'warns of the way in which a project names its version, no more',  true],
  ]
  test('none but these, of which none must run', () => {
    const of = (is_wanted: boolean) =>
      rows.filter(([, , is_needed]) => is_needed === is_wanted).map(([name]) => name)
    assert.deepEqual(names(scripted.filter(([, one]) => !one.dev)), of(true))
    assert.deepEqual(names(scripted.filter(([, one]) => one.dev)), of(false))
  })
  test('npm is told not to run them', () => {
    assert.deepEqual(manifest.allowScripts, Object.fromEntries(rows.map(([name]) => [name, false])))
    const ci = readFileSync(join(top, '.ci/run'), 'utf8')
    assert.deepEqual(ci.match(/npm (ci|install)\b.*/g), ['npm ci --ignore-scripts'])
  })
  test('lmdb has a package for each platform that it compiles for', () => {
    const { optionalDependencies = {} } = lock.packages['node_modules/lmdb'] as Locked
    for (const platform of [
      'darwin-arm64',
      'darwin-x64',
      'linux-arm64',
      'linux-x64',
      'win32-x64',
    ]) {
      assert.ok(`@lmdb/lmdb-${platform}` in optionalDependencies, platform)
    }
  })
})

interface Component {
  readonly name: string
  readonly version: string
  readonly hashes: readonly { readonly alg: string; readonly content: string }[]
  readonly licenses: readonly (
    | { readonly license: { readonly id: string } }
    | { readonly expression: string }
  )[]
}

describe('the list of packages', () => {
  test('has each that is needed or shipped, its version, license and digest as in the lock', async () => {
    const file = join(folder.path, 'sbom.cdx.json')
    run(top, process.execPath, ['--import', 'tsx', 'bin/sbom.ts', file])
    const { metadata, components } = JSON.parse(readFileSync(file, 'utf8')) as {
      readonly metadata: { readonly component: Component }
      readonly components: readonly Component[]
    }
    assert.equal(metadata.component.name, manifest.name)
    assert.equal(metadata.component.version, version)
    const listed = components.map(({ name, version, hashes, licenses }) => {
      const [hash] = hashes
      assert.equal(hash?.alg, 'SHA-512')
      const digest = Buffer.from(hash.content, 'hex').toString('base64')
      const [license = { expression: '' }] = licenses
      const words = 'license' in license ? license.license.id : license.expression
      return [name, version, words, `sha512-${digest}`].join(' ')
    })
    const shipped = await carriedFolders(top)
    const locked = Object.entries(lock.packages).flatMap(([path, one]) => {
      if (path === '' || (one.dev && !shipped.includes(path))) return []
      return [[nameOf(path), one.version, one.license, one.integrity].join(' ')]
    })
    assert.deepEqual(listed.toSorted(), [...new Set(locked)].toSorted())
    const names = components.map(({ name }) => name)
    for (const name of [
      ...Object.keys(manifest.dependencies),
      ...shipped.map(nameOf),
      'protobufjs',
    ]) {
      assert.ok(names.includes(name), name)
    }
  })
})

describe('signatures of packages', () => {
  const one = { name: 'lmdb', version: '3.5.6' }
  // biome-ignore format: a table
  /** [what npm prints, its exit code, the sentence, the exit code] */
  const rows: readonly (readonly [unknown, number, RegExp, number])[] = [
    [{ invalid: [], missing: [] },                0, /^each package has the signature of its reg/, 0],
    [{ invalid: [one], missing: [] },             1, /^lmdb 3\.5\.6: wrong signature$/m,           1],
    [{ invalid: [], missing: [one] },             1, /^lmdb 3\.5\.6: no signature$/m,              1],
    [{ error: { summary: 'ENOTFOUND of host' } }, 1, /not checked, .* be had: ENOTFOUND of host\n/, 0],
    ['npm: a bug',                                7, /not checked, .* be had: no answer\n/,         0],
  ]
  for (const [printed, code, sentence, exit] of rows) {
    test(`where npm prints ${JSON.stringify(printed)}`, () => {
      const stand_in = join(folder.path, 'npm')
      const text = typeof printed === 'string' ? printed : JSON.stringify(printed)
      writeFileSync(stand_in, `#!/bin/sh\necho '${text}'\nexit ${code}\n`)
      chmodSync(stand_in, 0o755)
      const command = '"$0" --import tsx bin/signatures.ts 2>&1; echo "exit $?"'
      const told = run(top, 'sh', ['-c', command, process.execPath], {
        PATH: `${folder.path}:${process.env.PATH}`,
      })
      assert.match(told, sentence)
      assert.match(told, new RegExp(`exit ${exit}\n$`))
    })
  }
})

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

function readJson<T>(name: string): T {
  return JSON.parse(readFileSync(join(top, name), 'utf8')) as T
}

function isAtLeast(found: string, floor: string): boolean {
  return found.localeCompare(floor, 'en', { numeric: true }) >= 0
}
