/**
 * `serve` with a gRPC server: its address, the certificates it needs, the demo's lines to paste, and
 * that both servers drain together.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect } from '../src/client.ts'
import { rowsOf, run, tempFolder } from './support/cli-run.ts'
import { node_args, startServe } from './support/cli-serve.ts'
import { top } from './support/package-folder.ts'

const folder = tempFolder()
after(() => folder.remove())
const certs = join(folder.path, 'certs')
const http_free = ['--http', '127.0.0.1:0', '--operator', '127.0.0.1:0']
const local = [...http_free, '--grpc', '127.0.0.1:0']

test('without certificates it exits 3 and names the command that makes them', async () => {
  const db = join(folder.path, 'none.lmdb')
  for (const lacking of [['ca.crt', 'server.crt', 'server.key'], ['server.crt']]) {
    if (lacking.length === 1) {
      await run(['certs', 'init', certs])
      rmSync(join(certs, 'server.crt'))
    }
    const serve = ['serve', '--log-level', 'warn', '--db', db]
    const { exit, out, err } = await run([...serve, ...local, '--tls', certs])
    assert.equal(exit, 3)
    assert.equal(out, '')
    const says = `${certs} holds no ${lacking.join(', ')}: \`conveyor certs init ${certs}\` makes them`
    assert.equal(err, `conveyor: ${says}\n`)
  }
  rmSync(certs, { recursive: true })
})

test('a taken port and invalid certificates exit 3, and the other server is closed', async () => {
  await run(['certs', 'init', certs])
  const db = join(folder.path, 'ports.lmdb')
  const first = await startServe([
    process.execPath,
    ...node_args,
    ...['serve', '--json', '--log-level', 'warn', ...local, '--tls', certs, '--db', db],
  ])
  const { grpc, http } = first.line
  const quiet = ['serve', '--log-level', 'warn']
  const other = [...quiet, '--db', join(folder.path, 'other.lmdb'), '--tls', certs]
  const taken = await run([...other, '--http', '127.0.0.1:0', '--grpc', String(grpc)])
  assert.equal(taken.exit, 3)
  assert.match(taken.err, /^conveyor: cannot listen on .*: the port is taken, .* --grpc\n$/)

  await run(['certs', 'client', certs, 'billing'])
  const { port } = new URL(String(http))
  await using client = await connect({
    address: String(grpc),
    ca: join(certs, 'ca.crt'),
    cert: join(certs, 'billing.crt'),
    key: join(certs, 'billing.key'),
  })
  const lost = await client.create({ conv_id: 1, data: {} })
  assert.equal(lost.proc, 'conv_not_found')
  assert.equal(await first.stop(), 0)
  const told = rowsOf(first.err()).filter(({ event }) => event !== 'risky')
  assert.deepEqual(told, [])
  const again = ['--http', `127.0.0.1:${port}`, '--grpc', String(grpc), '--json']
  const started = await run([...other, ...again], { onWait: (stop) => stop() })
  assert.equal(started.exit, 0, started.err)
  assert.deepEqual(
    rowsOf(started.out).map((line) => [line.http, line.grpc]),
    [[http, grpc]],
  )
})

test('the demo makes certificates once, and its line works as it is', async () => {
  const db = join(folder.path, "it's a demo.lmdb")
  const args = ['serve', '--demo', ...local, '--db', db]
  const first = await served(args, async (output) => {
    const line = output.slice(output.indexOf('\nnode -'))
    return bash(line)
  })
  assert.equal(first.exit, 0, first.err)
  assert.equal(first.used?.stderr, '')
  const lines = String(first.used?.stdout)
  assert.equal(lines.match(/proc: 'ok'/g)?.length, 2, lines)
  assert.match(
    first.out,
    /^http {2}.*\ngrpc {2}127\.0\.0\.1:\d+\noperator {2}http:.*\npage {2}http:.*\ndb {4}/,
  )

  const listed = await run(['user', 'bindings', '--json', '--db', db])
  assert.deepEqual(rowsOf(listed.out), [{ name: 'uri:conveyor:demo', acts_as: 13000 }])
  assert.equal(statSync(`${db}.tls`).mode & 0o777, 0o700)
  const made_ms = statSync(`${db}.tls/demo.key`).mtimeMs

  assert.equal((await run(['user', 'unbind', 'uri:conveyor:demo', '--db', db])).exit, 0)
  const second = await served([...args, '--grpc-strict'], async () => undefined)
  assert.equal(second.exit, 0, second.err)
  assert.equal(statSync(`${db}.tls/demo.key`).mtimeMs, made_ms)
  const kept = await run(['user', 'bindings', '--json', '--db', db])
  assert.deepEqual(rowsOf(kept.out), [{ name: 'uri:conveyor:demo', acts_as: null }])
})

test('the demo without gRPC makes no certificates', async () => {
  const db = join(folder.path, 'plain.lmdb')
  const { exit } = await served(['serve', '--demo', ...http_free, '--db', db], async () => {})
  assert.equal(exit, 0)
  assert.ok(existsSync(db))
  assert.ok(!existsSync(`${db}.tls`))
})

/** Runs `serve` in this process until `use`, which gets its output, is done. */
async function served<T>(args: readonly string[], use: (output: string) => Promise<T>) {
  let output = ''
  let stop = (): void => {}
  let asked = false
  let used: T | undefined
  const ended = await run(args, {
    onWait: (end) => {
      stop = end
    },
    onOut: (text) => {
      output += text
      if (asked) return
      asked = true
      // All of it is printed in this turn and the next few.
      setTimeout(() => {
        void use(output)
          .then((value) => {
            used = value
          })
          .finally(() => stop())
      }, 100)
    },
  })
  return { ...ended, used }
}

/** Runs text as if it were pasted into bash, in the checkout. */
function bash(text: string): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const options = { cwd: top, env: { PATH: process.env.PATH } }
    const child = execFile('bash', ['-s'], options, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    )
    child.stdin?.end(text)
  })
}
