/**
 * Makes the data file of the servers' work, with a user who signs and whose certificate has the
 * name NAME, and says so in one line: `power-setup-child PATH NAME`.
 */
import { writeSync } from 'node:fs'
import { openEngine } from '../../src/open.ts'
import { lane_processes, ledger, orders } from './lanes.ts'

const [path = '', name = ''] = process.argv.slice(2)
const engine = await openEngine(path)
for (const definition of lane_processes) await engine.processes.put(definition)
const { id: user, secret } = await engine.users.add()
for (const conv_id of [orders, ledger]) await engine.processes.share(conv_id, user)
await engine.users.bind(user, name)
writeSync(1, `${JSON.stringify({ user, secret })}\n`)
await engine.close()
