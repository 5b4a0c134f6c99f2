/**
 * A webhook that its definition locks (`type_auth` of the start): who is let in, that the secret is
 * encrypted in the file and nowhere shown, and what follows an import, a removal and a lost key.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { isFault } from '../src/core/faults.ts'
import { serveHttp } from '../src/http.ts'
import type { Engine } from '../src/index.ts'
import { openEngine } from '../src/open.ts'
import { exchange } from './support/http-raw.ts'
import { definition, node } from './support/http-server.ts'
import { fileHarness } from './support/model-setup.ts'

const basic = { direct_url: true, type_auth: 'basic', login: 'shop', secret: 'pass:word' }

const locked = (options: unknown, title = 'hook') => ({
  ...definition(7, [
    { ...node('start', 1, [{ type: 'go', to_node_id: 'end' }]), options },
    node('end', 2, []),
  ]),
  title,
})

const header = (text: string) => `Authorization: Basic ${Buffer.from(text).toString('base64')}`

/** Status and body of a request to the webhook, with these header lines. */
async function sent(engine: Engine, ...lines: string[]): Promise<[number, string]> {
  const { address } = await engine.processes.webhook(7)
  const http = await serveHttp(engine, { port: 0 })
  const head = `POST ${new URL(address ?? '', 'http://x').pathname} HTTP/1.1\r\nHost: x\r\n`
  const bytes = `${head}${lines.map((line) => `${line}\r\n`).join('')}Content-Length: 2\r\n\r\n{}`
  const { status, headers, body } = await exchange(http.address.port, Buffer.from(bytes))
  await http.drain()
  if (status === 401) assert.equal(headers['www-authenticate'], 'Basic realm="conveyor"')
  return [status, JSON.parse(body).request_proc]
}

const denied = [401, 'access_denied'] as const
const ok = [200, 'ok'] as const

const callers: readonly [options: unknown, lines: string[], wanted: readonly [number, string]][] = [
  [basic, [], denied],
  [basic, [header('shop:pass:word')], ok],
  [basic, [header('shop:pass')], denied],
  [basic, [header('shop:***')], denied],
  [basic, [header(':')], denied],
  [basic, [header('Shop:pass:word')], denied],
  [JSON.stringify(basic), [header('shop:pass:word')], ok],
  [JSON.stringify(basic), [], denied],
  [{ ...basic, secret: 1234 }, [header('shop:1234')], ok],
  [{ ...basic, secret: '' }, [header('shop:')], denied],
  [{ ...basic, login: null }, [header(':pass:word')], denied],
  [{ ...basic, secret: '***' }, [header('shop:***')], denied],
  [{ ...basic, secret: '{{env_var[@hook]}}' }, [header('shop:of the variable')], ok],
  [{ ...basic, secret: '{{env_var[@hook]}}' }, [header('shop:{{env_var[@hook]}}')], denied],
  [{ ...basic, secret: '{{env_var[@gone]}}' }, [header('shop:')], denied],
  [{ ...basic, login: '{{env_var[@user].name}}' }, [header('ann:pass:word')], ok],
  [{ direct_url: true, type_auth: 'no_auth' }, [], ok],
  [{ direct_url: true, type_auth: '' }, [], ok],
  [{ direct_url: true }, [header('any:thing')], ok],
]

describe('a request is let in by', () => {
  for (const [options, lines, wanted] of callers) {
    test(`${JSON.stringify(options)} with ${lines[0] ?? 'nothing'}: ${wanted[1]}`, async () => {
      const variables = { hook: 'of the variable', user: { name: 'ann' } }
      await using engine = await openEngine(':memory:', { variables })
      await engine.processes.put(locked(options))
      assert.deepEqual(await sent(engine, ...lines), wanted)
      const { nodes } = await engine.processes.show(7)
      const ended = nodes.reduce((sum, { by_status }) => sum + by_status.processed, 0)
      assert.equal(ended, wanted[1] === 'ok' ? 1 : 0)
    })
  }
})

test('a lock that is not known opens nothing, neither by import nor by hand', async () => {
  await using engine = await openEngine(':memory:')
  const options = { ...basic, type_auth: 'oauth' }
  const { warnings, webhook_opened } = await engine.processes.put(locked(options))
  assert.equal(webhook_opened, undefined)
  assert.deepEqual(warnings, [
    'nodes[0] "start": type_auth "oauth" is not known here: its webhook stays closed',
  ])
  const open = () => engine.processes.webhook(7, { address: 'new' })
  await assert.rejects(open, (error) => isFault(error) && error.code === 'not_possible')
  assert.equal((await engine.processes.webhook(7)).address, null)
})

test('a lock of a later version closes an open address to all without it', async () => {
  await using engine = await openEngine(':memory:')
  await engine.processes.put(locked({ direct_url: true }))
  const addressOf = async () => {
    const { address } = await engine.processes.webhook(7)
    return new URL(address ?? '', 'http://x').pathname
  }
  const address = await addressOf()
  assert.deepEqual(await sent(engine), ok)
  await engine.processes.put(locked(basic))
  assert.equal(await addressOf(), address)
  assert.deepEqual(await sent(engine), denied)
  const ask = () => engine.processes.webhook(7, { user: 1 })
  await assert.rejects(ask, (error) => isFault(error) && error.code === 'not_possible')
  await engine.processes.put(locked({ direct_url: true, type_auth: 'key' }))
  assert.equal((await engine.processes.webhook(7)).address, null)
})

test('another secret counts at once, a hidden one keeps it, and no version is made for it', async () => {
  await using engine = await openEngine(':memory:')
  const put = async (secret: string, title?: string) => {
    const { state, version } = await engine.processes.put(locked({ ...basic, secret }, title))
    return [state, version]
  }
  assert.deepEqual(await put('first'), ['created', 1])
  assert.deepEqual(await put('first'), ['unchanged', 1])
  assert.deepEqual(await put('second'), ['updated', 1])
  assert.deepEqual(await sent(engine, header('shop:first')), denied)
  assert.deepEqual(await put('***', 'other'), ['updated', 2])
  assert.deepEqual(await sent(engine, header('shop:second')), ok)
  const { webhook } = engine.processes
  assert.equal((await webhook(7)).has_login, true)
  await engine.processes.put(locked({ direct_url: true }))
  assert.deepEqual(await sent(engine), ok)
  assert.deepEqual(await put('***'), ['updated', 4])
  assert.deepEqual(await sent(engine, header('shop:second')), denied)
  assert.deepEqual((await engine.check()).breaches, [])
})

test('a dry run stores no secret', async () => {
  await using engine = await openEngine(':memory:')
  await engine.processes.put(locked({ ...basic, secret: 'first' }))
  await engine.processes.put(locked({ ...basic, secret: 'second' }), { dry_run: true })
  assert.deepEqual(await sent(engine, header('shop:first')), ok)
})

test('the secret is encrypted in the file, outlives restarts and rekeys, and goes with the process', async () => {
  const harness = await fileHarness()
  try {
    const engine = await openEngine(harness.path)
    await engine.processes.put(locked(JSON.stringify(basic)))
    const { definition_text } = await engine.processes.show(7)
    assert.ok(definition_text.includes('***') && !definition_text.includes('pass:word'))
    assert.equal((await engine.users.rekey()).secrets, 1)
    await engine.close()
    const folder = dirname(harness.path)
    for (const name of readdirSync(folder)) {
      assert.ok(!readFileSync(join(folder, name)).includes('pass:word'), name)
    }
    const again = await openEngine(harness.path)
    assert.deepEqual(await sent(again, header('shop:pass:word')), ok)
    assert.deepEqual(await sent(again), denied)
    assert.deepEqual((await again.check()).breaches, [])
    await again.processes.remove(7)
    await again.processes.put(locked({ ...basic, secret: '***' }))
    assert.deepEqual(await sent(again, header('shop:pass:word')), denied)
    await again.close()
  } finally {
    await harness.remove()
  }
})
