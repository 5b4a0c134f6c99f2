/**
 * The house keeps its floors: a file imports only from its own floor or those below, there are no
 * circles, and what only one file may do stands in that file alone.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { top } from './support/package-folder.ts'

const src = join(top, 'src')

/** Lowest first: a folder, a file, and last `*`, the other files at the top of src. */
const floors = [
  'core',
  'codec',
  'certs',
  'store',
  'process',
  'engine',
  'executors',
  'server/admin',
  'server/http',
  'server/grpc',
  'client',
  'open.ts',
  'cli',
  '*',
] as const

interface Source {
  readonly path: string
  readonly text: string
  readonly floor: number
  readonly imports: readonly string[]
  readonly packages: readonly string[]
}

const import_pattern = /(?:from|import)\s*\(?\s*'([^']+)'/g

const sources: Source[] = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))
  // What a generator wrote imports nothing of ours, and its looks are its own.
  .filter((name) => !name.startsWith('server/grpc/generated/'))
  .map((name) => {
    const text = readFileSync(join(src, name), 'utf8')
    const named = [...text.matchAll(import_pattern)].map((match) => match[1] as string)
    return {
      path: name,
      text,
      floor: floorOf(name),
      imports: named
        .filter((one) => one.startsWith('.'))
        .map((one) => relative(src, join(src, dirname(name), one))),
      packages: named.filter((one) => !one.startsWith('.')),
    }
  })

function floorOf(name: string): number {
  const at = floors.findIndex((floor) => name === floor || name.startsWith(`${floor}/`))
  return at === -1 ? floors.length - 1 : at
}

test('imports point down the floors', () => {
  const up = sources.flatMap(({ path, imports, floor }) =>
    imports.filter((target) => floorOf(target) > floor).map((target) => `${path} → ${target}`),
  )
  assert.deepEqual(up, [])
})

test('there are no circles among imports', () => {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
    else if (!done.has(path)) {
      for (const next of byPath.get(path)?.imports ?? []) visit(next, [...trail, path])
      done.add(path)
    }
  }
  for (const { path } of sources) visit(path, [])
  assert.deepEqual(circles, [])
})

/** [what, the files that alone may have it] */
const onlyIn: readonly (readonly [RegExp, RegExp])[] = [
  [/\bDate\.now\(/, /^core\/clock\.ts$/],
  [/\bnew Date\(\)/, /^nowhere$/],
  [/\bsetTimeout\(|\bsetInterval\(/, /^core\/clock\.ts$/],
  [/\bMath\.random\(|\brandomBytes\(/, /^core\/clock\.ts$/],
  [/\bprocess\.env\b/, /^nowhere$/],
  [/\bprocess\.(exit|on)\b/, /^nowhere$/],
  [/'lmdb'/, /^store\/lmdb\//],
  [/'fs-native-extensions'/, /^store\/file-lock\.ts$/],
  [/\bkey_types\b/, /^codec\/keys\.ts$/],
  [/String\.fromCharCode\(/, /^codec\/(keys|json-exact)\.ts$/],
  [/\bJSON\.parse\(/, /^codec\/(json|envelope)\.ts$/],
  [/: any\b|<any>|as any\b/, /^nowhere$/],
  [/^(export )?(const )?enum /m, /^nowhere$/],
  [/^export default/m, /^nowhere$/],
  [/^export \* from/m, /^nowhere$/],
  [/^(export )?(abstract )?class /m, /^nowhere$/],
  [/ instanceof (?!Error\b|Uint8Array\b|ArrayBuffer\b)/, /^nowhere$/],
]

for (const [pattern, allowed] of onlyIn) {
  test(`${pattern.source} only in ${allowed.source}`, () => {
    const found = sources
      .filter(({ path, text }) => !allowed.test(path) && pattern.test(withoutComments(text)))
      .map(({ path }) => path)
    assert.deepEqual(found, [])
  })
}

test('logic sees no store, engine or door, and the engine no door', () => {
  const packagesOf = (folder: string) =>
    sources.filter(({ path }) => path.startsWith(folder)).flatMap(({ packages }) => packages)
  const digest = 'process/functions/digest.ts'
  assert.deepEqual(packagesOf(digest), ['node:crypto'])
  const others = sources.filter(({ path }) => path.startsWith('process/') && path !== digest)
  assert.deepEqual(new Set(others.flatMap(({ packages }) => packages)), new Set(['re2js']))
  assert.ok(!packagesOf('engine/').includes('node:http'))
})

test('each file opens with what it is for, and is read in a minute or two', () => {
  const lines_max = 400
  const columns_max = 100
  const wrong = sources.flatMap(({ path, text }) => {
    const lines = text.split('\n')
    const wide = lines.findIndex((line) => line.length > columns_max)
    return [
      ...(text.startsWith('/**') || text.startsWith('#!') ? [] : [`${path}: no head comment`]),
      ...(lines.length > lines_max ? [`${path}: ${lines.length} lines`] : []),
      ...(wide === -1 ? [] : [`${path}:${wide + 1}: ${lines[wide]?.length} columns`]),
      ...(/\b(TODO|FIXME|XXX)\b/.test(text) ? [`${path}: something is left to do`] : []),
    ]
  })
  assert.deepEqual(wrong, [])
})

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
}
