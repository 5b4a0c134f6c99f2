/**
 * An engine as a node of a cluster in a process of its own, which is stopped and killed. It takes
 * lines with a ref: `create REF` and `show REF`, and answers each with a line of JSON. Each time
 * that it is the owner it says so.
 */
import { createInterface } from 'node:readline'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { openEngine } from '../../src/open.ts'
import { postgresLog } from '../../src/postgres.ts'
import { waiting } from './cluster-nodes.ts'

const [url = '', path = '', node = '', lease_ms = ''] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

const commit_log = postgresLog({ url, node, lease_ms: Number(lease_ms) })
let engine: Engine | undefined

/** A standby, the owner, and a standby again once another has taken over. */
async function live(): Promise<never> {
  for (;;) {
    let fail = (): void => {}
    const failed = new Promise<void>((resolve) => {
      fail = resolve
    })
    engine = await openEngine(path, { commit_log, onFailure: fail })
    say({ role: 'owner' })
    await failed
    await engine.close()
  }
}

void live()
for await (const line of createInterface({ input: process.stdin })) {
  const [what = '', ref = ''] = line.split(' ')
  const conv_id = waiting.obj_id
  const owner = engine as Engine
  const call =
    what === 'create'
      ? owner.create({ conv_id, ref, data: {} }).then(({ proc }) => proc)
      : owner.task({ conv_id, ref }).then((task) => (task === undefined ? 'none' : 'found'))
  call.then(
    (answer) => say({ what, ref, answer }),
    ({ code }: { readonly code: string }) => say({ what, ref, code }),
  )
}
