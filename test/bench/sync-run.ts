/**
 * What `syncs.ts` looks at with strace: creates one by one on a new file, between two marks on
 * standard output.
 *
 *     sync-run.js SIDE FILE CREATES
 */
import { openEngine } from '../../src/index.ts'
import { removeFiles } from './process-state.ts'
import { openTable } from './sqlite-table.ts'
import { type BenchOp, definition, opOf, secret_key } from './work.ts'

const [side = '', path = '', count = '0'] = process.argv.slice(2)

if (side === 'sqlite') {
  const table = openTable(path, 'sqlite')
  await createAll(async (op) => table.apply([op]))
  table.close()
} else {
  const options = { secret_key, log: side === 'log' }
  const engine = await openEngine(path, options)
  await engine.putProcess(definition)
  await createAll(async (op) => {
    await engine.create(op)
  })
  await engine.close()
}
await removeFiles(path)

async function createAll(create: (op: BenchOp) => Promise<void>): Promise<void> {
  // What is done once for a file is not a commit's.
  for (let n = 0; n < Number(count); n++) await create(opOf('create', n, 'random'))
  process.stdout.write('begin\n')
  for (let n = 0; n < Number(count); n++) {
    await create(opOf('create', Number(count) + n, 'random'))
  }
  process.stdout.write('end\n')
}
