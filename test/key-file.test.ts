/**
 * A key file that is missing, broken, unreadable or another's, found at the start or while the
 * engine runs: tasks go on; what needs secrets is refused, by every server and without a path; the
 * operator is told once, in one sentence; and the right file, put back, is taken without a restart.
 */
import assert from 'node:assert/strict'
import { chmod, copyFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { hmacOf, signatureOf } from '../src/codec/signature.ts'
import { type ServedEngine, servedEngine } from '../src/engine/served-engine.ts'
import { serveGrpc } from '../src/grpc.ts'
import { serveHttp } from '../src/http.ts'
import { openEngine } from '../src/open.ts'
import { fakeClock } from './support/fake-clock.ts'
import { openClient } from './support/grpc-client.ts'
import { exchange } from './support/http-raw.ts'
import { conv_id, createBody, process_definition } from './support/http-server.ts'
import { quickFolder } from './support/store-folder.ts'

const other_key = `${'ab'.repeat(32)}\n`

interface File {
  readonly path: string
  readonly key: string
  readonly user: string
  readonly secret: string
  /** Paths of addresses. */
  readonly webhook: string
  readonly callback: string
}

/** A closed file with a user, a process and its addresses, and a copy of the key beside. */
let file: File
let folder: string

after(() => rm(folder, { recursive: true, force: true }))

before(async () => {
  folder = await quickFolder('conveyor-key-')
  const path = join(folder, 'tasks.lmdb')
  const engine = await openEngine(path, { public_url: 'http://x.example' })
  const { id: user, secret } = await engine.users.add()
  await engine.processes.put(process_definition)
  await engine.processes.share(conv_id, user)
  const { address, callbacks } = await engine.processes.webhook(conv_id, { address: 'new' })
  await engine.close()
  const pathOf = (url: unknown): string => new URL(String(url)).pathname
  const paths = { webhook: pathOf(address), callback: pathOf(callbacks[0]?.address) }
  file = { path, key: `${path}.key`, user, secret, ...paths }
  await copyFile(file.key, `${path}.kept`)
})

const putBack = async (): Promise<void> => {
  await rm(file.key, { recursive: true, force: true })
  await copyFile(`${file.path}.kept`, file.key)
}

// biome-ignore format: a table
const states: readonly (readonly [string, string, (key: string) => Promise<unknown>, RegExp])[] = [
  ['missing', 'missing', (key) => rm(key), /is missing; put it back/],
  ['empty', 'no_key', (key) => writeFile(key, ''), /is no key \(32 bytes/],
  ['cut short', 'no_key', (key) => writeFile(key, other_key.slice(0, 43)), /is no key \(32 bytes/],
  ['something else', 'no_key', (key) => writeFile(key, 'x'.repeat(99_999)), /is no key \(32 bytes/],
  ['a folder', 'no_key', async (key) => { await rm(key); await mkdir(key) }, /is no key \(32 bytes/],
  ['the key of another file', 'another', (key) => writeFile(key, other_key), /is the key of another file/],
  ['unreadable', 'unreadable', async (key) => { await rm(key); await symlink(key, key) }, /cannot be read \(ELOOP\)/],
]

interface Harness {
  readonly engine: ServedEngine
  readonly clock: ReturnType<typeof fakeClock>
  /** The events of the key, without those of the opening where it was right. */
  readonly events: string[]
  /** What each way in says. */
  ask(): Promise<Record<string, string>>
}

async function withServers(spoil: () => Promise<unknown>, fn: (harness: Harness) => Promise<void>) {
  await spoil()
  const clock = fakeClock()
  const events: string[] = []
  const note = (fields: object): void => {
    const { event, state } = fields as { event: string; state?: string }
    if (event.startsWith('key_')) events.push(state === undefined ? event : `${event} ${state}`)
  }
  const logger = { debug: note, info: note, warn: note, error: note }
  const engine = servedEngine(await openEngine(file.path, { clock, logger, background: false }))
  const http = await serveHttp(engine, { port: 0 })
  const grpc = await serveGrpc(engine, { port: 0, plain: true })
  const client = openClient(grpc.address)
  let n = 0
  const post = async (path: string, body: string, lines: readonly string[] = []) => {
    const head = [`POST ${path} HTTP/1.1`, 'Host: x', `Content-Length: ${body.length}`, ...lines]
    const answer = await exchange(
      http.address.port,
      Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`),
    )
    assert.ok(!answer.body.includes(file.path), answer.body)
    const { request_proc } = JSON.parse(answer.body) as { request_proc: string }
    return request_proc
  }
  const ask = async (): Promise<Record<string, string>> => {
    const ref = `${clock.now_ms()}-${events.length}-${n++}`
    const body = createBody(ref)
    const timestamp = String(Math.floor(clock.now_ms() / 1000))
    const { user, secret } = file
    const signature = signatureOf(timestamp, secret, body)
    const by_hmac = createBody(`${ref}-h`)
    const headers = [
      `X-API-Login: ${user}`,
      `X-API-Timestamp: ${timestamp}`,
      `X-API-Signature: ${hmacOf(timestamp, secret, by_hmac)}`,
    ]
    const task = { conv_id, data_json: Buffer.from('{}') }
    return {
      library: (await engine.create({ conv_id, ref: `${ref}-l`, data: {} })).proc,
      grpc: ((await client.call('CreateTask', task)) as { obj_id: string }).obj_id ? 'ok' : '',
      path: await post(`/api/1/json/${user}/${timestamp}/${signature}`, body),
      hmac: await post('/api/1/json', by_hmac, headers),
      webhook: await post(file.webhook, '{}'),
      callback: await post(file.callback, `{"ref":"${ref}-l"}`),
    }
  }
  try {
    await fn({ engine, clock, events, ask })
  } finally {
    client.close()
    await grpc.drain()
    await http.drain()
    await engine.close()
    await putBack()
  }
}

const refused = 'store_failed'
const all_ok = { library: 'ok', grpc: 'ok', path: 'ok', hmac: 'ok', webhook: 'ok', callback: 'ok' }
const locked = { ...all_ok, path: refused, hmac: refused, webhook: refused, callback: refused }

describe('a key file', () => {
  for (const [what, state, spoil, says] of states) {
    it(`that is ${what} at the start shuts what needs it until it is put back`, () =>
      withServers(
        () => spoil(file.key),
        async ({ engine, clock, events, ask }) => {
          assert.deepEqual(await ask(), locked)
          assert.deepEqual(await ask(), locked)
          const { problem = '', warning, id } = engine.keyState()
          assert.match(problem, says)
          assert.ok(problem.includes(file.key))
          assert.deepEqual([warning, id], [undefined, undefined])
          assert.deepEqual((await engine.ready()).checks.key, { ok: false, reason: problem })
          assert.throws(() => engine.users.secrets(file.user), { code: refused, message: says })
          for (const call of [
            () => engine.users.add(),
            () => engine.users.rotate(file.user),
            () => engine.users.rekey(),
          ]) {
            await assert.rejects(call, { code: 'key_missing', message: says })
          }
          assert.equal(engine.health(), 'ok')
          assert.deepEqual(events, [`key_missing ${state}`])
          await putBack()
          assert.deepEqual(await ask(), locked, 'it was looked at in this second')
          clock.advance(1_000)
          assert.deepEqual(await ask(), all_ok)
          assert.equal(engine.keyState().problem, undefined)
          assert.match(engine.keyState().id ?? '', /^[0-9a-f]{8}$/)
          assert.deepEqual(events, [`key_missing ${state}`, 'key_back'])
        },
      ))

    it(`that becomes ${what} while in use is told, and its key goes on working`, () =>
      withServers(putBack, async ({ engine, clock, events, ask }) => {
        assert.deepEqual(await ask(), all_ok)
        await spoil(file.key)
        assert.equal(engine.keyState().warning, undefined, 'it was looked at in this second')
        clock.advance(59_999)
        assert.deepEqual(await ask(), all_ok)
        assert.deepEqual(events, [])
        clock.advance(1)
        for (let at = 0; at < 3; at++) {
          assert.deepEqual(await ask(), all_ok)
          clock.advance(60_000)
        }
        assert.deepEqual(events, [`key_missing ${state}`])
        const { problem, warning = '' } = engine.keyState()
        assert.equal(problem, undefined)
        assert.match(warning, says)
        assert.match(warning, /the next start does not/)
        assert.deepEqual((await engine.ready()).checks.key, { ok: true, reason: warning })
        await putBack()
        clock.advance(1_000)
        assert.equal(engine.keyState().warning, undefined)
        assert.deepEqual(events, [`key_missing ${state}`, 'key_back'])
      }))
  }

  it('that others may read is told once', () =>
    withServers(
      () => chmod(file.key, 0o640),
      async ({ engine, clock, events, ask }) => {
        assert.deepEqual(await ask(), all_ok)
        assert.match(engine.keyState().warning ?? '', /other users may read .*chmod 600/)
        await chmod(file.key, 0o600)
        clock.advance(1_000)
        assert.equal(engine.keyState().warning, undefined)
        assert.deepEqual(events, ['key_open'])
      },
    ))

  it('that changes from one wrong state to another is told again, and a user removed meanwhile stays so', () =>
    withServers(
      () => rm(file.key),
      async ({ engine, clock, events }) => {
        const { problem } = engine.keyState()
        await writeFile(file.key, other_key)
        assert.equal(engine.keyState().problem, problem)
        clock.advance(1_000)
        assert.notEqual(engine.keyState().problem, problem)
        assert.deepEqual(events, ['key_missing missing', 'key_missing another'])
        await putBack()
        // Who changes users is not made to wait.
        const { id, secret } = await engine.users.add()
        assert.deepEqual(engine.users.secrets(id), [secret])
        assert.deepEqual(engine.users.secrets(file.user), [file.secret])
        await engine.users.remove(id)
      },
    ))
})
