/** What `serve` prints once it listens: where, and with `--demo` the lines to paste. */
import type { NodeStatus } from '../../cluster/node/status.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { type Io, print } from '../io.ts'
import { withFile, withProgram } from '../program.ts'
import { dbOf, type Given, isOn } from '../verb.ts'
import { bindDemo, demoGrpcText, demoJson, demoText, hasDemoClient, makeDemo } from './demo.ts'
import type { RunningServers } from './servers.ts'

/** Prints once where a node listens whenever it is the owner. */
export async function printNode(
  given: Given,
  io: Io,
  node: { readonly node: string; readonly address: string },
  servers: Omit<RunningServers, 'drain'>,
): Promise<void> {
  const db = dbOf(given)
  const line = { ...listeningEvent(servers), db, pid: io.pid, ...node }
  const text = `${servedText(servers)}db    ${db}\nnode  ${node.node}\n`
  await print(io.stdout, isOn(given, 'json') ? `${JSON.stringify(line)}\n` : text)
}

/** A line for each change of role; `owner` once this node answers as such. */
export async function printRole(given: Given, io: Io, status: NodeStatus): Promise<void> {
  const { role, node, epoch, seq: position, owner = null } = status
  const line = { event: 'role', role, node, epoch, position, owner }
  const who = role === 'standby' && owner !== null ? `, the owner is ${owner.node}` : ''
  const text = `role  ${role}${who}${owner?.address && who ? ` at ${owner.address}` : ''}\n`
  await print(io.stdout, isOn(given, 'json') ? `${JSON.stringify(line)}\n` : text)
}

/** For `--demo`, which does not log `closed`. */
export async function printClosed(given: Given, io: Io): Promise<void> {
  if (!isOn(given, 'demo') || isOn(given, 'json')) return
  // The reader of the lines may have ended by the same signal.
  await print(io.stdout, `closed: ${dbOf(given)} has what was answered\n`).catch(() => {})
}

export async function printListening(
  given: Given,
  io: Io,
  engine: Engine,
  servers: RunningServers,
  tls: string | undefined,
): Promise<void> {
  const { http, page, grpc } = servers
  const demo = isOn(given, 'demo') ? await makeDemo(engine) : undefined
  const grpc_lines =
    demo !== undefined && demo.state !== 'not_new' && grpc !== undefined && tls !== undefined
      ? await demoCalls(engine, grpc, tls)
      : ''
  const link = demo === undefined || page === undefined ? undefined : servers.link?.()
  if (isOn(given, 'json')) {
    const line = {
      ...listeningEvent(servers),
      db: engine.path,
      pid: io.pid,
      ...(demo === undefined ? {} : { demo: { ...demoJson(demo), ...(link && { link }) } }),
    }
    await print(io.stdout, `${JSON.stringify(line)}\n`)
    return
  }
  await print(io.stdout, `${servedText({ ...servers, page: link ?? page })}db    ${engine.path}\n`)
  if (demo === undefined) return
  const says = (link === undefined ? '' : link_text) + demoText(demo, http ?? '')
  const text = withProgram(withFile(says, given), io.program)
  await print(io.stdout, text + grpc_lines)
}

const link_text =
  'The page opens by this address once, within ten minutes; for another:\n' +
  '`npx conveyor console link`\n'

function listeningEvent(servers: Omit<RunningServers, 'drain'>): object {
  const { http = null, http_sync = null, grpc = null, operator = null, page = null } = servers
  return { event: 'listening', http, http_sync, grpc, operator, page }
}

function servedText(servers: Omit<RunningServers, 'drain'>): string {
  const { http, http_sync, grpc, operator, page } = servers
  const sync_line = http_sync === undefined ? '' : `sync  ${http_sync}\n`
  const operator_line = operator === undefined ? '' : `operator  ${operator}\n`
  const page_line = page === undefined ? '' : `page  ${page}\n`
  return `http  ${http ?? 'off'}\n${sync_line}grpc  ${grpc ?? 'off'}\n${operator_line}${page_line}`
}

/** Binds the demo's certificate and answers the line to paste; empty without that certificate. */
async function demoCalls(engine: Engine, address: string, tls: string): Promise<string> {
  if (!(await hasDemoClient(tls))) return ''
  await bindDemo(engine)
  return demoGrpcText(address, tls)
}
