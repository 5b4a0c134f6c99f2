/**
 * An engine as a node of a cluster in a process of its own, which is stopped and killed. It takes
 * lines with a ref: `create REF` and `show REF`, and answers each with a line of JSON.
 */
import { createInterface } from 'node:readline'
import { openEngine } from '../../src/open.ts'
import { postgresLog } from '../../src/postgres.ts'
import { waiting } from './cluster-nodes.ts'

const [url = '', path = '', node = '', lease_ms = ''] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

const commitLog = postgresLog({ url, node, lease_ms: Number(lease_ms) })
const engine = await openEngine(path, { commitLog })
say({ role: 'owner' })
for await (const line of createInterface({ input: process.stdin })) {
  const [what = '', ref = ''] = line.split(' ')
  const conv_id = waiting.obj_id
  const call =
    what === 'create'
      ? engine.create({ conv_id, ref, data: {} }).then(({ proc }) => proc)
      : engine.task({ conv_id, ref }).then((task) => (task === undefined ? 'none' : 'found'))
  call.then(
    (answer) => say({ what, ref, answer }),
    ({ code }: { readonly code: string }) => say({ what, ref, code }),
  )
}
