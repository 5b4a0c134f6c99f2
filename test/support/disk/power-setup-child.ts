/**
 * Makes the data file of the servers' work, with a user who signs and whose certificate has the
 * name NAME, and prints one line: `power-setup-child PATH NAME`.
 */

import { writeSync } from 'node:fs'
import { openEngine } from '../../../src/open.ts'
import { setUpWorkload } from '../workload-file.ts'

const [path = '', name = ''] = process.argv.slice(2)
const engine = await openEngine(path)
const { user, secret } = await setUpWorkload(engine, name)
writeSync(1, `${JSON.stringify({ user, secret })}\n`)
await engine.close()
