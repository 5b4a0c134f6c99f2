/**
 * `serve` as a process: its first line, the lock, verbs over its socket, signed requests, the demo's
 * lines to paste, and its end by a signal.
 */

import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { readOwner } from '../src/store/disk/owner-file.ts'
import { type CallServer, callServer } from './support/call-server.ts'
import { patient, processOf } from './support/call-stage.ts'
import { callback_process } from './support/cli-process.ts'
import { rowsOf, run, tempFolder } from './support/cli-run.ts'
import { node_args, type Served, startServe } from './support/cli-serve.ts'
import { top } from './support/package-folder.ts'
import { pick } from './support/pick.ts'
import { eventually } from './support/waits.ts'

const folder = tempFolder()
const db = join(folder.path, 'demo.lmdb')
const other_db = join(folder.path, 'other.lmdb')
const hanging = patient()
let server: CallServer
/** Ports that are free. */
const free = ['--http', '127.0.0.1:0', '--operator', '127.0.0.1:0']
let served: Served
let secret = ''

before(async () => {
  server = await callServer(hanging.answer)
  served = await startServe([
    process.execPath,
    ...node_args,
    'serve',
    '--json',
    '--http',
    '127.0.0.1:0',
    '--db',
    db,
    '--demo',
    '--operator',
    '127.0.0.1:0',
    '--ops-max',
    '50',
    '--allow-host',
    server.host,
  ])
  secret = (served.line.demo as { secret: string }).secret
})

after(async () => {
  await server.close()
  served.child.kill('SIGKILL')
  folder.remove()
})

const on = (line: string, options = {}) => run([...line.split(' '), '--db', db], options)

test('the line on stdout has the addresses and, with the demo, the secret', async () => {
  const { event, http, operator, page, pid, demo } = served.line
  const { link, ...made } = demo as Record<string, unknown>
  assert.equal(event, 'listening')
  assert.match(String(http), /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.match(String(operator), /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.equal((await fetch(`${operator}/healthz`)).status, 200)
  assert.equal(pid, served.child.pid)
  assert.deepEqual(made, { state: 'made', user: 13000, conv_id: '1234', secret })
  assert.equal(page, `${operator}/console/`)
  assert.match(String(link).slice(String(page).length), /^#link=[\w-]{43}$/)
  assert.equal(served.out().split('\n').length, 2)
})

test('console link prints a link that signs in once, with the right that it names', async () => {
  const signIn = async (link: string): Promise<Record<string, unknown>> => {
    const [page = '', token] = link.trim().split('#link=')
    assert.equal(page, served.line.page)
    const headers = { 'Content-Type': 'application/json' }
    const body = JSON.stringify({ link: token })
    const answer = await fetch(`${page}api/sign_in`, { method: 'POST', headers, body })
    return (await answer.json()) as Record<string, unknown>
  }
  const { link } = served.line.demo as { link: string }
  const { right, servers, command_line } = await signIn(link)
  assert.deepEqual([right, servers], ['administer', { http: served.line.http }])
  // The page quotes commands as they work where the server was started.
  assert.ok(String(command_line).endsWith(` VERB --db ${db}`), String(command_line))
  const printed = await on('console link --right look')
  assert.equal((await signIn(printed.out)).right, 'look')
  const [json] = rowsOf((await on('console link --json')).out)
  assert.equal(json?.right, 'administer')
  const [again] = (json?.links ?? []) as string[]
  assert.equal((await signIn(String(again))).right, 'administer')
  assert.equal((await on('console link --right all')).exit, 2)
})

test('verbs work while it runs', async () => {
  const owner = await readOwner(db)
  assert.equal(owner?.pid, served.child.pid)
  assert.equal(statSync(String(owner?.socket)).mode & 0o777, 0o600)
  const created = await on('task create 1234 --ref s1 --data {"n":1.10,"big":12345678901234567890}')
  assert.equal(created.exit, 0, created.err)
  const shown = await on('task show 1234 s1 --json')
  assert.ok(shown.out.includes('"data":{"n":1.10,"big":12345678901234567890}'), shown.out)
  assert.equal((await on('task create 1234 --ref s1 --data {"n":2}')).exit, 1)
  assert.equal((await on('task modify 1234 s1 --data {"paid":true}')).exit, 0)
  assert.equal((await on('check')).exit, 0)
  const definition = join(folder.path, 'more.conv.json')
  writeFileSync(definition, JSON.stringify({ ...callback_process, obj_id: 55 }))
  assert.equal((await on(`process import ${definition}`)).exit, 0)
  assert.equal((await on('process remove 55')).exit, 0)
  assert.equal((await on(`backup ${join(folder.path, 'copy.lmdb')}`)).exit, 0)
  const put = await on('schedule add tick 1234 --every 1s --data {"n":1.10} --due-key due_ms')
  assert.equal(put.exit, 0, put.err)
  const due = async () => JSON.parse((await on('schedule show tick --json')).out)
  while ((await due()).last === undefined) await new Promise((resolve) => setTimeout(resolve, 100))
  const { last } = await due()
  assert.deepEqual([last.proc, last.at_ms >= last.due_ms], ['ok', true])
  const made = await on(`task show 1234 ${last.ref} --json`)
  assert.ok(made.out.includes(`"data":{"n":1.10,"due_ms":${last.due_ms}}`), made.out)
  assert.equal((await on('schedule remove tick')).exit, 0)
  const lines = '{"data":{"a":1}}\n'.repeat(120)
  const many = await on('task create 1234 --file -', { stdin: lines })
  assert.equal(many.out, 'created 120, refused 0\n', many.err)
})

test('verbs of several shells at once are all answered', async () => {
  const adds = await Promise.all([1, 2, 3, 4].map((n) => on(`user add --id ${n} --json`)))
  assert.deepEqual(pick(adds, 'exit'), [0, 0, 0, 0])
})

test('a second serve exits 3 and names the holder', async () => {
  const { exit, err } = await on('serve --http 127.0.0.1:0')
  assert.equal(exit, 3)
  assert.match(err, new RegExp(`held by process ${served.child.pid}`))
})

test('a taken port exits 3 and says so', async () => {
  const { port } = new URL(served.url)
  const args = ['serve', '--db', other_db, '--http', `127.0.0.1:${port}`]
  const { exit, err } = await run(args)
  assert.equal(exit, 3)
  assert.match(err, /the port is taken/)
})

const create = '{"ops":[{"type":"create","obj":"task","conv_id":1234,"ref":"x1","data":{}}]}'
const modify = '{"ops":[{"type":"modify","obj":"task","conv_id":1234,"ref":"x1","data":{}}]}'

test('send signs, prints the answer, and exits by it', async () => {
  const to = ['send', '--url', `${served.url}/`, '--user', '13000']
  const env = { CONVEYOR_SECRET: secret }
  const created = await run(to, { env, stdin: create })
  assert.equal(created.exit, 0, created.err)
  assert.match(created.out, /^\{"request_proc":"ok","ops":\[\{"ref":"x1",.*"proc":"ok"\}\]\}\n$/)

  const file = join(folder.path, 'modify.json')
  writeFileSync(file, modify)
  const modified = await run([...to, file], { stdin: `${secret}\n` })
  assert.equal(modified.exit, 0, modified.err)
  const again = await run([...to, file], { env })
  assert.equal(again.exit, 1)
  assert.match(again.out, /not_found_task/)

  const secret_file = join(folder.path, 'secret')
  writeFileSync(secret_file, `${secret}\n`)
  const by_file = await run([...to, '--secret-file', secret_file], { stdin: create })
  assert.equal(by_file.exit, 0, by_file.err)
  assert.equal((await run([...to, '-'], { env, stdin: modify })).exit, 0)

  const wrong = await run(to, { env: { CONVEYOR_SECRET: 'no' }, stdin: create })
  assert.equal(wrong.exit, 4)
  assert.match(wrong.out, /bad_signature/)
  assert.equal((await run(to, { env, stdin: 'no json' })).exit, 1)
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  closed.close()
  const unreachable = ['send', '--url', `http://127.0.0.1:${port}`, '--user', '1']
  const lost = await run(unreachable, { env, stdin: create })
  assert.equal(lost.exit, 3)
  assert.match(lost.err, /does not answer \(ECONNREFUSED\)/)
})

const missing = ['curl', 'openssl', 'bash'].filter(
  (tool) => spawnSync(tool, ['--version']).error !== undefined,
)
const skip = missing.length === 0 ? false : `${missing.join(' and ')} not on this machine`

test('the curl line that sign prints works', { skip }, async () => {
  const file = join(folder.path, "it's a body.json")
  writeFileSync(file, create)
  const env = { CONVEYOR_SECRET: secret }
  const signed = await run(['sign', '--url', served.url, '--user', '13000', file], { env })
  const [url] = signed.out.split('\n')
  assert.match(String(url), /\/api\/1\/json\/13000\/\d{10}\/[0-9a-f]{40}$/)
  const how = ['--url', served.url, '--user', '13000', '--sign', 'hmac']
  const in_headers = await run(['sign', ...how, file], { env })
  assert.equal(in_headers.out.split('\n')[0], `${served.url}/api/1/json`)
  for (const { out } of [signed, in_headers]) {
    const { stdout } = spawnSync('bash', ['-c', String(out.split('\n')[1])], { encoding: 'utf8' })
    assert.match(stdout, /"proc":"ok"/)
    assert.ok(!out.includes(secret))
  }
  const json = JSON.parse((await run(['sign', ...how, '--json', file], { env })).out)
  assert.deepEqual(Object.keys(json.headers), ['X-API-Login', 'X-API-Timestamp', 'X-API-Signature'])
  assert.equal((await run(['send', ...how], { env, stdin: create })).exit, 0)
  assert.equal((await run(['send', ...how, '--sign', 'md5'], { env, stdin: create })).exit, 2)
})

test('the lines of the demo work as they are', { skip }, async () => {
  const fresh = join(folder.path, 'paste.lmdb')
  let output = ''
  const args = ['serve', '--demo', ...free, '--db', fresh, '--base', '/conveyor']
  let stop = (): void => {}
  let pasted: Promise<{ stdout: string; stderr: string }> | undefined
  const ended = await run(args, {
    onWait: (end) => {
      stop = end
    },
    onOut: (text) => {
      output += text
      const from = output.indexOf("SECRET='")
      if (from === -1) return
      pasted ??= bash(output.slice(from)).finally(() => stop())
    },
  })
  assert.equal(ended.exit, 0, ended.err)
  const { stdout, stderr } = (await pasted) ?? { stdout: '', stderr: '' }
  assert.equal(stderr, '')
  const [first, second, ...more] = rowsOf(stdout)
  assert.deepEqual(more, [])
  const { ops } = first as { ops: Record<string, unknown>[] }
  assert.deepEqual([first?.request_proc, ops[0]?.ref, ops[0]?.proc], ['ok', 'order-1', 'ok'])
  assert.deepEqual(second, { request_proc: 'ok', ops: [{ ref: 'order-1', proc: 'ok' }] })
  const left = await run(['task', 'list', '1234', '--db', fresh])
  assert.equal(left.out, '', 'the task has come to its end')

  assert.ok(ended.out.endsWith(`\nclosed: ${fresh} has what was answered\n`), ended.out)

  const again = await run([...args], { onWait: (end) => void setTimeout(end, 50) })
  assert.match(again.out, /shown at the first start.*\n.*conveyor user rotate 13000/)
  assert.ok(!again.out.includes('SECRET='))
})

test('what the commands of the README leave in a checkout is ignored by git', () => {
  const patterns = readFileSync(join(top, '.gitignore'), 'utf8').trim().split('\n')
  const isIgnored = (name: string): boolean =>
    patterns.some((one) => {
      const literal = one.replace(/\/$/, '').replaceAll('.', '\\.').replaceAll('*', '.*')
      return new RegExp(`^${literal}$`).test(name)
    })
  const left = readdirSync(folder.path).filter((name) => name.includes('.lmdb'))
  assert.ok(
    left.some((name) => name.endsWith('.key')),
    String(left),
  )
  assert.deepEqual(
    [...left, 'certs', 'dist', 'node_modules'].filter((one) => !isIgnored(one)),
    [],
  )
})

for (const flag of ['--operator-read-only', '--console-plain-http']) {
  test(`${flag} is for an operator's listener`, async () => {
    const { exit, err } = await run(['serve', '--http', 'off', flag, '--db', other_db])
    assert.equal(exit, 2)
    assert.match(err, new RegExp(`${flag} is for --operator HOST:PORT`))
  })
}

test('--operator on an address that other machines reach is refused in a sentence', async () => {
  const args = ['serve', '--http', 'off', '--operator', '0.0.0.0:0', '--db', other_db]
  const { exit, err } = await run(args)
  assert.equal(exit, 2)
  assert.match(err, /0\.0\.0\.0 is no loopback address: .* it takes 127\.0\.0\.1, ::1 or localhost/)
})

test('--operator takes such an address with a token of a file or of the environment', async () => {
  const token = 'a-token-of-some-length'
  const file = join(folder.path, 'token')
  writeFileSync(file, `${token}\n`)
  const all = ['serve', '--json', '--http', 'off', '--operator', '0.0.0.0:0', '--db', other_db]
  for (const [args, env] of [
    [['--operator-token-file', file], {}],
    [[], { CONVEYOR_OPERATOR_TOKEN: token }],
  ] as const) {
    let stop = (): void => {}
    const statuses: number[] = []
    const look = async (line: string): Promise<void> => {
      const { port } = new URL(JSON.parse(line).operator)
      for (const headers of [{}, { authorization: `Bearer ${token}` }]) {
        const url = `http://127.0.0.1:${port}/metrics`
        statuses.push((await fetch(url, { headers: { ...headers } })).status)
      }
      stop()
    }
    const { exit } = await run([...all, ...args], {
      env,
      onWait(end) {
        stop = end
      },
      onOut: (line) => void look(line).catch(stop),
    })
    assert.equal(exit, 0)
    assert.deepEqual(statuses, [401, 200])
  }
  const { exit, err } = await run([...all, '--operator-token-file', join(folder.path, 'none')])
  assert.equal(exit, 2)
  assert.match(err, /--operator-token-file: ENOENT/)
})

test('--demo leaves a file that holds something else as it is', async () => {
  await run(['user', 'add', '--db', other_db])
  const args = ['serve', '--demo', '--json', ...free, '--db', other_db]
  const { exit, out } = await run(args, { onWait: (end) => void setTimeout(end, 50) })
  assert.equal(exit, 0)
  const [line] = rowsOf(out)
  const { link: _, ...left } = (line?.demo ?? {}) as Record<string, unknown>
  assert.deepEqual(left, { state: 'not_new', user: 13000, conv_id: '1234' })
})

test('the program prints help and exits by the code', () => {
  const { status, stderr } = spawnSync(process.execPath, [...node_args, 'fly'], {
    encoding: 'utf8',
  })
  assert.equal(status, 2)
  assert.match(stderr, /^conveyor: no such verb: fly/)
})

test('a failed write ends serve with 3, and the file opens again', { skip }, async () => {
  const small = join(folder.path, 'small.lmdb')
  const serve = [...node_args, 'serve', '--demo', '--json', ...free, '--db', small]
  const command = `ulimit -f 1500; exec ${[process.execPath, ...serve].join(' ')}`
  const failing = await startServe(['bash', '-c', command])
  const data = { text: 'x'.repeat(50_000) }
  const op = { type: 'create', obj: 'task', conv_id: 1234, data }
  const env = { CONVEYOR_SECRET: (failing.line.demo as { secret: string }).secret }
  const sent = await run(['send', '--url', failing.url, '--user', '13000'], {
    env,
    stdin: JSON.stringify({ ops: Array.from({ length: 40 }, () => op) }),
  })
  assert.equal(sent.exit, 3)
  assert.match(sent.out, /"store_failed"/)
  assert.equal(await failing.ended, 3)
  assert.match(failing.err(), /"event":"store_failed".*look at the disk/)
  const left = await run(['check', '--db', small])
  assert.equal(left.exit, 0, left.err)
})

test('a second signal ends it at once, not with 0', async () => {
  const args = ['serve', '--json', '--http', '127.0.0.1:0', '--db', join(folder.path, 'two.lmdb')]
  const stuck = await startServe([process.execPath, ...node_args, ...args])
  const socket = connect(Number(new URL(stuck.url).port), '127.0.0.1')
  socket.on('error', () => {})
  const path = `/api/1/json/13000/1700000000/${'0'.repeat(40)}`
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{`)
  await once(socket, 'connect')
  const again = setInterval(() => stuck.child.kill('SIGTERM'), 100)
  assert.equal(await stuck.ended, null)
  clearInterval(again)
  socket.destroy()
})

test('SIGTERM drains and exits 0, has told refusals alone, and keeps the answer of a call under way', async () => {
  const definition = join(folder.path, 'call.conv.json')
  writeFileSync(definition, JSON.stringify(processOf({ url: server.url })))
  assert.equal((await on(`process import ${definition}`)).exit, 0)
  const { out } = await on('task create calls --data {} --json')
  const { obj_id } = JSON.parse(out) as { obj_id: string }
  await eventually(() => hanging.open.length === 1)
  const stopped = served.stop()
  await eventually(
    async () => (await fetch(`${served.url}/healthz`).catch(() => undefined))?.ok !== true,
  )
  hanging.letGo('{"answer":1}')
  assert.equal(await stopped, 0)
  const shown = await on(`task show calls --obj-id ${obj_id} --json`)
  assert.match(shown.out, /"status":"processed".*"answer":1/)
  // Beside other tests the disk may be slow.
  const told = rowsOf(served.err()).filter(({ event }) => !/^(risky$|slow_)/.test(String(event)))
  const refused = told.map(({ event, code }) => `${event} ${code}`)
  assert.deepEqual(refused, ['request_refused bad_signature', 'request_refused format_error'])
  assert.ok(!served.err().includes(secret))
  assert.equal((await on('check')).exit, 0)
})

/** Runs text as if it were pasted into bash. */
function bash(text: string): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile('bash', ['-s'], (_error, stdout, stderr) => resolve({ stdout, stderr }))
    child.stdin?.end(text)
  })
}

test('commits go into a commit log, which the end checkpoints and a kill leaves', async () => {
  const file = join(folder.path, 'logged.lmdb')
  const segments = [0, 1].map((n) => `${file}-log-${n}`)
  const start = () => {
    const flags = ['--json', '--http', 'off', '--db', file]
    return startServe([process.execPath, ...node_args, 'serve', ...flags])
  }
  const definition = join(folder.path, 'logged.conv.json')
  writeFileSync(definition, JSON.stringify({ ...callback_process, obj_id: 77 }))
  const verb = (line: string) => run([...line.split(' '), '--db', file])

  const first = await start()
  assert.deepEqual(segments.map(existsSync), [true, true])
  assert.equal((await verb(`process import ${definition}`)).exit, 0)
  assert.equal((await verb('task create 77 --ref kept --data {"n":1}')).exit, 0)
  first.child.kill('SIGKILL')
  await first.ended
  assert.deepEqual(segments.map(existsSync), [true, true])
  assert.match((await verb('task show 77 kept --json')).out, /"n":1/)
  assert.deepEqual(segments.map(existsSync), [false, false])

  const second = await start()
  assert.equal((await verb('task create 77 --ref more --data {"n":2}')).exit, 0)
  assert.equal(await second.stop(), 0)
  assert.deepEqual(segments.map(existsSync), [false, false])
  assert.match((await verb('task show 77 more --json')).out, /"n":2/)
  assert.equal((await verb('check')).exit, 0)
})
