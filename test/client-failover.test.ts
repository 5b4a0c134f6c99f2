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
import { until } from './support/call-stage.ts'
import { tempFolder } from './support/cli-run.ts'
import {
  type ClientServers,
  openClientServers,
  type TransportName,
  transports,
} from './support/client-servers.ts'
import { type Gate, newGate } from './support/gate.ts'
import { conv_id } from './support/http-server.ts'

const folder = tempFolder()
let servers: ClientServers
/** What the next request is answered with, before or after it is applied. */
let thrown: { readonly code: FaultCode; readonly is_applied: boolean } | undefined
const applied: ClientResult[] = []
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
      applied.push(...(results as ClientResult[]))
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
      ['store_failed',  false, 'modify', 'store_failed unknown', 1],
      ['store_failed',  true,  'modify', 'store_failed unknown', 1],
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
        const end = await client.apply([op]).then(
          ([result]) => result?.proc,
          (error) => isClientFault(error) && `${error.code} ${error.outcome}`,
        )
        assert.deepEqual([end, submitted], [expected, requests])
        const times = applied.filter(({ ref: of, proc }) => of === ref && proc === 'ok')
        if (type === 'create') {
          assert.equal(new Set(times.map((time) => time.obj_id)).size, requests - 1)
        }
        await close()
      })
    }

    test('an outcome that was unknown once stays unknown', async () => {
      const { gates, client, close } = await newStage(transport, { timeout_ms: 1_500 })
      await gates[0].open()
      await waiting(client)
      thrown = { code: 'store_failed', is_applied: true }
      const created = client.create({ conv_id, ref: newRef(), data: {} })
      await until(() => thrown === undefined)
      await gates[0].shut()
      await assert.rejects(created, { code: 'unreachable', outcome: 'unknown' })
      await close()
    })
  })
}

describe('time passes', { concurrency: true }, () => {
  for (const transport of transports) {
    test(`${transport}: of an address that falls silent, reads move and the rest is given up`, async () => {
      const { gates, client, close } = await newStage(transport)
      await gates[0].open()
      const ref = await waiting(client)
      gates[0].silence()
      const lost = assert.rejects(client.modify({ conv_id, ref, data: { lost: true } }), {
        code: 'unreachable',
        outcome: 'unknown',
      })
      const reads = [client.task({ conv_id, ref }), client.apply([{ type: 'show', conv_id, ref }])]
      await gates[1].open()
      await Promise.all(reads)
      assert.equal((await client.modify({ conv_id, ref, data: {} })).proc, 'ok')
      assert.deepEqual((await client.task({ conv_id, ref }))?.data, {})
      await lost
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
