/**
 * Every README, and every page beside one, agrees with the source: its marked programs run, its
 * marked tables are those of the source, its definitions compile and its links lead to files. A
 * mark may be in any of them; each mark that is tested here must be in at least one.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { transformSync } from 'esbuild'
import { addClient, initFolder } from '../src/certs/folder.ts'
import { parseWords } from '../src/cli/parse.ts'
import { explained, testVector } from '../src/cli/sign/explain.ts'
import { verbs } from '../src/cli/verb-table.ts'
import { repeats, transient_faults } from '../src/client/retry.ts'
import { signatureOf } from '../src/codec/signature.ts'
import { systemChance } from '../src/core/clock.ts'
import { admin_statuses, adminFaults, opFaults, wholeFaults } from '../src/core/faults.ts'
import { limitsWith, limitTable } from '../src/core/limits.ts'
import type { JsonObject } from '../src/core/model.ts'
import { type GrpcServer, serveGrpc } from '../src/grpc.ts'
import { serveHttp } from '../src/http.ts'
import { type Engine, openEngine, version } from '../src/index.ts'
import { nodeTable } from '../src/metrics/node-metrics.ts'
import { histogramTable, metricTable } from '../src/metrics/table.ts'
import { compileProcess } from '../src/process/compile-process.ts'
import * as definition_limits from '../src/process/definition-limits.ts'
import { erlangFunctions } from '../src/process/functions/erlang/functions.ts'
import { operatorLevels, prefixOperators } from '../src/process/functions/erlang/operators.ts'
import { functionTable } from '../src/process/functions/table.ts'
import { comparisonTable } from '../src/process/logics/comparisons.ts'
import { logicTable } from '../src/process/logics/table.ts'
import { typeTable } from '../src/process/values.ts'
import { run as runVerb } from './support/cli-run.ts'
import { node_args, startServe } from './support/cli-serve.ts'
import { freePort } from './support/free-port.ts'
import { codePath, linkPackages, node_flags, tempFolder, top } from './support/package-folder.ts'
import { no_postgres, startPostgres } from './support/postgres.ts'
import { initPartition } from './support/postgres-open.ts'
import { tasksOf } from './support/tasks-of.ts'

interface Readme {
  readonly folder: string
  readonly text: string
}

const readmes: Readme[] = [
  'README.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...['src', 'test', 'proto', 'deploy'].flatMap((folder) =>
    readdirSync(join(top, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  ),
].map((name) => ({
  folder: join(top, dirname(name)),
  text: readFileSync(join(top, name), 'utf8'),
}))

/** What follows each mark `<!-- mark -->` of any README, by a pattern with one group. */
function marked(mark: string, pattern: string): string[] {
  const found = readmes.flatMap(({ text }) => [
    ...text.matchAll(new RegExp(`<!-- ${mark} -->\\n${pattern}`, 'g')),
  ])
  assert.ok(found.length > 0, `no README has a mark ${mark}`)
  return found.map((match) => match[1] as string)
}

/** The one text behind a mark: where several READMEs have it, it is the same in all. */
function only(mark: string, pattern: string): string {
  const [first = '', ...others] = marked(mark, pattern)
  for (const other of others) assert.equal(other, first, `${mark} differs between READMEs`)
  return first
}

function program(name: string): string {
  return only(`run: ${name}`, '```\\w+\\n([\\s\\S]*?)```')
}

/** The rows of a table, without its head. */
function table(name: string): string[][] {
  const rows = only(`table: ${name}`, '((?:\\|.*\\n)+)').trim().split('\n').slice(2)
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  )
}

const code = (value: unknown): string => `\`${value}\``

const operatorNames = new Set([
  ...Object.keys(prefixOperators),
  ...operatorLevels.toReversed().flatMap(({ operators }) => Object.keys(operators)),
])

/** The functions of a module that a fun may call. */
function erlangNames(module: string): string[] {
  return [...erlangFunctions.keys()]
    .map((name) => (name.includes(':') ? name : `:${name}`).split(':'))
    .filter(([of]) => of === module)
    .map(([, name = '']) => name)
    .sort()
}

/** The test vector of signatures as `conveyor sign --explain` explains it. */
function vectorRows(): string[][] {
  const made = explained({ ...testVector, base: '', file: undefined })
  const { user, secret, timestamp, body, body_bytes, ways } = made
  const [path, hmac] = ways
  const rows = {
    ...{ user, secret, timestamp, 'body, in UTF-8': body, 'bytes of the body': body_bytes },
    'in the path: bytes signed': path?.signed_bytes,
    'in the path: SHA-1': path?.signature,
    'in headers: bytes signed': hmac?.signed_bytes,
    'in headers: HMAC-SHA-256': hmac?.signature,
  }
  return Object.entries(rows).map(([part, value]) => [part, code(value)])
}

const tables: [string, string[][]][] = [
  [
    'whole',
    Object.entries(wholeFaults).map(([code, row]) => [`\`${code}\``, `${row.http}`, row.text]),
  ],
  ['op', Object.entries(opFaults).map(([code, row]) => [`\`${code}\``, row.when])],
  ['grpc op', Object.entries(opFaults).map(([name, row]) => [code(name), row.grpc, row.when])],
  [
    'grpc admin',
    Object.entries(admin_statuses).map(([name, status]) => [
      code(name),
      status,
      adminFaults[name as keyof typeof admin_statuses],
    ]),
  ],
  ['repeats', Object.entries(repeats).map(([name, when]) => [code(name), when])],
  ['transient', Object.entries(transient_faults).map(([name, then]) => [code(name), then])],
  ['admin', Object.entries(adminFaults).map(([code, text]) => [`\`${code}\``, text])],
  ['sign', vectorRows()],
  [
    'metrics',
    [
      ...metricTable,
      ...nodeTable,
      ...Object.values(histogramTable).map((row) => ({ ...row, type: 'histogram' })),
    ].map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(', '), help]),
  ],
  [
    'limits',
    Object.entries(limitTable).map(([name, row]) => [
      `\`${name}\``,
      row.value.toLocaleString('en'),
      row.says,
    ]),
  ],
  [
    'comparisons',
    Object.keys(typeTable).map((cast) => [
      code(cast),
      code(
        comparisonTable
          .filter((row) => row.cast === cast)
          .map(({ fun }) => fun)
          .join(' '),
      ),
    ]),
  ],
  [
    'types',
    Object.entries(typeTable).map(([type, { example }]) => [
      code(type),
      ...example.map((value) => code(JSON.stringify(value))),
    ]),
  ],
  [
    'functions',
    functionTable.map(({ name, syntax, result }) => [
      code(name),
      syntax.map(code).join(', '),
      result,
    ]),
  ],
  [
    'erlang',
    [
      ['operators', code([...operatorNames].join(' '))],
      ...['', 'base64', 'binary', 'eutils', 'proplists'].map((module) => [
        module === '' ? 'built in, also with `erlang:`' : code(module),
        code(erlangNames(module).join(' ')),
      ]),
    ],
  ],
  [
    'definition limits',
    Object.entries(definition_limits)
      .filter(([name, value]) => name !== 'unix_seconds_max' && typeof value === 'number')
      .map(([name, value]) => [code(name), value.toLocaleString('en')]),
  ],
]

for (const [name, expected] of tables) {
  test(`table ${name}`, () => assert.deepEqual(table(name), expected))
}

test('the table of logics has every type, with every member that is read', () => {
  const rows = table('logics')
  assert.deepEqual(
    rows.map(([type]) => type),
    logicTable.map(({ type }) => code(type)),
  )
  for (const [at, { type, compile }] of logicTable.entries()) {
    const read = new Set<string>()
    const raw = new Proxy<JsonObject>({}, { get: (_raw, name) => void read.add(String(name)) })
    compile(raw, {
      mistake() {},
      warning() {},
      targetNode: () => '',
      targetProcess() {},
      variable() {},
    })
    const missing = [...read].filter((name) => !rows[at]?.[1]?.includes(code(name)))
    assert.deepEqual(missing, [], `members of ${type}`)
  }
})

test('the tables of gRPC have its rpcs, the statuses of its faults and all of its limits', () => {
  const proto = readFileSync(join(top, 'proto/conveyor/v1/task_service.proto'), 'utf8')
  assert.deepEqual(
    table('rpcs').map(([rpc, request, response]) => [rpc, request, response].join(' ')),
    [...proto.matchAll(/^ {2}rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);$/gm)].map(
      ([, rpc, sent = '', request, received = '', response]) =>
        [code(rpc), sent + code(request), received + code(response)].join(' '),
    ),
  )
  const statuses = Object.entries(wholeFaults).map(([name, { grpc }]) => `${code(name)} ${grpc}`)
  for (const [name, status] of table('grpc whole')) {
    assert.ok(statuses.includes(`${name} ${status}`), name)
  }
  const limits = table('grpc limits')
  const all = table('limits')
  for (const row of limits)
    assert.ok(
      all.some((other) => other.join() === row.join()),
      row[0],
    )
  assert.deepEqual(
    all.filter(([name = '']) => /^`(grpc|tls)_/.test(name)),
    limits.filter(([name = '']) => /^`(grpc|tls)_/.test(name)),
  )
})

test('the table of what is bounded names limits, and each that bounds what is held', () => {
  const named = new Set(table('bounds').flatMap(([, bound = '']) => bound.match(/`\w+`/g) ?? []))
  const known = Object.keys(limitTable)
  assert.deepEqual(
    [...named].filter((name) => !known.map(code).includes(name)),
    [],
  )
  const held = /(?:connections|pipelined|bodies|streams|batches|readers|jobs|threads|host)_max$/
  const bytes = /^(?!task|certificate|disk).*_bytes_max$|^queue_|_waiting_max$|_waits_max$/
  const of_holding = known.filter((name) => held.test(name) || bytes.test(name))
  assert.ok(of_holding.length > 20)
  // Calls of the process itself wait where servers refuse.
  const told = [...named, code('waiting_bytes_max')]
  assert.deepEqual(
    of_holding.filter((name) => !told.includes(code(name))),
    [],
  )
})

test('every definition compiles without a mistake or a warning', () => {
  for (const source of marked('definition', '```json\\n([\\s\\S]*?)```')) {
    const { mistakes, warnings } = compileProcess(JSON.parse(source), limitsWith())
    assert.deepEqual([mistakes, warnings], [[], []])
  }
})

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(' ', '-')
    .replace(/[^\w-]/g, '')
}

test('every line of the command line is one', () => {
  const lines = readmes.flatMap(({ text }) =>
    [...text.matchAll(/```sh\n([\s\S]*?)```/g)]
      .flatMap((block) => (block[1] as string).split(/\n| && /))
      .filter((line) => line.startsWith('conveyor ')),
  )
  assert.ok(lines.length > 10)
  for (const line of lines) {
    const words = line
      .replace(/ +[#&].*/, '')
      .split(' ')
      .slice(1)
    assert.doesNotThrow(() => parseWords(words, {}, verbs), line)
  }
})

test('every link leads to a file, and to a heading of it', () => {
  const links = readmes.flatMap(({ folder, text }) =>
    [...text.matchAll(/\]\(([^)#:]+)(?:#([^)]+))?\)/g)].map(
      ([, path = '', heading]) => [join(folder, path), heading] as const,
    ),
  )
  assert.ok(links.length > 10)
  for (const [path, heading] of links) {
    assert.ok(existsSync(path), path)
    if (heading === undefined) continue
    const headings = readFileSync(path, 'utf8').matchAll(/^#+ (.*)/gm)
    const anchors = [...headings].map(([, title = '']) => anchorOf(title))
    assert.ok(anchors.includes(heading), `${path} has no heading ${heading}: ${anchors.join(' ')}`)
  }
})

test('the version is that of the package', () => {
  const { version: stated } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8'))
  assert.equal(version, stated)
})

interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

async function run(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<Ran> {
  const child = spawn(command, args, { cwd: top, env: { ...process.env, ...env } })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  return { status, stdout, stderr }
}

/** Runs a program in TypeScript that imports the engine by the names of its package. */
function runProgram(source: string, folder: string, packages: readonly string[] = []) {
  linkPackages(folder, packages)
  const file = join(folder, 'program.mjs')
  const imports = source
    .replaceAll(/'conveyor-engine(?:\/(\w+))?'/g, (_, entry = 'index') =>
      JSON.stringify(codePath(`src/${entry}`)),
    )
    .replaceAll("'tasks.lmdb'", `'${join(folder, 'tasks.lmdb')}'`)
  writeFileSync(file, transformSync(imports, { loader: 'ts', target: 'node20' }).code)
  return run(process.execPath, [...node_flags, file], {})
}

test('embedding it', async () => {
  const { path: folder, remove } = tempFolder()
  after(remove)
  const source = program('embed')
  assert.ok(source.trim().split('\n').length <= 22, 'it is meant to be short')
  const ran = await runProgram(source, folder)
  assert.equal(ran.stderr, '')
  assert.match(ran.stdout, /^ok done \{ amount: 120, paid: true, receipt: '[0-9a-f-]+' \}\n$/)
})

let engine: Engine
let url: string
let grpc: GrpcServer
let certs: string
let SECRET: string
let drain: () => Promise<void>

before(async () => {
  engine = await openEngine(':memory:')
  await engine.processes.put(
    JSON.parse(readFileSync(join(top, 'src/examples/callback.conv.json'), 'utf8')),
  )
  SECRET = (await engine.users.add()).secret
  await engine.processes.share(1234, 13000)
  const server = await serveHttp(engine, { port: 0 })
  url = server.url
  drain = server.drain
  const { path } = tempFolder()
  certs = join(path, 'certs')
  const making = { now_ms: Date.now(), chance: systemChance }
  await initFolder(certs, [], making)
  await addClient(certs, 'billing', making)
  grpc = await serveGrpc(engine, { port: 0, tls: { folder: certs } })
})

after(async () => {
  await drain()
  await grpc.drain()
  await engine.close()
})

/** [program, how it is run, the ref it uses] */
const callers: [string, (source: string, folder: string) => [string, string[]], string][] = [
  ['bash', (source) => ['bash', ['-c', source]], 'order-1'],
  [
    'node',
    (source, folder) => {
      writeFileSync(join(folder, 'call.mjs'), source)
      return [process.execPath, [join(folder, 'call.mjs')]]
    },
    'order-2',
  ],
  ['python', (source) => ['python3', ['-c', source]], 'order-3'],
]

for (const [name, command, ref] of callers) {
  test(`calling it from ${name}`, async (t) => {
    const source = program(name).replaceAll('http://127.0.0.1:8080', url)
    const { path: folder, remove } = tempFolder()
    after(remove)
    const [file, args] = command(source, folder)
    const ran = await run(file, args, { SECRET }).catch((error: NodeJS.ErrnoException) => error)
    if (ran instanceof Error) return t.skip(`${file} is not on this machine (${ran.code})`)
    assert.equal(ran.stderr, '')
    assert.equal(ran.stdout.match(/request_proc['"]?: ?['"]ok['"]/g)?.length, 2, ran.stdout)
    const ended = await tasksOf(engine, 1234, { status: 'processed' })
    const task = ended.find((one) => one.ref === ref)
    assert.deepEqual(task?.data, { amount: 120, paid: true })
  })
}

const steps = 'start create\nwait go\nwait callback\ndone go\n'

/** [program, the packages it imports beside the engine, what it prints] */
for (const [name, packages, printed] of [
  [
    'define',
    ['zod'],
    "{ amount: 120, currency: 'EUR', charge: '120 for order-1' }\n" +
      'Param: amount, Error: Invalid input: expected number, received string\n',
  ],
  ['handlers', [], 'done { amount: 120, charged: true } 1\n'],
  ['metrics', ['prom-client'], '1 undefined\n'],
  ['schedule', [], 'created unchanged\n02:00:00\nok\n'],
  ['changes', [], `1\n${steps}2\n${steps}`],
  [
    'search',
    [],
    'order-300 order-120\n1 { amount: 300, customer: { vip: true } }\n1 {}\nreview 1\nwait 2\n',
  ],
  ['limits', [], 'no_api_callback_in_node_with_task\nok\n'],
] as const) {
  test(`a program that defines a process: ${name}`, async () => {
    const { path: folder, remove } = tempFolder()
    after(remove)
    const ran = await runProgram(program(name), folder, packages)
    assert.equal(ran.stderr, '')
    assert.equal(ran.stdout, printed)
  })
}

/** [program, the packages it imports beside the engine, its address, what is asked, the answer] */
// biome-ignore format: a table
const own_servers: readonly (readonly [string, string[], string, string, RegExp])[] = [
  ['express',  ['express'], 'server.address()',     '/conveyor/api/1/json', /^{"request_proc":"bad_signature"/],
  ['fastify',  ['fastify'], 'app.server.address()', '/conveyor/api/1/json', /^{"request_proc":"bad_signature"/],
  ['operator', [],          'operator.address',     '/readyz',              /^{"ok":true,/],
  ['console',  [],          'server.address()',     '/console/api/tasks',   /^\/console\/#link=.{43}\n{"error":"bad_signature"/],
  ['console-express', ['express'], 'server.address()', '/staff/console/api/tasks', /^{"error":"bad_signature"/],
  ['console-fastify', ['fastify'], 'app.server.address()', '/console/api/tasks', /^{"error":"bad_signature"/],
]
for (const [name, packages, address, path, answer] of own_servers) {
  test(`a server of one's own: ${name}`, async () => {
    const { path: folder, remove } = tempFolder()
    after(remove)
    const source = program(name)
      .replace(/8080|8081/, '0')
      .replace('logger: true', '')
    const asks = `
      const url = 'http://127.0.0.1:' + ${address}.port + '${path}'
      const method = '${path === '/readyz' ? 'GET' : 'POST'}'
      console.log(await (await fetch(url, { method })).text())
      process.kill(process.pid, 'SIGTERM')`
    const ran = await runProgram(source + asks, folder, packages)
    assert.equal(ran.stderr, '')
    assert.match(ran.stdout, answer)
    assert.equal(ran.status, 0)
  })
}

const tracing_packages = ['@opentelemetry/api', '@opentelemetry/sdk-trace-node']

test('a program that makes traces', async () => {
  const { path: folder, remove } = tempFolder()
  after(remove)
  const ran = await runProgram(program('traces'), folder, tracing_packages)
  assert.equal(ran.stderr, '')
  const names = Array.from(ran.stdout.matchAll(/^ {2}name: '([\w.]+)'/gm), ([, name]) => name)
  assert.deepEqual(names, ['conveyor.run', 'conveyor.commit', 'conveyor.create', 'checkout'])
})

test('serve with --traces, and with an SDK and without', async () => {
  const { path: folder, remove } = tempFolder()
  after(remove)
  linkPackages(folder, tracing_packages)
  const otel = join(folder, 'otel.mjs')
  writeFileSync(otel, program('traces serve'))
  for (const [flags, names] of [
    [
      ['--import', otel],
      ['conveyor.run', 'conveyor.commit', 'conveyor.create', 'POST'],
    ],
    [[], []],
  ] as const) {
    const args = ['serve', '--traces', '--json', '--http', '127.0.0.1:0']
    const demo = ['--demo', '--operator', '127.0.0.1:0', '--db']
    const db = join(folder, `${names.length}.lmdb`)
    const served = await startServe([
      ...[process.execPath, ...flags, ...node_args, ...args, ...demo, db],
    ])
    const { secret } = served.line.demo as { secret: string }
    const body = '{"ops":[{"type":"create","obj":"task","conv_id":1234,"ref":"r","data":{}}]}'
    const time = String(Math.floor(Date.now() / 1000))
    const path = `/api/1/json/13000/${time}/${signatureOf(time, secret, body)}`
    await (await fetch(served.url + path, { method: 'POST', body })).text()
    for (const [json, pattern] of [
      [['--json'], /"trace_id":"[0-9a-f]{32}"/],
      [[], /^trace +[0-9a-f]{32}$/m],
    ] as const) {
      const shown = await runVerb(['task', 'show', '1234', 'r', '--db', db, ...json])
      assert.equal(pattern.test(shown.out), names.length > 0, shown.out)
    }
    await served.stop()
    const told = Array.from(served.out().matchAll(/^ {2}name: '([\w.]+)/gm), ([, name]) => name)
    assert.deepEqual(told, names)
    assert.equal(served.err().includes('traces_without_sdk'), names.length === 0)
    for (const hidden of [secret, path])
      assert.ok(!served.out().slice(served.out().indexOf('\n')).includes(hidden))
  }
})

test('a node of a cluster', { skip: no_postgres ?? false }, async () => {
  const { path: folder, remove } = tempFolder()
  after(remove)
  const postgres = await startPostgres()
  try {
    await initPartition(postgres.url(), 0)
    const port = await freePort()
    const source = program('embedded-node')
      .replace(/'postgres:[^']+'/, `'${postgres.url()}'`)
      .replace('8080)', `${port}, '127.0.0.1')`)
    const asks = `
      const asked = async () => fetch('http://127.0.0.1:${port}/healthz').catch(() => undefined)
      let owned = 0
      commit_log.onRole(async ({ role }) => {
        if (role !== 'owner' || ++owned < 2) return
        let answer
        while (answer === undefined) answer = await asked()
        console.log('answered')
        process.kill(process.pid, 'SIGTERM')
      })\n`
    const running = runProgram(source.replace('let is_stopped', `${asks}$&`), folder)
    // It serves: taken away before that, the first tenure would not be told.
    const asked = () => fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
    while ((await asked()) === undefined) await new Promise((resolve) => setTimeout(resolve, 20))
    await postgres.sql('UPDATE conveyor.owner SET epoch = epoch + 1, released = true')
    const { status, stderr, stdout } = await running
    const tenure = 'joining standby owner'
    const printed = [...`${tenure} ended ${tenure} answered ended`.split(' '), ''].join('\n')
    assert.deepEqual([status, stderr, stdout], [0, '', printed])
  } finally {
    await postgres.remove()
  }
})

test('the commands of the restore drill, in their order', async () => {
  const { path: folder, remove } = tempFolder()
  after(remove)
  for (const name of ['backup', 'drill', 'safe']) mkdirSync(join(folder, name))
  const CONVEYOR_DB = join(folder, 'tasks.lmdb')
  assert.equal((await runVerb(['user', 'add'], { env: { CONVEYOR_DB } })).exit, 0)
  const lines = program('backup')
    .replaceAll('/var/lib/conveyor', folder)
    .replaceAll(/ (?=\/(backup|drill|safe)\/)/g, ` ${folder}`)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  for (const line of lines) {
    const [command = '', ...words] = line.split(' ')
    if (command === 'cp') copyFileSync(words[0] as string, words[1] as string)
    else assert.equal((await runVerb(words, { env: { CONVEYOR_DB } })).exit, 0, line)
  }
  assert.equal(lines.length, 5)
})

/** [program, what it prints] */
const grpc_programs: readonly (readonly [string, string])[] = [
  ['grpc', 'ok ok { amount: 120, paid: true }\n'],
  ['grpc-addresses', 'ok\n'],
  ['grpc-result', 'processed { amount: 120, paid: true }\n'],
  ['grpc-changes', 'order-8 delayed\norder-8 processed\n'],
]
for (const [name, prints] of grpc_programs) {
  test(`calling it over gRPC: ${name}`, async () => {
    const { path: folder, remove } = tempFolder()
    after(remove)
    const source = program(name)
      .replace('127.0.0.1:9090', grpc.address)
      .replaceAll("'certs/", `'${certs}/`)
    const ran = await runProgram(source, folder)
    assert.equal(ran.stderr, '')
    assert.equal(ran.stdout, prints)
  })
}

test('calling it over gRPC without the client library', async () => {
  const source = program('grpc-js')
    .replace('127.0.0.1:9090', grpc.address)
    .replaceAll("'certs/", `'${certs}/`)
  const ran = await run(process.execPath, ['--input-type=module', '-e', source], {})
  assert.equal(ran.stderr, '')
  assert.equal(ran.stdout, 'processed {"amount":120,"paid":true}\n')
})

test('each step of a path names a function of its file', () => {
  const row = /^\| `(\w+)` \| \[[^\]]+\]\(([^)]+)\) \|/gm
  let steps = 0
  for (const { folder, text } of readmes) {
    for (const [, list = ''] of text.matchAll(/<!-- steps -->\n((?:\|.*\n)+)/g)) {
      for (const [, name, file = ''] of list.matchAll(row)) {
        const source = readFileSync(join(folder, file), 'utf8')
        assert.match(source, new RegExp(`\\b${name}(<\\w+>)?(\\(|: \\()`), `${name} in ${file}`)
        steps++
      }
    }
  }
  assert.ok(steps > 30)
})
