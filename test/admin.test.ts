/**
 * The admin server: the path of its socket, the callers it answers, and that values cross it
 * unchanged. The engine keeps its tasks in memory.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, request } from 'node:http'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import type { Fault } from '../src/core/faults.ts'
import { openEngine } from '../src/open.ts'
import { adminClient } from '../src/server/admin/client.ts'
import { serveAdmin } from '../src/server/admin/server.ts'
import { adminSocketPath } from '../src/server/admin/socket-path.ts'
import { type Admin, localAdmin } from '../src/server/admin/verbs.ts'
import { maskedPaths, maskTask } from '../src/task-operations/hidden-params.ts'
import type { RawOp } from '../src/task-operations/task-actions.ts'
import { callback_process } from './support/cli-process.ts'
import { tempFolder } from './support/cli-run.ts'

const folder = tempFolder()
const engine = await openEngine(':memory:', { background: false })
await engine.processes.put(callback_process)
const identity = { file_id: 'f1', version: '1.0.0' }
const { socket } = adminSocketPath('/some/file', { runtime_dir: join(folder.path, 'run') })
const server = await serveAdmin(engine, { ...identity, socket })
const far = adminClient({ ...identity, socket })

after(async () => {
  await far.close()
  await server.close()
  await engine.close()
  folder.remove()
})

test('the folder is 0700, the socket 0600, its name 16 hex digits of the path', () => {
  assert.equal(statSync(dirname(socket)).mode & 0o777, 0o700)
  assert.equal(statSync(socket).mode & 0o777, 0o600)
  assert.match(socket, /\/run\/[0-9a-f]{16}$/)
  const again = adminSocketPath('/some/file', { runtime_dir: join(folder.path, 'run') })
  assert.equal(again.socket, socket)
  const other = adminSocketPath('/some/other', { runtime_dir: join(folder.path, 'run') })
  assert.notEqual(other.socket, socket)
})

const foreign_things: [what: string, make: (path: string) => void][] = [
  ['a symlink', (path) => symlinkSync(folder.path, path)],
  ['a file', (path) => writeFileSync(path, '')],
  [
    'a folder others may enter',
    (path) => {
      mkdirSync(path)
      chmodSync(path, 0o755)
    },
  ],
]
for (const [what, make] of foreign_things) {
  test(`where ${what} is in the way, another folder is made`, () => {
    const path = join(folder.path, what.replaceAll(' ', '-'))
    make(path)
    const found = adminSocketPath('/some/file', { runtime_dir: path })
    assert.notEqual(found.folder, path)
    assert.equal(statSync(found.folder).mode & 0o777, 0o700)
    rmSync(found.folder, { recursive: true })
  })
}

test('a path too long for a socket is refused', () => {
  const runtime_dir = join(folder.path, 'x'.repeat(90))
  assert.throws(() => adminSocketPath('/f', { runtime_dir }), { code: 'not_possible' })
})

test('a verb answers the same here and over the socket', async () => {
  const near = localAdmin(engine)
  assert.deepEqual(await far.call('process.list', {}), await near.call('process.list', {}))
  assert.deepEqual(await far.call('about', {}), { path: ':memory:', ops_max: 1000 })
  assert.equal(await far.call('process.pause', { id: '1234' }), null)
  assert.equal(await far.call('process.resume', { id: '1234' }), null)
})

test('faults cross the socket with code, message and every mistake', async () => {
  await assert.rejects(far.call('process.show', { id: '9' }), { code: 'conv_not_found' })
  await assert.rejects(far.call('user.remove', { id: '9' }), { code: 'user_not_found' })
  const bad = JSON.stringify({ ...callback_process, scheme: { nodes: [{ id: 'a' }, { id: 'a' }] } })
  const text = `[${bad},${bad}]`
  const crossed = await refusalOf(far, text)
  const direct = await refusalOf(localAdmin(engine), text)
  assert.equal(crossed?.code, 'bad_definition')
  assert.ok((crossed?.mistakes?.length ?? 0) > 1)
  assert.deepEqual(crossed?.mistakes, direct?.mistakes)
})

test('no number loses its token, and no key is lost', async () => {
  const data_text =
    '{"a":12345678901234567890,"b":1.10,"c":-0,"d":1e400,"e":10.0,"__proto__":{"x":1}}'
  const op: RawOp = { type: 'create', conv_id: '1234', ref_text: '7.0', data_text }
  const [result] = await far.call('task.apply', { ops: [op] })
  assert.deepEqual([result?.proc, result?.ref, result?.ref_is_number], ['ok', '7.0', true])
  const task = await far.call('task.show', { conv_id: '1234', ref: '7.0' })
  assert.equal(task?.data_text, data_text)
})

test('a batch of 1000 is answered op by op; bad data refuses its op alone', async () => {
  const ops = Array.from(
    { length: 1000 },
    (_, at): RawOp => ({
      type: 'create',
      conv_id: '1234',
      ref_text: JSON.stringify(`batch-${at}`),
      data_text: at === 500 ? '{"a":' : JSON.stringify({ at, text: 'x'.repeat(1000) }),
    }),
  )
  const results = await far.call('task.apply', { ops })
  assert.equal(results.length, 1000)
  assert.equal(results[500]?.proc, 'error')
  assert.equal(results[500]?.key, 'data')
  assert.deepEqual(
    results.filter(({ proc }) => proc === 'ok').map(({ ref }) => ref),
    ops.filter((_, at) => at !== 500).map(({ ref_text }) => JSON.parse(ref_text ?? '')),
  )
})

test('another file or another version is refused before anything is done', async () => {
  const rows = [
    { ...identity, file_id: 'f2' },
    { ...identity, version: '2.0.0' },
  ]
  for (const theirs of rows) {
    const foreign = adminClient({ ...theirs, socket })
    await assert.rejects(foreign.call('process.pause', { id: '1234' }), { code: 'file_held' })
    await foreign.close()
  }
  assert.equal((await engine.processes.show('1234')).status, 'active')
})

test('a malformed request gets a fault', async () => {
  assert.match(await ask('{'), /"fault"/)
  assert.match(await ask(JSON.stringify({ ...identity, verb: 'constructor' })), /"not_found"/)
  assert.match(await ask(JSON.stringify({ ...identity, verb: 'user.remove' })), /internal_error/)
})

test('a request over the bound is not sent', async () => {
  const files = [{ name: 'x', text: 'x'.repeat(81 * 1024 * 1024) }]
  await assert.rejects(far.call('process.import', { files }), { code: 'body_too_large' })
})

test('a leftover socket is replaced; closing answers calls under way', async () => {
  const place = join(folder.path, 'left')
  writeFileSync(place, 'left over')
  let begun = (): void => {}
  let goOn = (): void => {}
  const began = new Promise<void>((resolve) => {
    begun = resolve
  })
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const list = async () => {
    begun()
    await gate
    return []
  }
  const slow = { ...engine, processes: { ...engine.processes, list } }
  const second = await serveAdmin(slow, { ...identity, socket: place })
  const client = adminClient({ ...identity, socket: place })
  const asked = client.call('process.list', {})
  await began
  const closed = second.close()
  goOn()
  assert.deepEqual(await asked, [])
  await closed
  await client.close()
  const late = adminClient({ ...identity, socket: place })
  await assert.rejects(late.call('about', {}), { syscall: 'connect' })
  await late.close()
  assert.ok(!existsSync(place), 'the socket is gone')
})

test('a holder that ends without an answer is store_failed', async () => {
  const place = join(folder.path, 'rude')
  const rude = createServer((request) => request.socket.destroy()).listen(place)
  await once(rude, 'listening')
  const client = adminClient({ ...identity, socket: place })
  await assert.rejects(client.call('about', {}), { code: 'store_failed' })
  await client.close()
  rude.close()
})

const masked = (name: string) => ({ name, flags: ['auto-clear'] })

// biome-ignore format: a table
const masks: [params: unknown, data: string, masked: string][] = [
  [[{ name: 'a', flags: ['auto-clear'] }], '{"a":1,"b":1.10}', '{"a":"***","b":1.10}'],
  [[{ name: 'a', flags: ['input'] }],      '{"a":1}',          '{"a":1}'],
  [[{ name: '__proto__', flags: ['auto-clear'] }], '{"__proto__":1}', '{"__proto__":"***"}'],
  [[{ name: 'c', flags: ['auto-clear'] }], '{"a":1}',          '{"a":1}'],
  [[masked('card.pan')], '{"card":{"pan":1,"x":1.10}}', '{"card":{"pan":"***","x":1.10}}'],
  [[masked('card.pan')], '{"card":"x","card.pan":1}', '{"card":"x","card.pan":"***"}'],
  [[masked('l[].pan')], '{"l":[{"pan":[1]},{"x":1},2]}', '{"l":[{"pan":"***"},{"x":1},2]}'],
  [[masked('l[].pan')], '{"l":{"pan":1}}', '{"l":{"pan":1}}'],
  [[masked('l[1]')], '{"l":[1,{"a":1}]}', '{"l":[1,"***"]}'],
  [[masked('l[]')], '{"l":[1,"a",[2]]}', '{"l":["***","***","***"]}'],
  [[masked('l[][].a')], '{"l":[[{"a":1}],[]]}', '{"l":[[{"a":"***"}],[]]}'],
  [[masked('a\\.b')], '{"a.b":1,"a":{"b":1}}', '{"a.b":"***","a":{"b":1}}'],
  [[masked('a.b'), masked('a')], '{"a":{"b":1}}', '{"a":"***"}'],
  [[masked('a.__proto__')], '{"a":{"__proto__":1}}', '{"a":{"__proto__":"***"}}'],
  ['none',                                 '{"a":1}',          '{"a":1}'],
  [[null, { name: 1 }, { name: 'a' }],     '{"a":1}',          '{"a":1}'],
]
for (const [params, data_text, shown] of masks) {
  test(`mask ${JSON.stringify(params)}`, () => {
    assert.equal(maskTask({ data_text }, maskedPaths(JSON.stringify({ params }))).data_text, shown)
  })
}

test('what is masked is masked where a failure tells it', () => {
  const description = 'Param: n, Value: 4111111111111111, Try convert to: array'
  const told = '__conveyor_set_param_return_description__'
  const data = { card: 4111111111111111, other: '4111111111111111', [told]: description }
  const task = {
    data_text: JSON.stringify(data),
    status_details: { tag: 'set_param_wrong_convert_param', description },
  }
  const shown = maskTask(task, [['card']])
  const masked = 'Param: n, Value: ***, Try convert to: array'
  assert.equal(shown.status_details?.description, masked)
  assert.deepEqual(JSON.parse(shown.data_text), { ...data, card: '***', [told]: masked })
  const nested = {
    ...task,
    data_text: JSON.stringify({ l: [{ pan: data.card }], [told]: description }),
  }
  const shown_nested = maskTask(nested, [['l', null, 'pan']])
  assert.equal(shown_nested.status_details?.description, masked)
  assert.deepEqual(JSON.parse(shown_nested.data_text), { l: [{ pan: '***' }], [told]: masked })
})

/** What an import is refused with. */
function refusalOf(admin: Admin, text: string): Promise<Fault | undefined> {
  return admin.call('process.import', { files: [{ name: 'x', text }] }).then(
    () => undefined,
    (error: Fault) => error,
  )
}

/** Posts a text as it is. */
function ask(body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath: socket, method: 'POST', path: '/' }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += String(chunk)
      })
      response.on('end', () => resolve(text))
    })
    call.on('error', reject).end(body)
  })
}
