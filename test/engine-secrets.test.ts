/**
 * Secrets are stored encrypted: the data file has no plain secret, and only its owner can read the
 * key file. A rekey loses no secret, wherever it is cut off, and keeps the old key for older
 * backups. Concurrent changes of users do not mix keys.
 */
import assert from 'node:assert/strict'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { it } from 'node:test'
import { defineProcess, end, go } from '../src/define.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/open.ts'
import { fakeClock } from './support/fake-clock.ts'
import { fileHarness } from './support/model-setup.ts'
import { secretsOf } from './support/secrets-of.ts'

interface Given {
  readonly path: string
  readonly key_path: string
  open(): Promise<Engine>
}

async function withFile(fn: (given: Given) => Promise<void>): Promise<void> {
  const harness = await fileHarness()
  try {
    const { path } = harness
    await fn({ path, key_path: `${path}.key`, open: () => openEngine(path) })
  } finally {
    await harness.remove()
  }
}

it('no file has a plain secret, and only its owner can read the key file', () =>
  withFile(async ({ path, key_path, open }) => {
    const engine = await open()
    const { id, secret } = await engine.users.add()
    assert.ok(secret.length >= 32)
    await engine.close()
    const bytes = await readFile(path)
    const key_text = (await readFile(key_path, 'utf8')).trim()
    const key = Buffer.from(key_text, 'hex')
    for (const hidden of [secret, Buffer.from(secret, 'base64url'), key, key_text]) {
      assert.equal(bytes.indexOf(hidden), -1)
    }
    assert.equal((await stat(key_path)).mode & 0o777, 0o600)
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    await using again = await open()
    assert.deepEqual(secretsOf(again, id), [secret])
  }))

it('the signatures that a user may use outlive the engine; old records mean both', () =>
  withFile(async ({ open }) => {
    const engine = await open()
    const { id, secret } = await engine.users.add({ sign: 'hmac' })
    const both = await engine.users.add()
    await engine.close()
    await using again = await open()
    assert.deepEqual(servedEngine(again).users.secrets(id, 'hmac'), [secret])
    assert.ok(!servedEngine(again).users.secrets(id, 'path').includes(secret))
    assert.deepEqual(servedEngine(again).users.secrets(both.id, 'path'), [both.secret])
  }))

it('as many secrets are compared for any user, known or not, as the one with the most has', async () => {
  const clock = fakeClock()
  const { users, close } = servedEngine(await openEngine(':memory:', { clock }))
  const { id } = await users.add()
  const other = await users.add({ sign: 'hmac' })
  const compared = async (...changes: (() => unknown)[]): Promise<number[]> => {
    for (const change of changes) await change()
    const all = [id, other.id, '999'].map((one) => users.secrets(one, 'path'))
    return all.map((secrets) => secrets.length)
  }
  assert.deepEqual(await compared(), [1, 1, 1])
  assert.deepEqual(await compared(() => users.rotate(id, { grace_ms: 1_000 })), [2, 2, 2])
  assert.deepEqual(await compared(() => users.rotate(id, { grace_ms: 5_000 })), [3, 3, 3])
  assert.deepEqual(await compared(() => clock.advance(999)), [3, 3, 3])
  assert.deepEqual(await compared(() => clock.advance(1)), [2, 2, 2])
  assert.deepEqual(await compared(() => clock.set(clock.now_ms() - 500)), [3, 3, 3])
  assert.deepEqual(await compared(() => clock.advance(4_500)), [1, 1, 1])
  assert.deepEqual(await compared(() => users.rotate(other.id, { grace_ms: 1_000 })), [2, 2, 2])
  assert.deepEqual(users.secrets(other.id, 'path'), users.secrets('999'), 'of no use to sign')
  assert.deepEqual(await compared(() => users.remove(other.id)), [1, 1, 1])
  await close()
})

it('a rekey makes the old key useless and keeps the secrets', () =>
  withFile(async ({ key_path, open }) => {
    const engine = await open()
    const { id, secret } = await engine.users.add()
    const old_key = await readFile(key_path)
    const { secrets, key_id, old_key_id, ...paths } = await engine.users.rekey()
    assert.equal(secrets, 1)
    assert.notEqual(key_id, old_key_id)
    assert.deepEqual(paths, { key_path, old_key_path: `${key_path}.${old_key_id}` })
    assert.deepEqual(await readFile(paths.old_key_path as string), old_key)
    assert.notDeepEqual(await readFile(key_path), old_key)
    assert.deepEqual(secretsOf(engine, id), [secret])
    await engine.close()
    const again = await open()
    assert.deepEqual(secretsOf(again, id), [secret])
    await again.close()
    await writeFile(key_path, old_key)
    await using shut = await open()
    assert.throws(() => secretsOf(shut, id), { code: 'store_failed' })
  }))

/** What a crash within a rekey leaves: which key fits the store, and what the two files hold. */
const crashes = [
  { when: 'before the commit', store: 'old', file: 'old', next: 'new' },
  { when: 'in the middle of writing the new key file', store: 'old', file: 'old', next: 'half' },
  { when: 'after the commit, before the rename', store: 'new', file: 'old', next: 'new' },
  { when: 'after the old key was put aside', store: 'new', file: undefined, next: 'new' },
  { when: 'after the rename', store: 'new', file: 'new', next: undefined },
] as const

for (const { when, store, file, next } of crashes) {
  it(`a crash ${when} of a rekey loses no secret`, () =>
    withFile(async ({ path, key_path, open }) => {
      const engine = await open()
      const { id, secret } = await engine.users.add()
      await engine.close()
      const old = { data: await readFile(path), key: await readFile(key_path) }
      const rekeyed = await open()
      await rekeyed.users.rekey()
      await rekeyed.close()
      const fresh = { data: await readFile(path), key: await readFile(key_path) }

      const half = { key: fresh.key.subarray(0, 32) }
      const states = { old, new: fresh, half }
      await writeFile(path, states[store].data)
      if (file === undefined) await rm(key_path)
      else await writeFile(key_path, states[file].key)
      if (next !== undefined) await writeFile(`${key_path}.new`, states[next].key, { mode: 0o600 })

      const again = await open()
      assert.deepEqual(secretsOf(again, id), [secret])
      assert.deepEqual(await readFile(key_path), states[store].key)
      assert.equal((await again.users.rekey()).secrets, 1)
      await again.close()
      await using last = await open()
      assert.deepEqual(secretsOf(last, id), [secret])
    }))
}

it('a rekey of a file whose key file was taken away while in use keeps the secrets', () =>
  withFile(async ({ key_path, open }) => {
    const engine = await open()
    const { id, secret } = await engine.users.add()
    await rename(key_path, `${key_path}.away`)
    const { old_key_path } = await engine.users.rekey()
    await engine.close()
    assert.deepEqual(await readFile(old_key_path as string), await readFile(`${key_path}.away`))
    await using again = await open()
    assert.deepEqual(secretsOf(again, id), [secret])
  }))

const order = defineProcess({ id: 1, nodes: { start: go('end'), end: end() } })

/** What a crash leaves while the secrets of a lost key are forgotten. `another` is a wrong key. */
const forgotten = [
  { when: 'none', store: 'new', file: 'new', next: undefined },
  { when: 'a crash before the commit', store: 'old', file: undefined, next: 'new' },
  { when: 'a crash after it', store: 'new', file: undefined, next: 'new' },
  { when: 'a crash after it, beside a wrong key', store: 'new', file: 'another', next: 'new' },
] as const

for (const { when, store, file, next } of forgotten) {
  it(`a lost key is given up with all secrets, and users get new ones; ${when}`, () =>
    withFile(async ({ path, key_path, open }) => {
      const engine = await open()
      const { id } = await engine.users.add()
      await engine.processes.put(order)
      await engine.processes.share('1', id)
      const { address } = await engine.processes.webhook('1', { address: 'new' })
      const forget = (which: Engine) => which.users.rekey({ forget_secrets: true })
      await assert.rejects(forget(engine), { code: 'not_possible' })
      await engine.close()
      await rename(key_path, `${key_path}.away`)
      const old = await readFile(path)
      const shut = await open()
      await assert.rejects(shut.users.rotate(id), { code: 'key_missing' })
      const { secrets, key_id, ...paths } = await forget(shut)
      assert.deepEqual({ secrets, paths }, { secrets: 2, paths: { key_path } })
      assert.deepEqual(secretsOf(shut, id), [])
      await shut.close()

      const fresh = await readFile(key_path)
      if (store === 'old') await writeFile(path, old)
      if (file === undefined) await rm(key_path)
      if (file === 'another') await writeFile(key_path, 'ab'.repeat(32))
      if (next !== undefined) await writeFile(`${key_path}.new`, fresh, { mode: 0o600 })
      const again = await open()
      if (store === 'old') await forget(again)
      assert.equal((await again.ready()).checks.key.ok, true)
      const { secret } = await again.users.rotate(id)
      assert.deepEqual(secretsOf(again, id), [secret])
      assert.equal((await again.users.list())[0]?.grants.length, 1)
      assert.notEqual((await again.processes.webhook('1')).address ?? address, address)
      assert.deepEqual((await again.check()).breaches, [])
      await again.close()
      await using last = await open()
      assert.deepEqual(secretsOf(last, id), [secret])
    }))
}

it('what is no key file stays where it is when secrets are forgotten', () =>
  withFile(async ({ key_path, open }) => {
    const engine = await open()
    await engine.users.add()
    await engine.close()
    await writeFile(key_path, 'half a k')
    await using shut = await open()
    const forget = () => shut.users.rekey({ forget_secrets: true })
    await assert.rejects(forget, /is no key file; move it away/)
    assert.equal(await readFile(key_path, 'utf8'), 'half a k')
    await rename(key_path, `${key_path}.broken`)
    assert.equal((await forget()).secrets, 1)
  }))

it('changes of users sent at once leave a file that opens and passes its check', () =>
  withFile(async ({ open }) => {
    const engine = await open()
    const [one, two] = await Promise.all([engine.users.add(), engine.users.add()])
    assert.notEqual(one.id, two.id)
    const [three, rotated] = await Promise.all([
      engine.users.add(),
      engine.users.rotate(one.id),
      engine.users.rekey(),
      engine.users.remove(two.id),
      engine.users.rekey(),
    ])
    const last = await engine.users.rotate(three.id)
    const wanted = [[rotated.secret], [], [last.secret]]
    const secretsIn = (which: Engine): (readonly string[])[] =>
      [one, two, three].map(({ id }) => secretsOf(which, id))
    assert.deepEqual(secretsIn(engine), wanted)
    assert.deepEqual((await engine.check()).breaches, [])
    await engine.close()
    await using again = await open()
    assert.deepEqual(secretsIn(again), wanted)
  }))
