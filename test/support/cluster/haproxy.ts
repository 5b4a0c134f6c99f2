/**
 * HAProxy before the nodes of a cluster, for HTTP and for gRPC: callers get to the one whose
 * operator's listener says at `/readyz` that it is the owner. Of Debian's package haproxy.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../free-port.ts'

export interface Backend {
  readonly name: string
  readonly host: string
  readonly http: number
  readonly grpc: number
  readonly operator: number
}

export interface Balancer {
  readonly url: string
  /** HOST:PORT for gRPC. */
  readonly address: string
  readonly config: string
  stop(): void
}

export function whyNoBalancer(): string | undefined {
  const { error } = spawnSync('haproxy', ['-v'])
  return error === undefined ? undefined : 'haproxy is not on this machine'
}

export async function startBalancer(host: string, nodes: readonly Backend[]): Promise<Balancer> {
  const [http, grpc] = [await freePort(), await freePort()]
  const folder = mkdtempSync(join(tmpdir(), 'conveyor-haproxy-'))
  const path = join(folder, 'haproxy.cfg')
  const config = configOf(host, { http, grpc }, nodes)
  writeFileSync(path, config)
  const args = ['--pdeathsig=KILL', 'haproxy', '-db', '-f', path]
  const child = spawn('setpriv', args, { stdio: 'ignore' })
  while (!(await isOpen(host, http))) {
    if (child.exitCode !== null) throw new Error(`haproxy ended with ${child.exitCode}`)
    await sleep(20)
  }
  return {
    url: `http://${host}:${http}`,
    address: `${host}:${grpc}`,
    config,
    stop() {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type Ports = Pick<Backend, 'http' | 'grpc'>

/** What callers are told while there is no owner: nothing was sent to any node. */
const no_owner = '{"request_proc":"overloaded","ops":[],"description":"no node is the owner now"}'

/** Two checks a fifth of a second apart are enough to leave a node, one to go to it. */
function configOf(host: string, ports: Ports, nodes: readonly Backend[]): string {
  const serversAt = (port: 'http' | 'grpc'): string =>
    nodes
      .map((one) => `  server ${one.name} ${one.host}:${one[port]} check port ${one.operator}`)
      .join('\n')
  const part = (name: 'http' | 'grpc', mode: 'http' | 'tcp'): string => `
listen ${name}
  bind ${host}:${ports[name]}
  mode ${mode}
  retries 0
  option httpchk
  http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host ${host}
  http-check expect status 200
  default-server inter 200ms fall 2 rise 1 on-marked-down shutdown-sessions
${serversAt(name)}
`
  return `global
  maxconn 4000
defaults
  timeout connect 1s
  timeout client 1m
  timeout server 1m
  timeout check 1s
  http-error status 503 content-type application/json string '${no_owner}'
${part('http', 'http')}${part('grpc', 'tcp')}`
}

function isOpen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}
