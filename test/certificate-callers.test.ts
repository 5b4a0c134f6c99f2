/**
 * A certificate that acts as no user is a caller of its own, by its names: other certificates
 * neither get its answers, nor pay its rate, nor take its room. It stays the same when renewed.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeClient, type Wanted } from './support/grpc-certs.ts'
import { openGrpc, type TestGrpc } from './support/grpc-server.ts'
import { user } from './support/http-server.ts'

const uri = (value: string): Wanted => ({ san: [{ type: 'url', value }] })

/** [what, the names of two certificates, the users they are bound to, whether they are one] */
// biome-ignore format: a table
const rows: readonly (readonly [string, Wanted, Wanted, readonly string[], boolean])[] = [
  ['other names', uri('a:a'), uri('a:b'), [], false],
  ['another common name', { cn: 'a' }, { cn: 'b' }, [], false],
  ['one name of two', uri('a:a'),
    { san: [{ type: 'url', value: 'a:a' }, { type: 'url', value: 'a:b' }] }, [], false],
  ['no name at all', { cn: null }, { cn: null }, [], false],
  ['the same name: renewed', uri('a:a'), uri('a:a'), [], true],
  ['the same names in another order',
    { san: [{ type: 'dns', value: 'x' }, { type: 'dns', value: 'y' }] },
    { san: [{ type: 'dns', value: 'y' }, { type: 'dns', value: 'x' }] }, [], true],
  ['one user', uri('a:a'), uri('a:b'), ['uri:a:a', 'uri:a:b'], true],
  ['a user, and none', uri('a:a'), uri('a:b'), ['uri:a:a'], false],
]

async function withTwo(
  row: (typeof rows)[number],
  limits: object,
  work: (server: TestGrpc, clients: ReturnType<TestGrpc['connect']>[]) => Promise<void>,
): Promise<void> {
  const [, one, other, bound] = row
  const server = await openGrpc({ limits })
  for (const name of bound) await server.engine.users.bind(user, name)
  const made = await Promise.all([one, other].map((wanted) => makeClient(server.ca, wanted)))
  await work(
    server,
    made.map((certificate) => server.connect(certificate)),
  )
  await server.close()
  assert.deepEqual(server.bugs, [])
}

const request = { conv_id: '1234', request_key: 'k', data_json: Buffer.from('{"n":1}') }

describe('two certificates', () => {
  for (const row of rows) {
    const [says, , , , are_one] = row
    test(`with ${says} ${are_one ? 'share' : 'do not share'} request keys`, () =>
      withTwo(row, {}, async (_server, clients) => {
        const ids = new Set<string>()
        for (const client of [...clients, ...clients]) {
          const { obj_id } = (await client.call('CreateTask', request)) as { obj_id: string }
          ids.add(obj_id)
        }
        assert.equal(ids.size, are_one ? 1 : 2)
      }))

    test(`with ${says} ${are_one ? 'share' : 'do not share'} a rate`, () =>
      withTwo(row, { rate_ops_per_s: 1 }, async (_server, clients) => {
        const ops = Array.from({ length: 500 }, (_, n) => ({
          create: { conv_id: '1234', ref: `${n}` },
        }))
        const found: string[] = []
        for (const client of [...clients, ...clients]) {
          found.push(await client.statusOf('ApplyOps', { ops }))
        }
        const over = 'RESOURCE_EXHAUSTED'
        assert.deepEqual(found, ['OK', are_one ? over : 'OK', over, over])
        assert.equal(await clients[0]?.statusOf('ListTasks', {}), over)
      }))
  }
})
