/**
 * Ours: the engine, in the process of its callers or behind its HTTP server, with its commit log in
 * PostgreSQL or in files. The task waits with a timer, and its callback sends it to a kept end.
 */
import { serveHttp } from '../../../src/http.ts'
import { openEngine } from '../../../src/index.ts'
import { postgresLog } from '../../../src/postgres.ts'
import { secretsOf } from '../../support/secrets-of.ts'
import { assertOk, conv_id, lives_definition, secret_key, user } from '../workload.ts'
import { initForBench } from './init.ts'
import { serveLives } from './lives-calls.ts'

serveLives(async ({ path, host, port, commit_log }) => {
  const url = `postgres://postgres@${host}:${port}/postgres?sslmode=disable`
  if (commit_log === 'postgres') await initForBench(url)
  const options = commit_log === 'files' ? {} : { commit_log: postgresLog({ url, node: 'bench' }) }
  const engine = await openEngine(path, { secret_key, ...options })
  await engine.processes.put(lives_definition)
  await engine.users.add({ id: user })
  await engine.processes.share(conv_id, user)
  const apply = async (type: 'create' | 'modify', ref: string, data: object): Promise<void> =>
    assertOk(await engine.apply([{ type, obj: 'task', conv_id, ref, data }]))
  let drain = async (): Promise<void> => {}
  return {
    create: (ref, data) => apply('create', ref, data),
    callback: (ref, data) => apply('modify', ref, data),
    async listen() {
      const server = await serveHttp(engine, { host: '127.0.0.1', port: 0 })
      drain = server.drain
      return {
        port: server.address.port,
        secret: secretsOf(engine, user)[0] as string,
      }
    },
    async close() {
      await drain()
      await engine.close()
    },
  }
})
