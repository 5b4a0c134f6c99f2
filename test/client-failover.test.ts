/**
 * A client with several addresses, of which one is open at a time: the proxies before the real
 * servers play owner and standby, refuse, break off and fall silent.
 */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  type Client,
  type ClientOp,
  type ClientResult,
  connect,
  isClientFault,
} from '../src/client.ts'
import { type FaultCode, fault } from '../src/core/faults.ts'
import { serveGrpc } from '../src/grpc.ts'
import { tempFolder } from './support/cli-run.ts'
import {
  type ClientServers,
  openClientServers,
  type TransportName,
  transports,
} from './support/client-servers.ts'
import { type Gate, newGate } from './support/gate.ts'
import { conv_id } from './support/http-server.ts'
import { eventually } from './support/waits.ts'

const folder = tempFolder()
let servers: ClientServers
/** What the next request is answered with, before or after it is applied. */
let thrown: { readonly code: FaultCode; readonly is_applied: boolean } | undefined
const applied: (ClientResult & Pick<ClientOp, 'type'>)[] = []
let submitted = 0
/** How often each op came whose ref begins with `slow`; it takes longer than a silence may last. */
const slow_times = new Map<string, number>()
const slow_ms = 2_200

before(async () => {
  servers = await openClientServers(join(folder.path, 'servers'), (engine) => ({
    async submit(ops, caller) {
      submitted++
      const { ref: { text: ref = '' } = {} } = ops[0] as { ref?: { text?: string } }
      if (ref.startsWith('slow')) {
        slow_times.set(ref, (slow_times.get(ref) ?? 0) + 1)
        await new Promise((resolve) => setTimeout(resolve, slow_ms))
      }
      const instead = thrown
      thrown = undefined
      if (instead?.is_applied === false) throw fault(instead.code)
      const results = await engine.submit(ops, caller)
      for (const [at, result] of results.entries()) {
        applied.push({
          ...(result as ClientResult),
          type: (ops[at] as { type: ClientOp['type'] }).type,
        })
      }
      if (instead !== undefined) throw fault(instead.code)
      return results
    },
  }))
})
after(async () => {
  await servers.close()
  folder.remove()
})

interface Stage {
  readonly gates: readonly [Gate, Gate]
  readonly client: Client
  close(): Promise<void>
}

/** Two addresses of one server, both shut, and a client of them. */
async function newStage(transport: TransportName, options: object = {}): Promise<Stage> {
  const { http, grpc } = servers.targets
  const port = Number((transport === 'http' ? http.url : grpc.address).split(':').at(-1))
  const gates = [await newGate(port), await newGate(port)] as const
  const list = gates.map((gate) => `127.0.0.1:${gate.port}`)
  const client = await connect(
    transport === 'http'
      ? { ...http, url: list.map((at) => `http://${at}`), ...options }
      : { ...grpc, address: list, ...options },
  )
  return {
    gates,
    client,
    async close() {
      await client.close()
      await Promise.all(gates.map((gate) => gate.shut()))
    },
  }
}

let refs = 0
const newRef = (): string => `ref-${++refs}`
const waiting = async (client: Client): Promise<string> => {
  const ref = newRef()
  assert.equal((await client.create({ conv_id, ref, data: {} })).proc, 'ok')
  return ref
}

const outcomeOf = (call: Promise<ClientResult>): Promise<unknown> =>
  call.then(
    ({ proc }) => proc,
    (error) => (isClientFault(error) ? `${error.code} ${error.outcome}` : error),
  )

for (const transport of transports) {
  describe(`over ${transport}`, () => {
    test('an owner that is not there is waited for, and the last word says that nothing was sent', async () => {
      const { gates, client, close } = await newStage(transport)
      const before = submitted
      await assert.rejects(client.modify({ conv_id, ref: 'x', data: {} }, { timeout_ms: 600 }), {
        code: 'unreachable',
        outcome: 'not_applied',
        message: /^no address has an owner \(.*ECONNREFUSED.*; .*ECONNREFUSED/,
      })
      assert.equal(submitted, before)
      const reason = new Error('enough')
      const abort = new AbortController()
      const left = client.create({ conv_id, data: {} }, { signal: abort.signal })
      abort.abort(reason)
      await assert.rejects(left, reason)
      const waits = Array.from({ length: 64 }, () => client.create({ conv_id, data: {} }))
      await gates[1].open()
      for (const { proc } of await Promise.all(waits)) assert.equal(proc, 'ok')
      await close()
    })

    test('it goes to the other address and back, and remembers the one that worked', async () => {
      const { gates, client, close } = await newStage(transport)
      for (const at of [0, 1, 0]) {
        await gates[at]?.open()
        const ref = await waiting(client)
        const { taken } = gates[at] as Gate
        const before = taken()
        for (let n = 0; n < 5; n++) assert.ok(await client.task({ conv_id, ref }))
        assert.ok(taken() <= before + 1, 'a connection for each call')
        await gates[at]?.shut()
      }
      await close()
    })

    /** [fault, whether it was applied, op, what the call comes to, requests] */
    // biome-ignore format: a table
    const rows: readonly (readonly [FaultCode, boolean, ClientOp['type'], string, number])[] = [
      ['shutting_down', false, 'modify', 'ok',                   2],
      ['overloaded',    false, 'modify', 'ok',                   2],
      ['store_failed',  false, 'modify', 'ok',                   2],
      ['store_failed',  true,  'modify', 'ok',                   2],
      ['store_failed',  true,  'create', 'ok',                   2],
      ['store_failed',  false, 'show',   'ok',                   2],
      ['no_space',      false, 'create', 'no_space not_applied', 1],
    ]
    for (const [code, is_applied, type, expected, requests] of rows) {
      test(`${code} for a ${type} that was ${is_applied ? '' : 'not '}applied: ${expected}`, async () => {
        const { gates, client, close } = await newStage(transport)
        await gates[0].open()
        const ref = type === 'create' ? newRef() : await waiting(client)
        // The new owner is there, and the old one does not take connections any more.
        await gates[1].open()
        submitted = 0
        thrown = { code, is_applied }
        const op: ClientOp = { type, conv_id, ref, data: {} }
        const end = await outcomeOf(client.apply([op]).then(([result]) => result as ClientResult))
        assert.deepEqual([end, submitted], [expected, requests])
        const times = applied.filter(({ ref: of, proc }) => of === ref && proc === 'ok')
        if (type === 'create') {
          assert.equal(new Set(times.map((time) => time.obj_id)).size, code === 'no_space' ? 0 : 1)
        }
        await close()
      })
    }

    // What happens to the task before the repeat.
    for (const what of ['nothing', 'modified', 'canceled'] as const) {
      test(`a create whose answer is lost is answered as applied, and its task is ${what}`, async () => {
        const { gates, client, close } = await newStage(transport)
        await gates[0].open()
        const { engine } = servers
        const ref = newRef()
        const target = { conv_id, ref }
        await waiting(client)
        thrown = { code: 'store_failed', is_applied: true }
        const created = outcomeOf(client.create({ ...target, data: {} }))
        await eventually(() => thrown === undefined)
        if (what === 'modified') await engine.modify({ ...target, data: {} })
        if (what === 'canceled') await engine.tasks.cancel(target)
        assert.equal(await created, 'ok')
        const tasks = applied.filter((one) => one.ref === ref && one.type === 'create')
        assert.equal(new Set(tasks.map((one) => one.obj_id)).size, 1)
        await close()
      })
    }

    test('an outcome that was unknown once stays unknown', async () => {
      const { gates, client, close } = await newStage(transport, { timeout_ms: 1_500 })
      await gates[0].open()
      await waiting(client)
      thrown = { code: 'store_failed', is_applied: true }
      const created = client.create({ conv_id, ref: newRef(), data: {} })
      await eventually(() => thrown === undefined)
      await gates[0].shut()
      await assert.rejects(created, { code: 'unreachable', outcome: 'unknown' })
      await close()
    })
  })
}

describe('time passes', { concurrency: true }, () => {
  for (const transport of transports) {
    test(`${transport}: of an address that falls silent, the calls move`, async () => {
      const { gates, client, close } = await newStage(transport)
      await gates[0].open()
      const ref = await waiting(client)
      gates[0].silence()
      const moved = client.modify({ conv_id, ref, data: { moved: true } })
      const reads = [client.task({ conv_id, ref }), client.apply([{ type: 'show', conv_id, ref }])]
      await gates[1].open()
      await Promise.all(reads)
      assert.equal((await moved).proc, 'ok')
      assert.deepEqual((await client.task({ conv_id, ref }))?.data, { moved: true })
      await close()
    })

    test(`${transport}: a slow server keeps its calls, also where another address answers`, async () => {
      const { gates, client, close } = await newStage(transport)
      await gates[0].open()
      await waiting(client)
      await gates[1].open()
      const slow: ClientOp = { type: 'show', conv_id, ref: `slow-${transport}` }
      assert.equal((await client.apply([slow]))[0]?.proc, 'not_found_task')
      assert.equal(slow_times.get(slow.ref as string), 1)
      await close()
    })
  }
})

test('clients share one list, and callers who wait make no more connections than one', async () => {
  for (const transport of transports) {
    const { gates, client, close } = await newStage(transport)
    await gates[0].open()
    gates[0].silence()
    const waits = Array.from({ length: 64 }, () => client.create({ conv_id, data: {} }))
    await eventually(() => gates[0].taken() > 0)
    await new Promise((resolve) => setTimeout(resolve, 300))
    assert.equal(gates[0].taken(), 1)
    await gates[1].open()
    for (const { proc } of await Promise.all(waits)) assert.equal(proc, 'ok')
    await close()
  }
})

test('grpc: each address is verified by its own name', async () => {
  const { engine, targets } = servers
  const tls = { folder: join(folder.path, 'servers') }
  // The certificate names localhost and 127.0.0.1.
  const foreign = await serveGrpc(engine, { host: '127.0.0.2', port: 0, tls })
  const named = await serveGrpc(engine, { host: '127.0.0.1', port: 0, tls })
  const port = Number(named.address.split(':')[1])
  const address = Object.freeze([foreign.address, `localhost:${port}`])
  const clients = [
    await connect({ ...targets.grpc, address }),
    await connect({ ...targets.grpc, address }),
  ]
  for (const client of clients) await waiting(client)
  await named.drain()
  await assert.rejects(
    (clients[0] as Client).create({ conv_id, data: {} }, { timeout_ms: 1_000 }),
    { outcome: 'not_applied', message: /127\.0\.0\.2.*altnames.*; localhost.*ECONNREFUSED/ },
  )
  for (const client of clients) await client.close()
  await foreign.drain()
})

/** One after the other for each of eight callers, while the owner moves and loses its ownership. */
for (const transport of transports) {
  test(`${transport}: while the owner moves, what is acknowledged is there once`, async () => {
    const { gates, client, close } = await newStage(transport)
    const seen: string[] = []
    const result_of = newRef()
    if (transport === 'grpc') await gates[0].open()
    const watch = async (): Promise<void> => {
      if (transport === 'http') return
      for await (const change of client.changes({ from: 'start', conv_id })) {
        const { ref, obj_id, status, position } = change
        seen.push(`${ref ?? obj_id} ${status}`, position)
        if (ref === result_of && status === 'processed') return
      }
    }
    const watching = watch()
    let is_over = false
    const outcomes = new Map<string, 'created' | 'done' | 'unknown'>()
    const work = async (): Promise<void> => {
      while (!is_over) {
        const ref = newRef()
        try {
          assert.equal((await client.create({ conv_id, ref, data: {} })).proc, 'ok')
          outcomes.set(ref, 'created')
          assert.equal((await client.modify({ conv_id, ref, data: {} })).proc, 'ok')
          outcomes.set(ref, 'done')
        } catch (error) {
          assert.ok(isClientFault(error) && error.outcome === 'unknown', String(error))
          if (!outcomes.has(ref)) outcomes.set(ref, 'unknown')
        }
      }
    }
    const workers = Array.from({ length: 8 }, work)
    for (let n = 0; n < 8; n++) {
      const at = gates[n % 2] as Gate
      await at.open()
      const before = outcomes.size
      await eventually(() => outcomes.size > before + 20)
      if (n % 4 > 1) {
        thrown = { code: 'store_failed', is_applied: n % 4 === 2 }
        await eventually(() => thrown === undefined)
      }
      await at.shut()
    }
    await gates[0].open()
    is_over = true
    await Promise.all(workers)
    await client.create({ conv_id, ref: result_of, data: {} })
    const result = client.result({ conv_id, ref: result_of })
    await gates[0].shut()
    await gates[1].open()
    assert.ok(await client.task({ conv_id, ref: result_of }))
    await client.modify({ conv_id, ref: result_of, data: {} })
    assert.equal((await result).status, 'processed')
    await watching
    assert.equal(new Set(seen).size, seen.length, 'a change came twice')
    for (const [ref, outcome] of outcomes) {
      const ok = applied.filter((one) => one.ref === ref && one.proc === 'ok')
      const tasks = new Set(ok.filter(({ type }) => type === 'create').map((one) => one.obj_id))
      const modified = ok.filter(({ type }) => type === 'modify').length
      assert.ok(tasks.size === 1 || (outcome === 'unknown' && tasks.size === 0), ref)
      if (outcome === 'done' && transport === 'grpc') {
        assert.ok(seen.includes(`${ref} delayed`) && seen.includes(`${ref} processed`), ref)
      }
      // Once more for each repeat, which is answered as before: a second one would find no task.
      assert.ok(modified > 0 || outcome !== 'done', ref)
    }
    await close()
  })
}
