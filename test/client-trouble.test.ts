/**
 * The client's failures: what is retried, how long it waits, and the fault of each failure. Servers
 * are real where their behaviour matters.
 */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { deadlineIn } from '../src/client/cancellation.ts'
import { type ClientFaultCode, clientFault } from '../src/client/faults.ts'
import { withRetries } from '../src/client/retry.ts'
import { type CallOptions, type ClientOp, connect } from '../src/client.ts'
import { systemClock } from '../src/core/clock.ts'
import { fault } from '../src/core/faults.ts'
import { serveGrpc } from '../src/grpc.ts'
import { tempFolder } from './support/cli-run.ts'
import { type ClientServers, openClientServers, transports } from './support/client-servers.ts'
import { fakeChance } from './support/fake-clock.ts'
import { conv_id } from './support/http-server.ts'
import { eventually } from './support/waits.ts'

const folder = tempFolder()
after(() => folder.remove())

const named: ClientOp = { type: 'create', conv_id, ref: 'r', data: {} }
const nameless: ClientOp = { type: 'create', conv_id, data: {} }
const show: ClientOp = { type: 'show', conv_id, ref: 'r' }
const modify: ClientOp = { type: 'modify', conv_id, ref: 'r', data: {} }
const sync: ClientOp = { ...modify, is_sync: true, node_id: 'wait' }

type Code = Parameters<typeof fault>[0]

/**
 * [the fault of the first try, ops, how often a server sees the call: without replays; with them,
 * over HTTP and over gRPC]
 */
// biome-ignore format: a table
const repeats: readonly (readonly [Code, readonly ClientOp[], number, number, number])[] = [
  // Without replays with the look-up of the ref.
  ['store_failed',   [named],           3, 2, 2],
  ['store_failed',   [named, show],     3, 2, 2],
  ['store_failed',   [nameless],        1, 1, 2],
  ['store_failed',   [named, nameless], 1, 1, 2],
  ['store_failed',   [modify],          1, 2, 2],
  ['store_failed',   [sync],            1, 2, 2],
  ['rate_limited',   [modify],          2, 2, 2],
  ['rate_limited',   [nameless],        2, 2, 2],
  ['internal_error', [named],           1, 1, 1],
  ['no_space',       [named],           1, 1, 1],
  ['format_error',   [named],           1, 1, 1],
]

test('a wait for a result goes on after a drain, and is given up with its client', async () => {
  await using servers = await openClientServers(join(folder.path, 'waits'))
  const { engine, targets } = servers
  const { obj_id = '' } = await engine.create({ conv_id, data: {} })
  const target = { conv_id, obj_id }
  const { address } = targets.grpc
  await using client = await connect(targets.grpc)
  const wait = client.result(target)
  const given_up = assert.rejects(servers.clients.grpc.result(target), { code: 'unreachable' })
  await client.task(target)
  await servers.clients.grpc.close()
  await given_up
  await servers.drain()
  const port = Number(address.split(':')[1])
  const again = await serveGrpc(engine, { port, tls: { folder: join(folder.path, 'waits') } })
  await engine.modify({ ...target, data: {} })
  // It may end before the client is back.
  assert.equal((await wait).status, 'processed')
  await again.drain()
})

for (const keeps of [false, true]) {
  describe(`retries at a server ${keeps ? 'that keeps replays' : 'without replays'}`, () => {
    let calls = 0
    let code: Code = 'store_failed'
    let servers: ClientServers
    before(async () => {
      const without = { mode: 'off', onWindow() {} } as const
      servers = await openClientServers(join(folder.path, `repeats-${keeps}`), (engine) => ({
        replays: keeps ? engine.replays : without,
        submit: async (ops, caller) => {
          // As an earlier server.
          if (!keeps && caller.request_key !== undefined) {
            throw fault('format_error', 'request_key is not served yet')
          }
          const { signed: _, ...unsigned } = caller
          const results = engine.submit(ops, keeps ? caller : unsigned)
          // What is lost is the answer.
          await results
          if (++calls < 2) throw fault(code)
          return results
        },
      }))
      for (const transport of transports) {
        await servers.clients[transport].create({ conv_id, ref: `${transport}`, data: {} })
      }
    })
    after(() => servers.close())

    for (const transport of transports) {
      for (const [given, ops, without, over_http, over_grpc] of repeats) {
        const expected = keeps ? (transport === 'http' ? over_http : over_grpc) : without
        const what = ops.map((op) => `${op.type}${op.ref === undefined ? '' : ' ref'}`).join(', ')
        test(`${transport}: ${given} for ${what}: ${expected}`, async () => {
          calls = 0
          code = given
          const own = ops.map((op) =>
            op.ref === undefined ? op : { ...op, ref: what + transport },
          )
          const applied = servers.clients[transport].apply(own)
          if (expected > 1) assert.equal((await applied).length, ops.length)
          else await assert.rejects(applied, { code: given })
          assert.equal(calls, expected)
        })
      }
      test(`${transport}: none with retries_max 0`, async () => {
        calls = 0
        code = 'store_failed'
        await using client = await connect({ ...servers.targets[transport], retries_max: 0 })
        await assert.rejects(client.apply([named]), { code: 'store_failed', outcome: 'unknown' })
        assert.equal(calls, 1)
      })
    }
  })
}

for (const transport of transports) {
  test(`${transport}: calls whose answers are lost are applied once, alone and in one request`, async () => {
    const lost = { count: 0 }
    const made = join(folder.path, `once-${transport}`)
    const servers = await openClientServers(made, (engine) => ({
      submit: async (ops, caller) => {
        const results = await engine.submit(ops, caller)
        if (lost.count > 0 && lost.count-- > 0) throw fault('store_failed')
        return results
      },
    }))
    const client = servers.clients[transport]
    await client.task({ conv_id, ref: 'none' })
    const before = servers.engine.statistics().tasks.created
    for (const count of [1, 40]) {
      lost.count = 3
      const refs = Array.from({ length: count }, (_, n) => `${count}-${n}`)
      const created = await Promise.all(
        refs.map((ref) => client.create({ conv_id, ref, data: {} })),
      )
      assert.ok(created.every(({ proc }) => proc === 'ok'))
      lost.count = 3
      // The second of the same would find its task ended.
      const modified = await Promise.all(
        refs.map((ref) => client.modify({ conv_id, ref, data: {} })),
      )
      assert.deepEqual([...new Set(modified.map(({ proc }) => proc))], ['ok'])
    }
    const { tasks, replays, ops } = servers.engine.statistics()
    assert.deepEqual([tasks.created - before, ops.modify?.ok], [41, 41])
    assert.ok(replays >= 6)
    await servers.close()
  })
}

describe('waiting between tries', () => {
  const run = async (
    errors: readonly Error[],
    options: { readonly timeout_ms?: number } = {},
  ): Promise<{ readonly waits: number[]; readonly end: unknown }> => {
    const waits: number[] = []
    let tries = 0
    const deadline = deadlineIn(options.timeout_ms ?? 60_000, systemClock)
    const end = await withRetries(
      async () => {
        const error = errors[tries++]
        if (error !== undefined) throw error
        return 'done'
      },
      deadline,
      {
        clock: systemClock,
        chance: { ...fakeChance(), fraction: () => 0.5 },
        retries_max: 4,
        is_harmless: true,
        pause: async (ms) => void waits.push(ms),
      },
    ).catch((error: unknown) => error)
    deadline.dispose()
    return { waits, end }
  }
  const lost = (retry_after_ms?: number) => clientFault('unreachable', 'x', { retry_after_ms })

  test('doubles, and gives up after the last try', async () => {
    const errors = Array.from({ length: 9 }, () => lost())
    assert.deepEqual(await run(errors), { waits: [75, 150, 300, 600], end: errors[4] })
  })
  test('never less than the server asked for', async () => {
    assert.deepEqual(await run([lost(2_000)]), { waits: [2_075], end: 'done' })
  })
  test('a pause that would outlast the deadline is not begun', async () => {
    const error = lost(70_000)
    assert.deepEqual(await run([error]), { waits: [], end: error })
  })
  test('an error that is no fault is not retried', async () => {
    const error = new TypeError('x')
    assert.deepEqual(await run([error]), { waits: [], end: error })
  })
})

describe('a server that does not answer', () => {
  let servers: ClientServers
  let asked = 0
  let open = (): void => {}
  before(async () => {
    const held_back = new Promise<void>((resolve) => {
      open = resolve
    })
    servers = await openClientServers(join(folder.path, 'silent'), (engine) => ({
      submit: (ops, caller) => {
        asked++
        return held_back.then(() => engine.submit(ops, caller))
      },
    }))
  })
  after(async () => {
    open()
    await servers.close()
  })

  for (const transport of transports) {
    const short = { timeout_ms: 400 }
    const timed_out = { code: 'timed_out', outcome: 'unknown' }
    const reason = new Error('enough')
    const onceAsked = async (end: () => unknown): Promise<void> => {
      const before = asked
      await eventually(() => asked > before)
      end()
    }
    const soon = () => {
      const abort = new AbortController()
      void onceAsked(() => abort.abort(reason))
      return { signal: abort.signal }
    }
    const read = async (options: CallOptions): Promise<void> => {
      for await (const _ of servers.clients[transport].stream([[named], [modify]], options))
        assert.fail()
    }
    test(`${transport}: a call ends at its deadline`, () =>
      assert.rejects(servers.clients[transport].apply([named], short), timed_out))
    test(`${transport}: a stream ends at the deadline of a batch`, () =>
      assert.rejects(read(short), timed_out))
    test(`${transport}: a call under way ends when it is aborted`, () =>
      assert.rejects(servers.clients[transport].apply([named], soon()), reason))
    test(`${transport}: a stream under way ends when it is aborted`, () =>
      assert.rejects(read(soon()), reason))
    test(`${transport}: a call under way ends when the client is closed`, async () => {
      const client = await connect({ ...servers.targets[transport], retries_max: 0 })
      const called = client.apply([named])
      const closed = onceAsked(() => client.close())
      await assert.rejects(called, { code: 'unreachable', outcome: 'unknown' })
      await closed
    })
  }
})

/** [how a server answers, code, outcome, retry_after_ms] */
type Answering = (response: ServerResponse) => void
const answerWith =
  (status: number, body: string, headers: Record<string, string> = {}): Answering =>
  (response) =>
    void response.writeHead(status, headers).end(body)

// biome-ignore format: a table
const answers: readonly (readonly [string, Answering, ClientFaultCode, string, number?])[] = [
  ['a page',            answerWith(200, '<html>'),                     'bad_answer',  'unknown'],
  ['another program',   answerWith(404, '{"error":1}'),                'bad_answer',  'unknown'],
  ['too few results',   answerWith(200, '{"request_proc":"ok","ops":[]}'), 'bad_answer', 'unknown'],
  ['an unknown code',   answerWith(400, '{"request_proc":"x","ops":[]}'), 'bad_answer', 'unknown'],
  ['a proxy',           answerWith(502, 'bad gateway'),                'unreachable', 'unknown'],
  ['a proxy that waits', answerWith(503, '', { 'retry-after': '7' }),  'unreachable', 'unknown', 7_000],
  ['a full queue',      answerWith(503, '{"request_proc":"overloaded","ops":[]}', { 'retry-after': '1' }), 'overloaded', 'not_applied', 1_000],
  ['a cut connection',  (response) => void response.destroy(),         'unreachable', 'unknown'],
  ['a cut answer',      (response) => { response.writeHead(200, { 'content-length': '99' }); response.write('{'); setImmediate(() => response.destroy()) }, 'unreachable', 'unknown'],
  ['silence',           () => {},                                      'timed_out',   'unknown'],
]

describe('servers with bad answers', () => {
  for (const [what, answer, code, outcome, retry_after_ms] of answers) {
    test(`${what}: ${code}`, async () => {
      const server = createServer((_request, response) => answer(response))
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const client = await connect({
        url: `http://127.0.0.1:${port}/base/`,
        user: 1,
        secret: 's',
        retries_max: 0,
        timeout_ms: code === 'timed_out' ? 400 : 10_000,
      })
      const failed = (await client.apply([named]).catch((error) => error)) as object
      assert.deepEqual(
        { ...failed },
        {
          name: 'Fault',
          code,
          outcome,
          ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
        },
      )
      await client.close()
      server.closeAllConnections()
      server.close()
    })
  }

  for (const sign of ['path', 'hmac'] as const) {
    test(`a retry sends the same bytes with the same signature: ${sign}`, async () => {
      const seen: string[] = []
      const server = createServer((request, response) => {
        let body = ''
        request.on('data', (chunk) => {
          body += String(chunk)
        })
        request.on('end', () => {
          seen.push(`${request.url} ${request.headers['x-api-signature']} ${body}`)
          response.destroy()
        })
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const url = `http://127.0.0.1:${port}`
      const client = await connect({ url, user: 1, secret: 's', sign, retries_max: 2 })
      await assert.rejects(client.apply([show]), { code: 'unreachable' })
      assert.equal(seen.length, 3)
      assert.equal(new Set(seen).size, 1)
      await client.close()
      server.close()
    })
  }
})

describe('no server', () => {
  let servers: ClientServers
  let port = 0
  before(async () => {
    servers = await openClientServers(join(folder.path, 'none'))
    const free = createTcp().listen(0, '127.0.0.1')
    await once(free, 'listening')
    port = (free.address() as AddressInfo).port
    free.close()
  })
  after(() => servers.close())

  for (const transport of transports) {
    test(`${transport}: nothing listens: unreachable, certainly not applied, retried`, async () => {
      const at =
        transport === 'http'
          ? { url: `http://127.0.0.1:${port}` }
          : { address: `127.0.0.1:${port}` }
      const target = { ...servers.targets[transport], ...at }
      await using client = await connect({ ...target, retries_max: 1 })
      await assert.rejects(client.apply([modify]), { code: 'unreachable', outcome: 'not_applied' })
      await assert.rejects(
        async () => {
          for await (const _ of client.stream([[modify]])) assert.fail()
        },
        { code: 'unreachable' },
      )
    })

    test(`${transport}: the fault of a server that has drained`, async () => {
      const other = await openClientServers(join(folder.path, `drain-${transport}`))
      const client = await connect({ ...other.targets[transport], retries_max: 0 })
      assert.equal((await client.apply([nameless]))[0]?.proc, 'ok')
      await other.drain()
      await assert.rejects(client.apply([nameless]), (error: { code: string }) => {
        assert.ok(['unreachable', 'shutting_down'].includes(error.code), error.code)
        return true
      })
      await client.close()
      await other.close()
    })
  }

  test('grpc: a server of another authority or name is refused', async () => {
    await using other = await openClientServers(join(folder.path, 'other'))
    const { ca } = other.targets.grpc as { ca: string }
    const target = { ...servers.targets.grpc, ca, retries_max: 0 } as never
    await using client = await connect(target)
    await assert.rejects(client.apply([modify]), { code: 'unreachable', outcome: 'not_applied' })
  })
})
