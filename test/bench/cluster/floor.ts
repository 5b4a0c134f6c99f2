/**
 * The floor: the ops of all callers in one row, inserted over one connection, one insert at a time. It
 * keeps no tasks, checks nothing, and nobody else may write, so nothing is fenced.
 */
import pg from 'pg'
import { serveLives } from './lives-calls.ts'

interface Queued {
  readonly bytes: Buffer
  resolve(): void
  reject(error: unknown): void
}

serveLives(async ({ host, port }) => {
  const client = new pg.Client({ host, port, user: 'postgres', database: 'postgres' })
  await client.connect()
  await client.query('CREATE TABLE floor (seq bigint PRIMARY KEY, frame bytea NOT NULL)')
  await client.query('ALTER TABLE floor ALTER frame SET STORAGE EXTERNAL')
  const queue: Queued[] = []
  let is_inserting = false
  let seq = 0

  async function insertAll(): Promise<void> {
    is_inserting = true
    while (queue.length > 0) {
      const taken = queue.splice(0)
      const values = [seq++, Buffer.concat(taken.map(({ bytes }) => bytes))]
      try {
        await client.query({ name: 'insert', text: 'INSERT INTO floor VALUES ($1, $2)', values })
        for (const { resolve } of taken) resolve()
      } catch (error) {
        for (const { reject } of taken) reject(error)
      }
    }
    is_inserting = false
  }

  const insert = (ref: string, data: object): Promise<void> =>
    new Promise((resolve, reject) => {
      queue.push({ bytes: Buffer.from(JSON.stringify({ ref, data })), resolve, reject })
      // The callers of one turn share a row.
      if (!is_inserting && queue.length === 1) setImmediate(() => void insertAll())
    })
  return { create: insert, callback: insert, close: () => client.end() }
})
