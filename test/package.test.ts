/**
 * The package as its user gets it: built, packed, installed into an empty folder, imported,
 * compiled against and run. What it depends on is tested in dependencies.test.ts.
 *
 * It builds into a folder of its own, so `dist` of the checkout is neither needed nor touched.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { build as esbuild } from 'esbuild'
import { type InlineConfig, build as viteBuild } from 'vite'
import { version } from '../src/core/version.ts'
import { startServe } from './support/cli-serve.ts'
import { linkPackages, run, tempFolder, top, withDependencies } from './support/package-folder.ts'

const manifest = readJson<Manifest>('package.json')

/** A test that runs in a test has variables that change what it prints. */
const path_only = { PATH: process.env.PATH }

interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies: Record<string, string>
  readonly optionalDependencies: Record<string, string>
  readonly exports: Record<string, unknown>
}

describe('the package', () => {
  const folder = tempFolder()
  const user = join(folder.path, 'user')

  before(() => {
    const staged = join(folder.path, 'staged')
    mkdirSync(staged)
    for (const name of [
      'package.json',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'CHANGELOG.md',
      'llms.txt',
    ]) {
      if (existsSync(join(top, name))) cpSync(join(top, name), join(staged, name))
    }
    cpSync(join(top, 'deploy'), join(staged, 'deploy'), { recursive: true })
    cpSync(join(top, 'src'), join(staged, 'src'), {
      recursive: true,
      filter: (path) => path.endsWith('.md') || statSync(path).isDirectory(),
    })
    run(top, process.execPath, ['--import', 'tsx', 'bin/build.ts', join(staged, 'dist')])
    install(user, staged)
  })
  after(() => folder.remove())

  test('holds what is used and nothing else', () => {
    const allowed =
      /^(package\.json|LICENSE|(README|SECURITY|CHANGELOG)\.md|llms\.txt|dist\/sbom\.cdx\.json|dist\/THIRD-PARTY-NOTICES\.txt|deploy\/[A-Za-z-]+(\.[a-z]+)?|src\/([a-z-]+\/)*[A-Za-z-]+\.md|dist\/bin\/conveyor(-engine)?\.js|dist\/vendor\/[a-z0-9-]+\.js|dist\/vendor\/prom-client\.d\.ts|dist\/src\/executors\/quickjs\.wasm|dist\/src\/([a-z-]+\/)*[a-z0-9-]+(\.js|\.d\.ts|\.conv\.json)|dist\/src\/cli\/starter\/(order|service|order\.test)\.mjs|dist\/src\/cli\/starter\/Containerfile|dist\/src\/examples\/[a-z-]+\.mjs|dist\/src\/console\/page\/built\/(page\.(js|css)|icon\.svg)|dist\/src\/store\/disk\/lock-addons\/(LICENSE|[a-z0-9]+-[a-z0-9]+\.node))$/
    const place = join(user, 'node_modules', manifest.name)
    const paths = readdirSync(place, { recursive: true, encoding: 'utf8' }).filter(
      (path) => !statSync(join(place, path)).isDirectory(),
    )
    assert.deepEqual(
      paths.filter((path) => !allowed.test(path)),
      [],
    )
    const readme = readFileSync(join(top, 'README.md'), 'utf8')
    const wanted = [
      ...Array.from(readme.matchAll(/\]\((src\/[^)#]+\.md)/g), ([, page = '']) => page),
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'CHANGELOG.md',
      'deploy/conveyor.service',
      'dist/bin/conveyor-engine.js',
      'dist/bin/conveyor.js',
      'dist/sbom.cdx.json',
      'dist/THIRD-PARTY-NOTICES.txt',
      'dist/src/console/page/built/icon.svg',
      'dist/src/console/page/built/page.css',
      'dist/src/console/page/built/page.js',
      'dist/src/examples/callback.conv.json',
      'dist/src/http.d.ts',
      'dist/src/http.js',
      'dist/src/index.d.ts',
      'dist/src/index.js',
      'llms.txt',
      'package.json',
    ]
    assert.deepEqual(
      wanted.filter((path) => !paths.includes(path)),
      [],
    )
  })

  test('its program can be executed and names its interpreter', () => {
    const program = join(user, 'node_modules', manifest.name, 'dist/bin/conveyor.js')
    assert.equal(statSync(program).mode & 0o111, 0o111)
    assert.match(readFileSync(program, 'utf8'), /^#!\/usr\/bin\/env node\n/)
  })

  test('runs as a command', () => {
    const program = join(user, 'node_modules/.bin/conveyor')
    assert.match(run(user, program, ['--help']), /^npx conveyor VERB/)
    assert.equal(run(user, program, ['--version']), `${version}\n`)
  })

  test('serves, and no install script has run for it', async () => {
    const program = join(user, 'node_modules/.bin/conveyor')
    const db = join(folder.path, 'served.lmdb')
    const off = ['--operator', 'off']
    const args = ['serve', '--demo', '--json', '--http', '127.0.0.1:0', ...off, '--db', db]
    const served = await startServe([program, ...args])
    const answer = await fetch(`${served.url}/healthz`)
    assert.deepEqual([answer.status, await answer.json()], [200, { request_proc: 'ok' }])
    assert.equal(await served.stop(), 0, served.err())
  })

  test('by the name of the package it starts the demo with its page, and has every verb', async () => {
    const program = join(user, 'node_modules/.bin/conveyor-engine')
    const local = ['CONVEYOR_HTTP=127.0.0.1:0', 'CONVEYOR_OPERATOR=127.0.0.1:0', 'CONVEYOR_JSON=1']
    const db = `CONVEYOR_DB=${join(folder.path, 'demo.lmdb')}`
    const served = await startServe(['env', ...local, db, program])
    const { state, link } = served.line.demo as { state: string; link: string }
    assert.equal(state, 'made')
    assert.match(await (await fetch(link)).text(), /<script/)
    assert.equal(await served.stop(), 0, served.err())
    assert.match(run(user, program, ['--help']), /^npx conveyor-engine VERB/)
  })

  test('writes a service whose test passes, and which runs', async () => {
    const program = join(user, 'node_modules/.bin/conveyor-engine')
    const { next } = JSON.parse(run(user, program, ['init', '--json'])) as { next: string[] }
    assert.deepEqual(next, ['node --test', 'node service.mjs'])
    assert.match(run(user, process.execPath, ['--test', 'order.test.mjs'], path_only), /pass 2/)
    const env = {
      ...path_only,
      PORT: '0',
      OPERATOR_PORT: '0',
      CONVEYOR_DB: join(folder.path, 'own.lmdb'),
    }
    const child = spawn(process.execPath, ['service.mjs'], { cwd: user, env })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const [url = ''] = /http:\/\/[\d.:]+/.exec(String(line)) ?? []
    const ask = async (method: string) => {
      const answer = await fetch(`${url}/order-1`, { method })
      return (await answer.json()) as Record<string, unknown> & { data: { receipt: string } }
    }
    assert.equal((await ask('POST')).proc, 'ok')
    assert.equal((await ask('PUT')).proc, 'ok')
    while ((await ask('GET')).node_id !== 'done') await new Promise((done) => setTimeout(done, 10))
    assert.match((await ask('GET')).data.receipt, /^120 charged as /)
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'close'), [0, null])
  })

  test('makes traces where their package is installed, and says so where it is not', () => {
    const program = join(user, 'node_modules/.bin/conveyor')
    const args = ['serve', '--traces', '--db', join(folder.path, 'never.lmdb')]
    assert.throws(
      () => run(user, program, args),
      /--traces needs @opentelemetry\/api: `npm install/,
    )
    linkPackages(user, ['@opentelemetry/api'])
    assert.equal(run(user, process.execPath, ['-p', tracing_program]), 'function\n')
  })

  test('is imported by its names, and by no other', () => {
    writeFileSync(
      join(user, 'names.mjs'),
      `
      import * as library from 'conveyor-engine'
      import * as http from 'conveyor-engine/http'
      import * as grpc from 'conveyor-engine/grpc'
      import * as client from 'conveyor-engine/client'
      import * as operator from 'conveyor-engine/operator'
      import * as page from 'conveyor-engine/console'
      import * as metrics from 'conveyor-engine/metrics'
      import * as testing from 'conveyor-engine/testing'
      import * as tracing from 'conveyor-engine/tracing'
      import { defineProcess, end, go } from 'conveyor-engine/define'
      import example from 'conveyor-engine/examples/callback.conv.json' with { type: 'json' }
      import manifest from 'conveyor-engine/package.json' with { type: 'json' }
      const hidden = await import('conveyor-engine/dist/src/open.js').catch(({ code }) => code)
      console.log(JSON.stringify({
        library: Object.keys(library).sort(),
        http: Object.keys(http),
        grpc: Object.keys(grpc),
        client: Object.keys(client).sort(),
        operator: Object.keys(operator),
        console: Object.keys(page),
        metrics: Object.keys(metrics),
        testing: Object.keys(testing),
        tracing: Object.keys(tracing),
        example: example.obj_id,
        version: manifest.version,
        defined: defineProcess({ id: 1, nodes: { start: go('end'), end: end() } }).obj_id,
        hidden,
      }))`,
    )
    const told = JSON.parse(run(user, process.execPath, ['--no-warnings', 'names.mjs']))
    assert.deepEqual(told, {
      library: ['isFault', 'openEngine', 'rawJson', 'version'],
      http: ['createHandler', 'serveHttp'],
      grpc: ['serveGrpc'],
      client: ['connect', 'isClientFault', 'rawJson'],
      operator: ['serveOperator'],
      console: ['createConsole'],
      metrics: ['engineMetrics', 'nodeMetrics'],
      testing: ['settled', 'testClock'],
      tracing: ['openTelemetryTracing'],
      example: 1234,
      version,
      defined: 1,
      hidden: 'ERR_PACKAGE_PATH_NOT_EXPORTED',
    })
  })

  // biome-ignore format: a table
  const embedded: readonly (readonly [string, string, string, RegExp])[] = [
    ['commonjs',   'main.cjs',    '',                    /^ok true\n$/],
    // Imports of JSON are called experimental by Node 20.
    ['threads',    'threads.mjs', '--no-warnings',       /^ok {"amount":120}\nfile_held\n$/],
    ['drafts',     'drafts.mjs',  '--no-warnings',       /^\w{24} .*"done" is no node\n2 2\nfalse \[\]\n$/],
    ['route',      'route.mjs',   '',                    /^202 {}\n200 {"amount":120,"paid":true}\n$/],
    ['test-clock', 'clock.mjs',   '--test-reporter=tap', /^# pass 1$/m],
    ['vitest',     'vitest.mjs',  '--test-reporter=tap', /^# pass 1$/m],
    ['vitest',     'mock.mjs',    '--test-reporter=tap', /^# pass 1$/m],
  ]
  for (const [name, file, flags, wanted] of embedded) {
    test(`runs as the page on embedding has it: ${file}`, () => {
      writeFileSync(join(user, file), embeddingProgram(name))
      writeFileSync(join(user, 'order.mjs'), orderModule())
      writeFileSync(join(user, 'vitest-stand-in.mjs'), file === 'mock.mjs' ? mock : vitest)
      const told = run(user, 'sh', ['-c', `"$0" ${flags} ${file} 2>&1`, process.execPath], {
        PATH: process.env.PATH,
      })
      assert.match(told, wanted)
    })
  }

  test('is required by CommonJS by all its names', () => {
    const names = [
      '',
      '/http',
      '/grpc',
      '/client',
      '/files',
      '/operator',
      '/console',
      '/metrics',
      '/testing',
      '/tracing',
      '/examples/callback.conv.json',
    ]
    const all = names.map((name) => `require('conveyor-engine${name}')`).join()
    assert.equal(run(user, process.execPath, ['-p', `[${all}].length`]), `${names.length}\n`)
  })

  test('brings the operator’s page', () => {
    writeFileSync(join(user, 'page.mjs'), page_program)
    const told = run(user, process.execPath, ['--no-warnings', 'page.mjs'])
    assert.equal(told, '200 text/html\n200 text/javascript\n200 text/css\n200 image/svg+xml\n')
  })

  test('brings the libraries that code requires', () => {
    writeFileSync(join(user, 'code.mjs'), code_program)
    const told = run(user, process.execPath, ['--no-warnings', 'code.mjs'])
    assert.equal(told, '2001-09-09 04 d41d8cd98f00b204e9800998ecf8427e b\n')
  })

  test('brings the packages that it is built with', () => {
    linkPackages(user, ['prom-client'])
    writeFileSync(join(user, 'carried.mjs'), carried_program)
    const env = { PATH: process.env.PATH }
    const output = run(user, process.execPath, ['--no-warnings', 'carried.mjs'], env)
    assert.deepEqual(JSON.parse(output), {
      health: 'SERVING',
      services: ['conveyor.v1.TaskService'],
      metrics: [true, true],
      files: readdirSync(join(user, 'node_modules', manifest.name, 'dist/vendor')).filter((name) =>
        name.endsWith('.js'),
      ).length,
    })
    const program = join(user, 'node_modules/.bin/conveyor')
    run(user, program, ['certs', 'init', 'tls'])
    assert.ok(existsSync(join(user, 'tls/server.crt')))
    const db = ['--db', join(folder.path, 'drawn.lmdb')]
    const example = join('node_modules', manifest.name, 'dist/src/examples/callback.conv.json')
    run(user, program, ['process', 'import', example, ...db])
    assert.match(run(user, program, ['process', 'show', '1234', '--svg', ...db]), /<svg /)
    const away = ['cluster', 'status', '--commit-log', 'postgres://u@127.0.0.1:1/x']
    assert.throws(() => run(user, program, away), /ECONNREFUSED/)
  })

  test('keeps its budget: packages, size, modules of the import, memory of an empty engine', () => {
    const { optionalDependencies, dependencies } = manifest
    const found = new Set<string>()
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      withDependencies(name, found)
    }
    assert.ok(found.size + 1 <= 50, `${found.size + 1} packages`)
    const own = join(user, 'node_modules', manifest.name)
    const folders = [...found].map((name) => join(top, 'node_modules', name))
    const size = Math.round([own, ...folders].reduce((sum, at) => sum + bytesOf(at), 0) / 1e6)
    assert.ok(size <= 45, `${size} MB`)
    const modules = staticImports(join(own, 'dist/src/index.js'))
    assert.ok(modules.size <= 330, `${modules.size} modules`)
    writeFileSync(join(user, 'empty.mjs'), empty_program)
    const rss = Number(run(user, process.execPath, ['empty.mjs'])) / 1e6
    assert.ok(rss > 30 && rss <= 110, `${rss} MB`)
  })

  /** [what, how it is built into a file, whether it then opens] */
  const bundles: [string, (entry: string, out: string) => unknown, boolean][] = [
    [
      'esbuild as it comes',
      (entry, outfile) => esbuild({ ...quiet, entryPoints: [entry], outfile }),
      false,
    ],
    [
      'esbuild to a module',
      (entry, outfile) => esbuild({ ...quiet, entryPoints: [entry], outfile, format: 'esm' }),
      false,
    ],
    [
      'esbuild with lmdb beside it',
      (entry, outfile) =>
        esbuild({
          ...quiet,
          ...{ entryPoints: [entry], outfile, format: 'esm' },
          external: ['lmdb', 'fs-native-extensions'],
        }),
      false,
    ],
    [
      'esbuild that leaves packages out',
      (entry, outfile) =>
        esbuild({ ...quiet, entryPoints: [entry], outfile, format: 'esm', packages: 'external' }),
      true,
    ],
    ['Vite as it comes', (entry, out) => vite(entry, out, {}), true],
    ['Vite that takes packages in', (entry, out) => vite(entry, out, { noExternal: true }), false],
  ]
  for (const [at, [what, build, opens]] of bundles.entries()) {
    test(`bundled by ${what} it ${opens ? 'opens' : 'says what to ship'}`, async () => {
      const entry = join(user, 'bundled.ts')
      writeFileSync(
        entry,
        `
        import { openEngine } from 'conveyor-engine'
        openEngine(process.argv[2] as string)
          .then(async (engine) => { await engine.close(); console.log('opened') })
          .catch(({ code, message }) => console.log(code, message))`,
      )
      const out = join(user, 'out', `${at}`, opens || at > 0 ? 'bundle.mjs' : 'bundle.cjs')
      await build(entry, out)
      const told = run(user, process.execPath, ['--no-warnings', out, `${at}.lmdb`])
      const refused = /^not_possible checkpoint-child\.js is not beside .* ship node_modules/
      assert.match(told, opens ? /^opened$/m : refused)
      assert.equal(existsSync(join(user, `${at}.lmdb`)), opens)
    })
  }

  for (const compiler of ['typescript', 'typescript5']) {
    const { version: of } = readJson<Manifest>(`node_modules/${compiler}/package.json`)
    test(`every entry point compiles strictly with TypeScript ${of}, declarations too`, () => {
      // The peer of conveyor-engine/tracing.
      linkPackages(user, ['@opentelemetry/api'])
      writeFileSync(join(user, 'every.mts'), everyEntryPoint())
      writeFileSync(join(user, 'consumer.ts'), consumer)
      writeFileSync(join(user, 'common.cts'), common)
      const options = {
        module: 'nodenext',
        target: 'es2023',
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        resolveJsonModule: true,
        skipLibCheck: false,
        noEmit: true,
        types: ['node'],
      }
      const project = {
        compilerOptions: options,
        files: ['every.mts', 'consumer.ts', 'common.cts'],
      }
      writeFileSync(join(user, 'tsconfig.json'), JSON.stringify(project))
      run(user, process.execPath, [join(top, 'node_modules', compiler, 'bin/tsc'), '-p', '.'])
    })
  }
})

/** A module that uses each entry point by its name in `exports`. */
function everyEntryPoint(): string {
  const names = Object.keys(manifest.exports).map((key) => key.replace('*', 'callback.conv.json'))
  const imports = names.map((name, at) => {
    const json = name.endsWith('.json') ? " with { type: 'json' }" : ''
    const what = json === '' ? `* as e${at}` : `e${at}`
    return `import ${what} from '${name.replace('.', manifest.name)}'${json}\n`
  })
  return `${imports.join('')}export const all: readonly unknown[] = [${names.map((_, at) => `e${at}`)}]\n`
}

function embeddingProgram(name: string): string {
  const page = readFileSync(join(top, 'src/embedding.md'), 'utf8')
  const [, source = ''] =
    new RegExp(`<!-- run: ${name} -->\\n\`\`\`js\\n([\\s\\S]*?)\`\`\``).exec(page) ?? []
  return source
    .replace("'vitest'", "'./vitest-stand-in.mjs'")
    .replace("'./order.js'", "'./order.mjs'")
}

/** The process of the program with a clock, as a module of its own. */
function orderModule(): string {
  const [, head = '', order = ''] =
    /(import \{ after.*\n)[\s\S]*(const order[\s\S]*?\n\}\)\n)/.exec(
      embeddingProgram('test-clock'),
    ) ?? []
  return `${head}export ${order}`
}

/** As much of vitest as the page uses, over the timers that vitest has, with those it replaces. */
const vitest = `
import assert from 'node:assert/strict'
import timers from '@sinonjs/fake-timers'
export { test } from 'node:test'
const kinds = ['Timeout', 'Interval', 'Immediate']
const toFake = [...kinds.flatMap((kind) => ['set' + kind, 'clear' + kind]), 'Date', 'performance']
let clock
export const vi = {
  useFakeTimers() { clock = timers.install({ toFake, now: Date.now() }) },
  useRealTimers() { clock.uninstall() },
  advanceTimersByTimeAsync: (ms) => clock.tickAsync(ms),
}
export const expect = (value) => ({ toBe: (wanted) => assert.equal(value, wanted) })
`

/** The same over the timers of node:test. */
const mock = `
import assert from 'node:assert/strict'
import { mock } from 'node:test'
export { test } from 'node:test'
export const vi = {
  useFakeTimers() { mock.timers.enable({ apis: ['setTimeout', 'Date'] }) },
  useRealTimers() { mock.timers.reset() },
  advanceTimersByTimeAsync: async (ms) => mock.timers.tick(ms),
}
export const expect = (value) => ({ toBe: (wanted) => assert.equal(value, wanted) })
`

const tracing_program = `typeof require('conveyor-engine/tracing').openTelemetryTracing`

const page_program = `
import { once } from 'node:events'
import { createServer } from 'node:http'
import { openEngine } from 'conveyor-engine'
import { createConsole } from 'conveyor-engine/console'
const engine = await openEngine(':memory:')
const page = createConsole(engine)
const server = createServer(page.handle)
await once(server.listen(0), 'listening')
for (const file of ['', 'page.js', 'page.css', 'icon.svg']) {
  const answer = await fetch('http://127.0.0.1:' + server.address().port + '/console/' + file)
  console.log(answer.status, answer.headers.get('content-type').split(';')[0])
}
page.close()
server.close()
server.closeAllConnections()
await engine.close()
`

const code_program = `
import { openEngine } from 'conveyor-engine'
const src = \`require('libs/moment-timezone.js'); require('libs/md5.js'); require('libs/xregexp.js')
  data.v = moment.tz(1e12, 'Europe/Kyiv').format('YYYY-MM-DD HH') + ' ' + CryptoJS.MD5('') +
    ' ' + XRegExp.replace('a', XRegExp('a'), 'b')\`
const logics = [{ type: 'api_code', lang: 'js', src }, { type: 'go', to_node_id: 'end' }]
const nodes = [{ id: 'start', obj_type: 1, condition: { logics } }]
nodes.push({ id: 'end', obj_type: 2, options: { save_task: true } })
const engine = await openEngine(':memory:')
await engine.processes.put({ obj_id: 5, scheme: { nodes } })
const changes = engine.changes({ conv_id: 5 })
const { obj_id } = await engine.create({ conv_id: 5, data: {} })
for await (const { node_id } of changes) if (node_id === 'end') break
console.log((await engine.task({ conv_id: 5, obj_id })).data.v)
await engine.close()
`

const empty_program = `
import { openEngine } from 'conveyor-engine'
const engine = await openEngine(':memory:')
console.log(process.memoryUsage.rss())
await engine.close()
`

/** Of all files in a folder of a package, without the packages inside it. */
function bytesOf(folder: string): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules')
    .map((entry) => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? bytesOf(path) : statSync(path).size
    })
    .reduce((sum, bytes) => sum + bytes, 0)
}

/** The modules that are loaded with this one, itself among them. */
function staticImports(path: string, found: Set<string> = new Set()): Set<string> {
  if (found.has(path)) return found
  found.add(path)
  const names = readFileSync(path, 'utf8').matchAll(
    /^(?:import|export)\b[^'"]*["'](\.[^"']+\.js)["']/gm,
  )
  for (const [, name = ''] of names) staticImports(join(dirname(path), name), found)
  return found
}

const carried_program = `
import { readdirSync } from 'node:fs'
import { credentials, loadPackageDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { openEngine } from 'conveyor-engine'
import { serveGrpc } from 'conveyor-engine/grpc'
import { engineMetrics } from 'conveyor-engine/metrics'
import { Registry } from 'prom-client'
const engine = await openEngine(':memory:')
const server = await serveGrpc(engine, { port: 0, plain: true, reflection: true })
const vendor = new URL('./node_modules/conveyor-engine/dist/vendor/', import.meta.url)
const { service } = await import(new URL('grpc-health-check.js', vendor))
const { Client, health, reflection } = clientsOf(service)
const own = engineMetrics(engine, { register: new Registry() })
const text = await own.register.metrics()
own.close()
const other = await engineMetrics(engine).register.metrics()
const files = readdirSync(vendor).filter((name) => name.endsWith('.js'))
for (const name of files) {
  if (name !== 'peculiar-x509.js') await import(new URL(name, vendor))
}
const answers = {
  health: await new Promise((resolve) => health.check({ service: '' }, (_, answer) => resolve(answer?.status))),
  services: await reflection(),
  metrics: [text, other].map((one) => one.includes('conveyor_handlers')),
  files: files.length,
}
console.log(JSON.stringify(answers))
process.exit()

function clientsOf(service) {
  const { grpc } = loadPackageDefinition({ 'grpc.health.v1.Health': service })
  const health = new grpc.health.v1.Health(server.address, credentials.createInsecure())
  const reflection = () => new Promise((resolve) => {
    const call = health.makeBidiStreamRequest(
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      (bytes) => bytes, (bytes) => bytes, {}, {},
    )
    call.on('data', (bytes) => {
      resolve(bytes.toString('latin1').match(/(?:conveyor|grpc\\.health)[A-Za-z0-9.]+/g))
      call.end()
    })
    call.write(Buffer.from([0x3a, 0x01, 0x2a]))
  })
  return { health, reflection }
}
`

const quiet = { bundle: true, platform: 'node', logLevel: 'silent' } as const

function vite(entry: string, out: string, ssr: InlineConfig['ssr'] & object): Promise<unknown> {
  return viteBuild({
    root: dirname(entry),
    configFile: false,
    logLevel: 'silent',
    ssr,
    build: {
      ssr: entry,
      outDir: dirname(out),
      rollupOptions: { output: { entryFileNames: basename(out) } },
    },
  })
}

const common = `
import { type Engine, openEngine } from 'conveyor-engine'
import { defineProcess, end } from 'conveyor-engine/define'

export async function use(): Promise<Engine> {
  const engine = await openEngine(':memory:')
  await engine.processes.put(defineProcess({ id: 1, nodes: { start: end() } }))
  return engine
}
`

const consumer = `
import {
  type Engine, isFault, openEngine, rawJson, type Task, type TypedProcess, type TypedTask,
} from 'conveyor-engine'
import { callback, defineProcess, end, go } from 'conveyor-engine/define'
import { type HttpServer, serveHttp } from 'conveyor-engine/http'
import { type GrpcServer, serveGrpc } from 'conveyor-engine/grpc'
import { type Client, type ClientResult, connect, isClientFault } from 'conveyor-engine/client'

interface Order { readonly amount: number; readonly charge?: string }
interface Schema<Value> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => { readonly value: Value }
    readonly types?: { readonly input: Value; readonly output: Value }
  }
}

export async function typed(engine: Engine, data: Schema<Order>): Promise<number> {
  const nodes = { start: go('charge'), charge: [callback(), go('done')], done: end() } as const
  const order = defineProcess({ id: 1, data, nodes })
  const orders: TypedProcess = engine.process(order)
  const charge: (task: TypedTask<Order>) => object = ({ data }) => ({ charge: data.amount })
  engine.process(order).handle('charge', ({ data }) => ({ charge: String(data.amount) }))
  // @ts-expect-error: no such node
  engine.process(order).handle('chrage', charge)
  return (await engine.process(order).result({ ref: orders.conv_id })).data.amount
}

export async function call(folder: string): Promise<string | undefined> {
  await using client: Client = await connect({ url: 'http://h', user: 1, secret: 's' })
  await using other: Client = await connect({ address: 'h:1', ca: 'a', cert: 'b', key: 'c' })
  const made: ClientResult = await client.create({ conv_id: 1, ref: 'a', data: { n: 1n } })
  for await (const { proc, results } of other.stream([[{ type: 'show', conv_id: 1, ref: 'a' }]])) {
    if (proc === 'ok') console.log(results[0]?.task?.data_text)
  }
  await client.close().catch((error: unknown) => {
    if (isClientFault(error)) console.error(error.code, error.outcome)
  })
  const engine = await openEngine(':memory:')
  const server: GrpcServer = await serveGrpc(engine, { port: 0, tls: { folder } })
  // @ts-expect-error: half a target
  await connect({ url: 'http://h', user: 1 })
  return made.obj_id ?? server.address
}

export async function use(definition: unknown): Promise<string> {
  await using engine: Engine = await openEngine(':memory:', { limits: { ops_max: 10 } })
  await engine.processes.put(definition, { conv_id: '1234' })
  const [created] = await engine.apply([
    { type: 'create', obj: 'task', conv_id: 1234, ref: 'order-1', data: rawJson('{"amount":1.10}') },
  ])
  await engine.modify({ conv_id: 1234, ref: 'order-1', data: { paid: true } })
  const task: Task | undefined = await engine.task({ conv_id: 1234, ref: 'order-1' })
  const server: HttpServer = await serveHttp(engine, { port: 0 })
  const port: number = server.address.port
  await server.drain()
  for await (const change of engine.changes({ conv_id: 1234 })) return change.obj_id
  // @ts-expect-error: a limit that does not exist
  await openEngine(':memory:', { limits: { nothing_max: 10 } }).catch((error: unknown) => {
    if (isFault(error)) console.error(error.code)
  })
  return \`\${created?.proc} \${task?.data_text} \${port}\`
}
`

/**
 * Packed and installed by npm, but for the dependencies: they are links to those of the checkout, and no package is there
 * that the manifest does not name.
 */
function install(user: string, staged: string): void {
  mkdirSync(user)
  writeFileSync(join(user, 'package.json'), JSON.stringify({ name: 'user', private: true }))
  const { dependencies, ...alone } = manifest
  writeFileSync(join(staged, 'package.json'), JSON.stringify(alone))
  const how = ['--install-links', '--offline', '--no-audit', '--no-fund', '--ignore-scripts']
  run(user, 'npm', ['install', ...how, staged])
  writeFileSync(
    join(user, 'node_modules', manifest.name, 'package.json'),
    readFileSync(join(top, 'package.json')),
  )
  linkPackages(user, Object.keys(dependencies))
  linkPackages(user, ['@types/node', 'undici-types', '@sinonjs/fake-timers'])
}

function readJson<T>(name: string): T {
  return JSON.parse(readFileSync(join(top, name), 'utf8')) as T
}
