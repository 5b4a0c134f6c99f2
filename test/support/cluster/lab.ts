/**
 * A whole cluster on one machine: databases under Patroni, nodes, a balancer before them and
 * clients of it, each in a network namespace of its own, with the process that the load needs.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { addClient, initFolder } from '../../../src/certs/folder.ts'
import type { Client } from '../../../src/client/api.ts'
import { connect } from '../../../src/client.ts'
import { systemChance, systemClock } from '../../../src/core/clock.ts'
import { buildChild, type Edit } from '../store-child.ts'
import { type Balancer, startBalancer, whyNoBalancer } from './haproxy.ts'
import { type Machine, type Network, newNetwork, whyNoNetwork } from './network.ts'
import { type ClusterNode, newNode } from './node.ts'
import { type Database, type PatroniOptions, startPatroni, whyNoPatroni } from './patroni.ts'
import { makeSchema, prepare } from './prepare.ts'

export interface LabOptions {
  readonly nodes?: number
  readonly lease_ms?: number
  /** `false` for nodes of their own, each with its file: then one node alone makes sense. */
  readonly database?: PatroniOptions | false
  /** To the source of the program, to show what a worse one does. */
  readonly edits?: readonly Edit[]
  /** More of the command line of `serve`. */
  readonly flags?: readonly string[]
}

export interface LabNode extends ClusterNode {
  readonly machine: Machine
}

export interface Lab {
  readonly folder: string
  readonly network: Network
  readonly nodes: readonly LabNode[]
  readonly database: Database | undefined
  readonly balancer: Balancer
  readonly lease_ms: number
  /** Over HTTP and over gRPC, through the balancer and by the addresses of all nodes. */
  readonly clients: readonly Client[]
  owner(): Promise<LabNode | undefined>
  standby(): Promise<LabNode | undefined>
  /** Resolves with the owner once there is one, every node runs, and the database is whole. */
  ready(): Promise<LabNode>
  /** Runs the program to its end in this process's network; answers what it prints. */
  run(args: readonly string[]): Promise<string>
  /** Ends all of it; what it has written stays. */
  stop(): Promise<void>
  remove(): Promise<void>
}

const day_ms = 86_400_000
const ports = { http: 8080, grpc: 8443, operator: 8081 }

/** Why there can be none here; undefined where there can. */
export const whyNoLab = (): string | undefined =>
  whyNoNetwork() ?? whyNoPatroni() ?? whyNoBalancer()

export async function startLab(options: LabOptions = {}): Promise<Lab> {
  /** In reverse order. */
  const ends: (() => Promise<void> | void)[] = []
  async function stop(): Promise<void> {
    for (const end of ends.splice(0).reverse()) await end()
  }
  try {
    return await buildLab(options, ends, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

async function buildLab(
  options: LabOptions,
  ends: (() => Promise<void> | void)[],
  stop: () => Promise<void>,
): Promise<Lab> {
  const { nodes: count = 2, lease_ms = 5_000, edits = [], flags = [] } = options
  const folder = mkdtempSync(join(tmpdir(), 'conveyor-lab-'))
  const network = newNetwork()
  ends.push(network.remove)
  const child = await buildChild('../../bin/conveyor.ts', edits)
  ends.push(child.remove)
  const program = [process.execPath, child.script]
  const env = { CONVEYOR_KEY: systemChance.bytes(32).toString('hex') }
  const database =
    options.database === false ? undefined : await startPatroni(network, options.database)
  if (database !== undefined) ends.push(database.remove)
  const token_file = join(folder, 'token')
  writeFileSync(token_file, systemChance.bytes(16).toString('hex'), { mode: 0o600 })
  const machines = Array.from({ length: count }, (_, n) => network.addMachine(nameOf(n)))
  const tls = join(folder, 'tls')
  const hosts = [network.address, ...machines.map(({ address }) => address)]
  // Valid for nodes whose clocks are behind, too.
  const making = { now_ms: systemClock.now_ms() - 2 * day_ms, chance: systemChance }
  await initFolder(tls, hosts, making)
  const { names } = await addClient(tls, 'load', making)

  async function run(args: readonly string[]): Promise<string> {
    const [command = '', ...rest] = [...program, ...args]
    const { stdout } = await promisify(execFile)(command, rest, { env: { ...process.env, ...env } })
    return stdout
  }

  await database?.ready()
  await database?.sql('create database conveyor')
  const commit_log = database?.url('conveyor')
  if (commit_log !== undefined) await makeSchema(commit_log)
  const nodes = machines.map((machine): LabNode => {
    const { name, within, address: host } = machine
    mkdirSync(join(folder, name))
    const place = { ...ports, name, host, within, folder: join(folder, name) }
    const more = commit_log === undefined ? {} : { commit_log }
    const node = newNode({ ...place, ...more, program, lease_ms, tls, token_file, env, flags })
    return { ...node, machine }
  })
  for (const node of nodes) {
    node.start()
    ends.push(node.kill)
  }

  async function withRole(role: 'owner' | 'standby'): Promise<LabNode | undefined> {
    const roles = await Promise.all(nodes.map((node) => node.role()))
    return nodes[roles.indexOf(role)]
  }

  async function ready(): Promise<LabNode> {
    await database?.ready()
    for (let tries = 0; tries < 600; tries++) {
      const roles = await Promise.all(nodes.map((node) => node.role()))
      const owners = roles.filter((role) => role === 'owner').length
      if (owners === 1 && !roles.includes('none')) return nodes[roles.indexOf('owner')] as LabNode
      await sleep(100)
    }
    throw new Error(`the nodes do not agree on an owner; their lines are in ${folder}`)
  }

  const owner = await ready()
  const { user, secret } = await prepare(run, owner.path, folder)
  await run(['user', 'bind', '--all', names[0] as string, '--db', owner.path])
  const balancer = await startBalancer(
    network.address,
    nodes.map((node) => node.options),
  )
  ends.push(balancer.stop)
  const [ca = '', cert = '', key = ''] = ['ca.crt', 'load.crt', 'load.key'].map((name) =>
    join(tls, name),
  )
  const once = { retries_max: 0, timeout_ms: 5_000 }
  const clients = [
    await connect({ url: balancer.url, user, secret, ...once }),
    await connect({ address: balancer.address, ca, cert, key, ...once }),
    await connect({
      url: hosts.slice(1).map((host) => `http://${host}:${ports.http}`),
      user,
      secret,
      ...once,
    }),
    await connect({
      address: hosts.slice(1).map((host) => `${host}:${ports.grpc}`),
      ca,
      cert,
      key,
      ...once,
    }),
  ]
  for (const client of clients) ends.push(client.close)
  return {
    ...{ folder, network, nodes, database, balancer, lease_ms, clients, ready, run },
    owner: () => withRole('owner'),
    standby: () => withRole('standby'),
    stop,
    async remove() {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const nameOf = (n: number): string => String.fromCharCode('a'.charCodeAt(0) + n)
