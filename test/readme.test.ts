/**
 * The README says what is so: its programs run, its tables are the tables of the source, its links
 * lead somewhere, and the version is one.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { addClient, initFolder } from '../src/certs/folder.ts'
import { systemChance } from '../src/core/clock.ts'
import { adminFaults, opFaults, wholeFaults } from '../src/core/faults.ts'
import { limitTable } from '../src/core/limits.ts'
import { type GrpcServer, serveGrpc } from '../src/grpc.ts'
import { serveHttp } from '../src/http.ts'
import { type Engine, openEngine, version } from '../src/index.ts'
import { tempFolder, top } from './support/package-folder.ts'

const readme = readFileSync(join(top, 'README.md'), 'utf8')

/** The code block behind a `<!-- run: name -->`. */
function program(name: string): string {
  const found = new RegExp(`<!-- run: ${name} -->\\n\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(readme)
  assert.ok(found?.[1], `no program ${name}`)
  return found[1]
}

/** The rows of the table behind a `<!-- table: name -->`, without its head. */
function table(name: string): string[][] {
  const found = new RegExp(`<!-- table: ${name} -->\\n((?:\\|.*\\n)+)`).exec(readme)
  assert.ok(found?.[1], `no table ${name}`)
  const rows = found[1].trim().split('\n').slice(2)
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  )
}

const tables: [string, string[][]][] = [
  [
    'whole',
    Object.entries(wholeFaults).map(([code, row]) => [`\`${code}\``, `${row.http}`, row.text]),
  ],
  ['op', Object.entries(opFaults).map(([code, row]) => [`\`${code}\``, row.when])],
  ['admin', Object.entries(adminFaults).map(([code, text]) => [`\`${code}\``, text])],
  [
    'limits',
    Object.entries(limitTable).map(([name, row]) => [
      `\`${name}\``,
      row.value.toLocaleString('en'),
      row.says,
    ]),
  ],
]

for (const [name, expected] of tables) {
  test(`table ${name}`, () => assert.deepEqual(table(name), expected))
}

test('every link leads to a file', () => {
  const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1] as string)
  assert.ok(links.length > 10)
  assert.deepEqual(
    links.filter((link) => !existsSync(join(top, link))),
    [],
  )
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

test('embedding it', async () => {
  const { path: folder, remove } = tempFolder()
  after(remove)
  const file = join(folder, 'embed.mts')
  const source = program('embed')
    .replace("'conveyor-engine'", `'${join(top, 'src/index.ts')}'`)
    .replace("'tasks.lmdb'", `'${join(folder, 'tasks.lmdb')}'`)
  assert.ok(source.trim().split('\n').length <= 14, 'it is meant to be short')
  writeFileSync(file, source)
  const ran = await run(process.execPath, ['--import', 'tsx', file], {})
  assert.equal(ran.stderr, '')
  assert.equal(ran.stdout, 'wait\nok\n')
})

let engine: Engine
let url: string
let grpc: GrpcServer
let certs: string
let SECRET: string
let drain: () => Promise<void>

before(async () => {
  engine = await openEngine(':memory:')
  await engine.putProcess(
    JSON.parse(readFileSync(join(top, 'src/examples/callback.conv.json'), 'utf8')),
  )
  SECRET = (await engine.users.add()).secret
  await engine.processes.share(1234, 13000)
  const door = await serveHttp(engine, { port: 0 })
  url = door.url
  drain = door.drain
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
    const ended = await engine.tasks.list(1234, { status: 'processed' })
    const task = ended.find((one) => one.ref === ref)
    assert.deepEqual(task?.data, { amount: 120, paid: true })
  })
}

test('a process in TypeScript, with a handler', async () => {
  const { path: folder, remove } = tempFolder()
  after(remove)
  const file = join(folder, 'define.mts')
  const source = program('define')
    .replace("'conveyor-engine'", `'${join(top, 'src/index.ts')}'`)
    .replace("'conveyor-engine/define'", `'${join(top, 'src/define.ts')}'`)
  writeFileSync(file, source)
  const ran = await run(process.execPath, ['--import', 'tsx', file], {})
  assert.equal(ran.stderr, '')
  assert.equal(ran.stdout, "{ amount: 120, reserved: 'place for order-1' }\n")
})

test('calling it over gRPC', async () => {
  const { path: folder, remove } = tempFolder()
  after(remove)
  const file = join(folder, 'call.mts')
  const source = program('grpc')
    .replace("'conveyor-engine/client'", `'${join(top, 'src/client.ts')}'`)
    .replace('127.0.0.1:9090', grpc.address)
    .replaceAll("'certs/", `'${certs}/`)
  writeFileSync(file, source)
  const ran = await run(process.execPath, ['--import', 'tsx', file], {})
  assert.equal(ran.stderr, '')
  assert.equal(ran.stdout, 'ok ok { amount: 120, paid: true }\n')
})
