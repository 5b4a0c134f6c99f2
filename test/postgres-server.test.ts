/**
 * The PostgreSQL server that tests start is what they take it for: durable, killed as a whole, and
 * strict about passwords and certificates where it is told to be.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import pg from 'pg'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'

const postgres = await postgresOrSkip({ password: 'secret', tls: true })

async function connect(given: pg.ClientConfig): Promise<string> {
  const address = { host: '127.0.0.1', port: postgres?.port, user: 'postgres' }
  const client = new pg.Client({ ...address, ...given })
  try {
    await client.connect()
    return 'connected'
  } catch (error) {
    return String((error as { code?: string }).code ?? (error as Error).message)
  } finally {
    await client.end().catch(() => undefined)
  }
}

test('a server of tests', { skip: no_postgres ?? false }, async (t) => {
  assert.ok(postgres !== undefined)
  const { ca = '', sql, port } = postgres

  await t.test('takes callers with password and TLS alone', async () => {
    const ssl = { ca: readFileSync(ca, 'utf8') }
    assert.deepEqual(
      [
        await connect({ password: 'secret', ssl }),
        await connect({ password: 'other', ssl }),
        await connect({ password: 'secret' }),
      ],
      ['connected', '28P01', '28000'],
    )
  })

  await t.test('keeps what it has committed when it is killed, and its port', async () => {
    assert.deepEqual(await sql('show fsync'), [{ fsync: 'on' }])
    const url = await postgres.createDatabase('orders')
    await sql('create table sale (ref text); insert into sale values ($$a$$)', undefined, 'orders')
    await postgres.kill()
    await assert.rejects(sql('select 1'))
    await postgres.start()
    const rows = await sql('select ref from sale where ref = $1', ['a'], 'orders')
    assert.deepEqual(rows, [{ ref: 'a' }])
    assert.equal(url, `postgres://postgres@127.0.0.1:${port}/orders`)
  })

  await t.test('stands still as a whole, and goes on', async () => {
    postgres.signal('SIGSTOP')
    const asked = sql('select 1 as one')
    const stopped = await Promise.race([asked, new Promise((done) => setTimeout(done, 50))])
    postgres.signal('SIGCONT')
    assert.deepEqual([stopped, await asked], [undefined, [{ one: 1 }]])
  })
})
