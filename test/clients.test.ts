/**
 * Clients in other languages as third parties write them, against a real server: each creates a task
 * and answers its callback. A client whose interpreter is missing on the machine is skipped.
 */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openHttp, type TestHttp, user } from './support/http-server.ts'

/** [name, command, its script, a command that fails where something is missing] */
const clients: [string, string[], string, string[]][] = [
  ['curl and openssl', ['sh'], 'client.sh', ['sh', '-c', 'curl --version && openssl version']],
  ['Python 3', ['python3'], 'client.py', ['python3', '--version']],
  ['Python 3, signing in headers', ['python3'], 'client-headers.py', ['python3', '--version']],
  ['Python 2', ['python2'], 'client.py', ['python2', '--version']],
  ['Perl', ['perl'], 'client.pl', ['perl', '-MHTTP::Tiny', '-MDigest::SHA', '-e', '1']],
  ['PHP', ['php'], 'client.php', ['php', '--version']],
]

describe('clients', () => {
  let server: TestHttp
  before(async () => {
    server = await openHttp()
  })
  after(() => server.close())

  for (const [name, [command = '', ...args], script, probe] of clients) {
    test(name, { skip: whyNot(probe) }, async () => {
      const ref = `ref of ${name}`
      const path = fileURLToPath(new URL(`support/clients/${script}`, import.meta.url))
      const { stdout } = await promisify(execFile)(
        command,
        [...args, path, server.http.url, user, ref],
        { env: { ...process.env, API_SECRET: server.secret }, timeout: 30_000 },
      )
      const [created = '', modified] = stdout.trim().split('\n')
      const { obj_id } = JSON.parse(created).ops[0] as { obj_id: string }
      const one = `{"ref":"${ref}","obj":"task","obj_id":"${obj_id}","proc":"ok"}`
      assert.equal(created, `{"request_proc":"ok","ops":[${one}]}`)
      assert.equal(modified, `{"request_proc":"ok","ops":[{"ref":"${ref}","proc":"ok"}]}`)
      const task = await server.engine.task({ conv_id: 1234, obj_id })
      assert.equal(task?.status, 'processed')
      assert.match(task?.data_text ?? '', /"amount":10\.0\b/)
      assert.deepEqual(task?.data, { name: 'Київ', amount: 10, paid: true })
    })
  }
})

function whyNot([command = '', ...args]: string[]): string | false {
  const { status, error } = spawnSync(command, args, { stdio: 'ignore' })
  return error || status !== 0 ? `${command} is not here, or lacks a module` : false
}
