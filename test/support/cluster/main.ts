/**
 * `node --import tsx test/support/cluster/main.ts`: PostgreSQL, two nodes and a balancer on this
 * machine, to try a cluster by hand. Prints where they are and what to paste, and ends all of them
 * on Ctrl-C. The two nodes have one key; their files, and the database, are new each time.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { initFolder } from '../../../src/certs/folder.ts'
import { systemChance, systemClock } from '../../../src/core/clock.ts'
import { freePort } from '../free-port.ts'
import { codePath, node_flags } from '../package-folder.ts'
import { startPostgres } from '../postgres.ts'
import { startBalancer, whyNoBalancer } from './haproxy.ts'
import { list_id } from './list-process.ts'
import { type ClusterNode, newNode } from './node.ts'
import { makeSchema, prepare } from './prepare.ts'

const why_not = whyNoBalancer()
if (why_not !== undefined) throw new Error(why_not)
const host = '127.0.0.1'
const folder = mkdtempSync(join(tmpdir(), 'conveyor-cluster-'))
const program = [process.execPath, ...node_flags, codePath('bin/conveyor')]
const env = { CONVEYOR_KEY: systemChance.bytes(32).toString('hex') }
const tls = join(folder, 'tls')
await initFolder(tls, [], { now_ms: systemClock.now_ms(), chance: systemChance })
const token_file = join(folder, 'token')
writeFileSync(token_file, systemChance.bytes(16).toString('hex'), { mode: 0o600 })

async function run(args: readonly string[]): Promise<string> {
  const [command = '', ...rest] = [...program, ...args]
  const { stdout } = await promisify(execFile)(command, rest, { env: { ...process.env, ...env } })
  return stdout
}

async function startNode(name: string, commit_log: string): Promise<ClusterNode> {
  const [http, grpc, operator] = [await freePort(), await freePort(), await freePort()]
  const place = { name, host, http, grpc, operator, folder, within: [] }
  const node = newNode({ ...place, program, commit_log, lease_ms: 5_000, tls, token_file, env })
  node.start()
  return node
}

async function ownerOf(nodes: readonly ClusterNode[]): Promise<ClusterNode> {
  for (;;) {
    for (const node of nodes) if ((await node.role()) === 'owner') return node
    await sleep(100)
  }
}

const postgres = await startPostgres()
const commit_log = await postgres.createDatabase('conveyor')
await makeSchema(commit_log)
const nodes = [await startNode('a', commit_log), await startNode('b', commit_log)]
const owner = await ownerOf(nodes)
const { user, secret } = await prepare(run, owner.path, folder)
const secret_file = join(folder, 'secret')
writeFileSync(secret_file, secret, { mode: 0o600 })
const balancer = await startBalancer(
  host,
  nodes.map((node) => node.options),
)

const rows = nodes.map(({ name, pid, path, options }) => {
  const listeners = `http://${host}:${options.http}, operator http://${host}:${options.operator}`
  return `node ${name}      ${listeners}, process ${pid()}, file ${path}`
})
const send = `npm run -s conveyor -- send --url ${balancer.url} --user ${user}`
const line = (op: object): string =>
  `echo '${JSON.stringify({ ops: [{ obj: 'task', conv_id: list_id, ref: 'one', ...op }] })}' |\n` +
  `  ${send} --secret-file ${secret_file}\n`
console.log(`
PostgreSQL  ${commit_log}
${rows.join('\n')}
balancer    ${balancer.url}

Make a task, and append to it:

${line({ type: 'create', data: { list: 'first' } })}
${line({ type: 'modify', data: { value: 'second' } })}
Kill the owner, and ask the other one; it answers once the lease of 5 s has run out:

kill -9 ${owner.pid()}
${line({ type: 'show' })}
Ctrl-C ends all of it.
`)
await Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)))
balancer.stop()
await Promise.all(nodes.map((node) => node.kill()))
await postgres.remove()
rmSync(folder, { recursive: true, force: true })
