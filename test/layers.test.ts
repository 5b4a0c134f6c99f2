/**
 * The source keeps its layers: a file imports only from its own layer or those below, there are no
 * circles, and what only one file may do stands in that file alone.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { top } from './support/package-folder.ts'

const src = join(top, 'src')

/** Lowest first: a folder, a file, and last `*`, the other files at the top of src. */
const layers = [
  'core',
  'codec',
  'certs',
  'tracing',
  'store/disk',
  'store/changes',
  'store',
  'cluster',
  'backups',
  'process',
  'engine/api',
  'engine/transactions',
  'engine/access',
  'engine/tasks',
  'engine/limits',
  'engine/replays',
  'engine/requests',
  'engine/jobs',
  'engine/definitions',
  'engine/drafts',
  'engine/schedules',
  'engine/timers',
  'engine/changes',
  'engine/search',
  'engine/flow',
  'engine/file',
  'engine',
  'executors',
  'files',
  'metrics',
  'task-operations',
  'management',
  'console/overview',
  'console/diagram',
  'server/tls',
  'server/admin',
  'server/http',
  'server/grpc',
  'console/server',
  'console/page',
  'server/operator',
  'client',
  'open.ts',
  'cli',
  '*',
] as const

interface Source {
  readonly path: string
  readonly text: string
  readonly layer: number
  readonly imports: readonly string[]
  readonly packages: readonly string[]
}

const import_pattern = /(?:from|import)\s*\(?\s*'([^']+)'/g

const sources: Source[] = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.d.ts'))
  // What a generator wrote imports nothing of ours, and its looks are its own.
  .filter((name) => !name.startsWith('server/grpc/generated/'))
  .map((name) => {
    const text = readFileSync(join(src, name), 'utf8')
    const named = [...text.matchAll(import_pattern)].map((match) => match[1] as string)
    return {
      path: name,
      text,
      layer: layerOf(name),
      imports: named
        .filter((one) => one.startsWith('.'))
        .map((one) => relative(src, join(src, dirname(name), one))),
      packages: named.filter((one) => !one.startsWith('.')),
    }
  })

function layerOf(name: string): number {
  const at = layers.findIndex((layer) => name === layer || name.startsWith(`${layer}/`))
  return at === -1 ? layers.length - 1 : at
}

test('imports point to the same layer or to one below', () => {
  const up = sources.flatMap(({ path, imports, layer }) =>
    imports.filter((target) => layerOf(target) > layer).map((target) => `${path} → ${target}`),
  )
  assert.deepEqual(up, [])
})

test('each folder of src is a layer, or has its folders in layers', () => {
  const without = sources.filter(
    ({ path, layer }) => path.includes('/') && layer === layers.length - 1,
  )
  assert.deepEqual(
    without.map(({ path }) => path),
    [],
  )
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
  [/\bprocess\.env\b/, /^store\/commit-log\/checkpoint-process\.ts$/],
  // A process of its own.
  [/\bprocess\.(exit|on)\b/, /^store\/commit-log\/checkpoint-child\.ts$/],
  [/'lmdb'/, /^store\/lmdb\//],
  [/fs-native-extensions\//, /^store\/disk\/lock-addon\.ts$/],
  [/\bkey_types\b/, /^codec\/keys\.ts$/],
  [/String\.fromCharCode\(/, /^codec\/(ids|keys|json-scanner|task-history)\.ts$/],
  [/\bJSON\.parse\(/, /^codec\/(json|json-exact|json-scanner)\.ts$/],
  [/: any\b|<any>|as any\b/, /^nowhere$/],
  [/^(export )?(const )?enum /m, /^nowhere$/],
  [/^export default/m, /^nowhere$/],
  [/^export \* from/m, /^nowhere$/],
  [/^(export )?(abstract )?class /m, /^nowhere$/],
  [/ instanceof (?!Error\b|Uint8Array\b|ArrayBuffer\b)/, /^nowhere$/],
]

/** The page runs in a browser, which has its own clock and parses what it gets itself. */
const of_browser = new Set([/\bsetTimeout\(|\bsetInterval\(/, /\bJSON\.parse\(/].map(String))

for (const [pattern, allowed] of onlyIn) {
  test(`${pattern.source} only in ${allowed.source}`, () => {
    const is_for_page = !of_browser.has(String(pattern))
    const found = sources
      .filter(({ path }) => is_for_page || !path.startsWith('console/page/'))
      .filter(({ path, text }) => !allowed.test(path) && pattern.test(withoutComments(text)))
      .map(({ path }) => path)
    assert.deepEqual(found, [])
  })
}

test('definitions import re2js and node:crypto alone, and the engine no HTTP', () => {
  const packagesOf = (folder: string) =>
    sources.filter(({ path }) => path.startsWith(folder)).flatMap(({ packages }) => packages)
  const digest = 'process/functions/digest.ts'
  assert.deepEqual(packagesOf(digest), ['node:crypto'])
  const others = sources.filter(({ path }) => path.startsWith('process/') && path !== digest)
  assert.deepEqual(new Set(others.flatMap(({ packages }) => packages)), new Set(['re2js']))
  assert.ok(!packagesOf('engine/').includes('node:http'))
})

/**
 * Uses of a dependency beyond its public interface, as text tells them: imports deeper than its
 * exports, members with a leading underscore, members named in brackets (which TypeScript lets
 * through where they are private), patches of what it exports, and casts that could open it.
 */
function privateUses(path: string, text: string): string[] {
  const code = withoutComments(text)
  const uses: string[] = []
  for (const [, name = ''] of code.matchAll(
    /(?:from|import\(|require\(|import)\s*'([^'.][^']*)'/g,
  )) {
    if (isDeeper(name)) uses.push(name)
  }
  const imported = [...code.matchAll(/import (?:type )?(.+?) from '(?!node:|\.)[^']+'/gs)].flatMap(
    ([, clause = '']) => [...clause.matchAll(/\w+(?=\s*(?:,|\}|$))/g)].map(([name]) => name),
  )
  const own = imported.length === 0 ? '(?!)' : `(?:${imported.join('|')})`
  const patterns = [
    /[\w)\]]\??\._\w+(?<!__)\b/g,
    /\{(?:[^{}()]*,)?\s*_\w+\s*(?:[,=][^{}()]*)?\}\s*=(?![=>])/g,
    /(?<![\w.])(?:[a-z_]\w*|\))(?:\?\.)?\['[A-Za-z_$][\w$]*'\]/g,
    new RegExp(`\\b${own}\\.prototype\\b|\\b${own}(?:\\.\\w+)+ = `, 'g'),
    new RegExp(`\\b(?:defineProperty|assign|setPrototypeOf)\\(${own}\\b`, 'g'),
    ...(path.startsWith('test/') ? [] : [/ as (?:unknown|never) as (?:\{\n)?[^\n]*/g]),
  ]
  for (const pattern of patterns)
    uses.push(...[...code.matchAll(pattern)].map(([use]) => use.trim()))
  return uses.filter((use) => !allowed_casts.has(use)).map((use) => `${path}: ${use}`)
}

/** Casts of src and bin that open nothing private, and why the types do not do without them. */
const allowed_casts = new Map([
  ['as unknown as ApiParts', 'the groups of a regular expression, which it always has'],
  ['as unknown as Handlers', 'handlers of the health service, by the names of its rpcs'],
  ['as unknown as TaskService }', 'what the loader makes, as its generator types it'],
  ['as unknown as QuickJSSyncVariant', 'its types are those of CommonJS, the import is a module'],
  ['as unknown as RootDatabase<Buffer, ByteSlice>', 'a key encoder of our own takes such keys'],
  [
    'as unknown as {\n  readonly WebAssembly: {',
    'WebAssembly of Node, which its types leave to those of a browser',
  ],
  [
    'as unknown as { readonly WebAssembly: WasmMemory }).WebAssembly',
    'WebAssembly of Node, which its types leave to those of a browser',
  ],
])

/** Whether a specifier names a path in a package that the package does not export. */
function isDeeper(specifier: string): boolean {
  const [, name = '', path = ''] = /^((?:@[^/]+\/)?[^/]+)(\/.+)?$/.exec(specifier) ?? []
  const manifest = join(top, 'node_modules', name, 'package.json')
  if (path === '' || !existsSync(manifest)) return false
  return JSON.parse(readFileSync(manifest, 'utf8')).exports?.[`.${path}`] === undefined
}

test('no private member of a dependency is read, called or replaced', () => {
  const files = ['src', 'bin', 'test'].flatMap((folder) =>
    readdirSync(join(top, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('server/grpc/generated/'))
      .map((name) => join(folder, name)),
  )
  const found = files
    .filter((path) => path !== 'test/layers.test.ts')
    .flatMap((path) => privateUses(path, readFileSync(join(top, path), 'utf8')))
  assert.deepEqual(found, [])
})

const server_import = "import { Server } from '@grpc/grpc-js'\nconst server = new Server()\n"

for (const line of [
  "import { Http2SubchannelConnector } from '@grpc/grpc-js/build/src/transport'",
  "const deep = await import('@grpc/grpc-js/build/src/server')",
  'server._streamHandler = handler',
  'const { _streamHandler } = server',
  "const options = server['commonServerOptions']",
  'Server.prototype.start = start',
  'Object.assign(Server, { start })',
  'const opened = server as unknown as { commonServerOptions: object }',
  'const opened = server as unknown as {\n  commonServerOptions: object }',
]) {
  test(`found as private: ${line}`, () => {
    const uses = privateUses('src/server/grpc/server.ts', `${server_import}${line}\n`)
    assert.equal(uses.length, 1, uses.join('\n'))
  })
}

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
