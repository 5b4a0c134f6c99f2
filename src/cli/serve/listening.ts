/** What `serve` prints once it listens: where, and with `--demo` the lines to paste. */
import type { Engine } from '../../engine/api.ts'
import { type Io, print } from '../io.ts'
import { withFile, withProgram } from '../program.ts'
import { type Given, isOn } from '../verb.ts'
import { bindDemo, demoGrpcText, demoJson, demoText, hasDemoClient, makeDemo } from './demo.ts'
import type { RunningServers } from './servers.ts'

export async function printListening(
  given: Given,
  io: Io,
  engine: Engine,
  servers: RunningServers,
  tls: string | undefined,
): Promise<void> {
  const { http, http_sync, operator, grpc } = servers
  const demo = isOn(given, 'demo') ? await makeDemo(engine) : undefined
  const grpc_lines =
    demo !== undefined && demo.state !== 'not_new' && grpc !== undefined && tls !== undefined
      ? await demoCalls(engine, grpc, tls)
      : ''
  if (isOn(given, 'json')) {
    const line = {
      event: 'listening',
      http: http ?? null,
      http_sync: http_sync ?? null,
      grpc: grpc ?? null,
      operator: operator ?? null,
      db: engine.path,
      pid: io.pid,
      ...(demo === undefined ? {} : { demo: demoJson(demo) }),
    }
    await print(io.stdout, `${JSON.stringify(line)}\n`)
    return
  }
  const sync_line = http_sync === undefined ? '' : `sync  ${http_sync}\n`
  const operator_line = operator === undefined ? '' : `operator  ${operator}\n`
  const served = `http  ${http ?? 'off'}\n${sync_line}grpc  ${grpc ?? 'off'}\n${operator_line}`
  await print(io.stdout, `${served}db    ${engine.path}\n`)
  if (demo === undefined) return
  const text = withProgram(withFile(demoText(demo, http ?? ''), given), io.program)
  await print(io.stdout, text + grpc_lines)
}

/** Binds the demo's certificate and answers the line to paste; empty without that certificate. */
async function demoCalls(engine: Engine, address: string, tls: string): Promise<string> {
  if (!(await hasDemoClient(tls))) return ''
  await bindDemo(engine)
  return demoGrpcText(address, tls)
}
