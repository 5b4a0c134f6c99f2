/**
 * Calls of one turn share requests: which calls, and that each is still a call of its own.
 */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Client, connect } from '../src/client.ts'
import { type FaultCode, fault } from '../src/core/faults.ts'
import { tempFolder } from './support/cli-run.ts'
import { type ClientServers, openClientServers, transports } from './support/client-servers.ts'
import { conv_id } from './support/http-server.ts'
import { pick } from './support/pick.ts'
import { eventually } from './support/waits.ts'

const folder = tempFolder()
after(() => folder.remove())

/** The ops of each request that reached the engine, and what it throws at the next one. */
let sizes: number[] = []
let thrown: FaultCode | undefined
let held_back: Promise<void> = Promise.resolve()
let servers: ClientServers
before(async () => {
  servers = await openClientServers(join(folder.path, 'servers'), (engine) => ({
    submit: async (ops, caller) => {
      sizes.push(ops.length)
      const code = thrown
      thrown = undefined
      if (code !== undefined) throw fault(code)
      await held_back
      return engine.submit(ops, caller)
    },
  }))
})
after(() => servers.close())

let refs = 0
type Call = (client: Client) => Promise<{ readonly proc: string }>
const create: Call = (client) => client.create({ conv_id, ref: `g${++refs}`, data: {} })
const again: Call = (client) => client.modify({ conv_id, ref: `g${refs}`, data: { more: 1 } })
const large: Call = (client) =>
  client.create({ conv_id, ref: `g${++refs}`, data: { text: 'x'.repeat(100_000) } })
const batch: Call = async (client) =>
  (await client.apply([{ type: 'create', conv_id, data: {} }]))[0] as { proc: string }

/** [what, calls of one turn, ops in each request, what each came to where not all are ok] */
// biome-ignore format: a table
const turns: readonly (readonly [string, readonly Call[], readonly number[], string[]?])[] = [
  ['one',                       [create],                       [1]],
  ['three',                     [create, create, create],       [3]],
  ['in the order of the calls', [create, again],                [2]],
  ['and in no other',           [again, create],                [2], ['not_found_task', 'ok']],
  ['many in two',               Array(30).fill(create),         [15, 15]],
  ['a hundred at most',         Array(301).fill(create),        [1, 100, 100, 100]],
  ['one task, in order',        [...Array(30).fill(create), again], [31]],
  ['not too much text',         [large, large, large],          [1, 2]],
  ['a batch goes by itself',    [create, batch, create],        [1, 2]],
]

/** [what the first request is refused with, calls, ops in each request, which are refused] */
// biome-ignore format: a table
const refusals: readonly (readonly [FaultCode, readonly Call[], readonly number[], (string | undefined)[]])[] = [
  ['format_error',   [create, again],  [1, 1, 2],    [undefined, undefined]],
  ['body_too_large', [create, create], [1, 1, 2],    [undefined, undefined]],
  ['too_many_ops',   [create, create], [1, 1, 2],    [undefined, undefined]],
  ['format_error',   [create],         [1],          ['format_error']],
  ['internal_error', [create, create], [2],          ['internal_error', 'internal_error']],
  // As the same request, which is answered as before if it was applied.
  ['store_failed',   [create, again],  [2, 2],       [undefined, undefined]],
  ['rate_limited',   [again],          [1, 1],       [undefined]],
]

for (const transport of transports) {
  describe(transport, () => {
    for (const [what, calls, expected, procs] of turns) {
      test(`${what}: ${expected}`, async () => {
        sizes = []
        // Nothing is there yet for a modify that comes first.
        refs += 1_000
        const results = await Promise.all(calls.map((call) => call(servers.clients[transport])))
        assert.deepEqual(pick(results, 'proc'), procs ?? calls.map(() => 'ok'))
        assert.deepEqual(sizes.sort(), [...expected].sort())
      })
    }

    for (const [code, calls, expected, ends] of refusals) {
      test(`${code} for ${calls.length}: ${expected}`, async () => {
        sizes = []
        thrown = code
        const results = await Promise.allSettled(
          calls.map((call) => call(servers.clients[transport])),
        )
        assert.deepEqual(
          results.map((result) => (result.status === 'rejected' ? result.reason.code : undefined)),
          ends,
        )
        assert.deepEqual(sizes.sort(), [...expected].sort())
      })
    }

    test('an aborted call ends alone', async () => {
      sizes = []
      let open = (): void => {}
      held_back = new Promise((resolve) => {
        open = resolve
      })
      const abort = new AbortController()
      const { signal } = abort
      const reason = new Error('enough')
      const client = servers.clients[transport]
      const ended = client.create({ conv_id, ref: `g${++refs}`, data: {} }, { signal })
      const stays = create(client)
      void eventually(() => sizes.length > 0).then(() => abort.abort(reason))
      await assert.rejects(ended, reason)
      open()
      assert.equal((await stays).proc, 'ok')
      assert.deepEqual(sizes, [2])
    })
  })
}

test('a repeat over HTTP takes no create without a ref along, which would make a second task', async () => {
  sizes = []
  thrown = 'store_failed'
  const client = servers.clients.http
  const ends = await Promise.allSettled([create(client), client.create({ conv_id, data: {} })])
  assert.deepEqual(
    ends.map((end) => (end.status === 'rejected' ? end.reason.code : end.value.proc)),
    ['ok', 'store_failed'],
  )
  // A look-up of the ref, and the create that has one.
  assert.deepEqual(sizes, [2, 1, 1])
})

test('calls that wait for a free request share one', async () => {
  sizes = []
  let open = (): void => {}
  held_back = new Promise((resolve) => {
    open = resolve
  })
  await using client = await connect({ ...servers.targets.http, sockets_max: 1 } as never)
  const called = [create(client)]
  await eventually(() => sizes.length > 0)
  for (let turn = 0; turn < 30; turn++) {
    called.push(create(client))
    await new Promise((resolve) => setImmediate(resolve))
  }
  open()
  for (const { proc } of await Promise.all(called)) assert.equal(proc, 'ok')
  assert.deepEqual(sizes, [1, 30])
})

test('a request whose calls have all been aborted ends', async () => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = await connect({ url: `http://127.0.0.1:${port}`, user: 1, secret: 's' })
  const aborts = [new AbortController(), new AbortController()]
  const called = aborts.map(({ signal }) => client.create({ conv_id, data: {} }, { signal }))
  const [, response] = await once(server, 'request')
  const closed = once(response, 'close')
  for (const abort of aborts) abort.abort(new Error('enough'))
  for (const call of called) await assert.rejects(call, { message: 'enough' })
  await closed
  await client.close()
  server.close()
})
