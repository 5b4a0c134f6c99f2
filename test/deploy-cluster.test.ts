/**
 * Upgrades one node at a time: two nodes behind HAProxy, by the file in deploy/, restarted in turn
 * under callers. Nothing acknowledged is lost and nothing is refused for good; how long callers had
 * no service is printed. Once, or ten times with CONVEYOR_SLOW=1.
 */

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../src/client.ts'
import { run, tempFolder } from './support/cli-run.ts'
import { type NodeProcess, startNode } from './support/cluster-serve.ts'
import { freePort } from './support/free-port.ts'
import { top } from './support/package-folder.ts'
import { no_postgres, startPostgres } from './support/postgres.ts'
import { eventually } from './support/waits.ts'

const rounds = process.env.CONVEYOR_SLOW === undefined ? 1 : 10
const callers = 8
const has_haproxy = spawnSync('haproxy', ['-v']).error === undefined
const skip = no_postgres ?? (has_haproxy ? false : 'haproxy is not on this machine')

/** deploy/haproxy.cfg with these ports in place of its own. */
function configOf([http, grpc]: readonly number[], nodes: readonly NodeProcess[]): string {
  let config = readFileSync(join(top, 'deploy/haproxy.cfg'), 'utf8')
    .replace('bind :8080', `bind 127.0.0.1:${http}`)
    .replace('bind :9090', `bind 127.0.0.1:${grpc}`)
  for (const [at, { url, operator }] of nodes.entries()) {
    config = config.replaceAll(
      new RegExp(`10\\.0\\.0\\.${at + 1}:(\\d+) check port 8081`, 'g'),
      `${new URL(url).host} check port ${new URL(operator).port}`,
    )
  }
  return config
}

test('nodes that are restarted in turn lose nothing that was acknowledged', { skip }, async (t) => {
  const folder = tempFolder()
  const postgres = await startPostgres()
  const started: NodeProcess[] = []
  t.after(async () => {
    for (const { child } of started) child.kill('SIGKILL')
    await postgres.remove()
    folder.remove()
  })
  const url = postgres.url()
  await run(['cluster', 'init', '--commit-log', url])
  const ports = { a: [await freePort(), await freePort()], b: [await freePort(), await freePort()] }
  const start = async (name: 'a' | 'b'): Promise<NodeProcess> => {
    const [http, operator] = ports[name].map((port) => `127.0.0.1:${port}`) as [string, string]
    const key = ['--http', http, '--operator', operator]
    const node = await startNode(url, folder.path, name, key)
    started.push(node)
    return node
  }
  let [owner, standby] = [await start('a'), undefined as unknown as NodeProcess]
  await owner.role('owner')
  const { out } = await run(['user', 'add', '--name', 'load', '--json', '--db', owner.db])
  const { id, secret } = JSON.parse(out) as { id: number; secret: string }
  const definition = join(top, 'src/examples/state.conv.json')
  const imported = await run(['process', 'import', definition, '--json', '--db', owner.db])
  assert.equal(imported.exit, 0, imported.err)
  const { conv_id } = JSON.parse(imported.out.split('\n')[0] as string) as { conv_id: string }
  await run(['process', 'share', conv_id, String(id), '--db', owner.db])
  writeFileSync(join(folder.path, 'b.lmdb.key'), readFileSync(`${owner.db}.key`), { mode: 0o600 })
  standby = await start('b')
  await standby.role('standby')

  const port = await freePort()
  const config = join(folder.path, 'haproxy.cfg')
  writeFileSync(config, configOf([port, await freePort()], started))
  const balancer = spawn('setpriv', ['--pdeathsig=KILL', 'haproxy', '-db', '-f', config], {
    stdio: 'ignore',
  })
  t.after(() => balancer.kill('SIGKILL'))
  const ready = `http://127.0.0.1:${port}/healthz`
  await eventually(async () => (await fetch(ready).catch(() => undefined))?.ok === true)

  let is_over = false
  const acknowledged: { ref: string; at_ms: number }[] = []
  const failed: string[] = []
  const load = Array.from({ length: callers }, async (_, caller) => {
    const to = { url: `http://127.0.0.1:${port}`, user: String(id), secret }
    await using client = await connect({ ...to, timeout_ms: 20_000, retries_max: 100 })
    for (let n = 0; !is_over; n++) {
      const ref = `${caller}-${n}`
      const { proc } = await client
        .create({ conv_id, ref, data: {} })
        .catch((error: Error) => ({ proc: error.message }))
      if (proc === 'ok') acknowledged.push({ ref, at_ms: performance.now() })
      else failed.push(proc)
    }
  })
  const pauses_ms: number[] = []
  for (let round = 0; round < rounds; round++) {
    await sleep(300)
    const [from_ms, had] = [performance.now(), standby.roles().length]
    const stopped = owner.stop()
    await standby.role('owner', had)
    assert.equal(await stopped, 0)
    const count = acknowledged.length
    await eventually(() => acknowledged.length > count + callers)
    const times = acknowledged.filter(({ at_ms }) => at_ms > from_ms - 100).map((one) => one.at_ms)
    pauses_ms.push(Math.max(...times.slice(1).map((at_ms, n) => at_ms - (times[n] as number))))
    const name = owner.line.node as 'a' | 'b'
    ;[owner, standby] = [standby, await start(name)]
    await standby.role('standby')
  }
  is_over = true
  await Promise.all(load)
  const counted = await run([
    'task',
    'count',
    conv_id,
    '--status',
    'any',
    '--json',
    '--db',
    owner.db,
  ])
  const { total } = JSON.parse(counted.out) as { total: number }
  assert.deepEqual(failed, [])
  assert.equal(total, acknowledged.length, 'each acknowledged create is there once')
  pauses_ms.sort((one, other) => one - other)
  const [half, worst] = [pauses_ms[rounds >> 1], pauses_ms.at(-1)].map((ms) => Math.round(ms ?? 0))
  t.diagnostic(
    `${rounds} restarts, ${total} creates: without service ${half} ms, worst ${worst} ms`,
  )
})
