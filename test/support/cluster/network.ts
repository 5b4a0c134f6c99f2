/**
 * A network of machines on this one: each is a network namespace with an address of its own on a
 * bridge, which can be cut off from others, in one direction or both, and slowed down. The machine
 * that runs the tests is at the bridge's own address. Needs root, `ip`, `iptables` and `ss`.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import type { Address } from '../relay.ts'

export interface Network {
  /** The address of the machine that runs the tests. */
  readonly address: string
  addMachine(name: string): Machine
  remove(): void
}

export interface Machine {
  readonly name: string
  readonly address: string
  /** What a program is started with to run there. */
  readonly within: readonly string[]
  /** Drops what comes from an address, or goes to it, or both; TCP is not told. */
  cutOff(address: string, way: 'in' | 'out' | 'both'): void
  /** Sends connections to an address to another one instead, those that are open after a new start. */
  redirect(from: Address, to: Address): void
  /** Holds each packet that it sends back. False where the kernel cannot. */
  delay(delay_ms: number): boolean
  /** Undoes all of these; what was redirected is connected anew. */
  heal(): void
}

const commands = ['ip', 'iptables', 'ss']

/** Why this process cannot make networks; undefined where it can. */
export function whyNoNetwork(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root makes network namespaces'
  const missing = commands.filter((name) => spawnSync(name, ['--version']).error !== undefined)
  if (missing.length > 0) return `${missing.join(', ')} not on this machine (iproute2, iptables)`
  const id = `conveyor-${process.pid}`
  if (spawnSync('ip', ['netns', 'add', id]).status !== 0) return 'no network namespaces here'
  spawnSync('ip', ['netns', 'del', id])
  return undefined
}

export function newNetwork(): Network {
  const id = `cv${randomInt(16 ** 4).toString(16)}`
  const subnet = `10.${randomInt(64, 250)}.${randomInt(1, 250)}`
  const machines: string[] = []
  ip('link', 'add', id, 'type', 'bridge')
  ip('addr', 'add', `${subnet}.1/24`, 'dev', id)
  ip('link', 'set', id, 'up')
  return {
    address: `${subnet}.1`,
    addMachine(name) {
      const space = `${id}-${name}`
      const address = `${subnet}.${machines.push(space) + 1}`
      const link = `${id}v${machines.length}`
      ip('netns', 'add', space)
      ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space)
      ip('link', 'set', link, 'master', id, 'up')
      ip('-n', space, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
      ip('-n', space, 'link', 'set', 'eth0', 'up')
      ip('-n', space, 'link', 'set', 'lo', 'up')
      return machineOf(name, address, space)
    },
    remove() {
      for (const space of machines) spawnSync('ip', ['netns', 'del', space])
      spawnSync('ip', ['link', 'del', id])
    },
  }
}

function machineOf(name: string, address: string, space: string): Machine {
  const within = ['ip', 'netns', 'exec', space]
  const run = (...args: string[]) => execFileSync('ip', [...within.slice(1), ...args])
  const redirected: Address[] = []
  const breakOff = ({ host, port }: Address): void => {
    const those = ['dst', host, 'dport', '=', String(port)]
    spawnSync('ip', [...within.slice(1), 'ss', '-K', ...those], { stdio: 'ignore' })
  }
  return {
    ...{ name, address, within },
    cutOff(other, way) {
      if (way !== 'out') run('iptables', '-A', 'INPUT', '-s', other, '-j', 'DROP')
      if (way !== 'in') run('iptables', '-A', 'OUTPUT', '-d', other, '-j', 'DROP')
    },
    redirect(from, to) {
      const packets = ['-d', from.host, '-p', 'tcp', '--dport', String(from.port)]
      const target = ['-j', 'DNAT', '--to', `${to.host}:${to.port}`]
      run('iptables', '-t', 'nat', '-A', 'OUTPUT', ...packets, ...target)
      redirected.push(from)
      breakOff(from)
    },
    delay(delay_ms) {
      const netem = ['qdisc', 'add', 'dev', 'eth0', 'root', 'netem', 'delay', `${delay_ms}ms`]
      return spawnSync('ip', [...within.slice(1), 'tc', ...netem]).status === 0
    },
    heal() {
      run('iptables', '-F')
      run('iptables', '-t', 'nat', '-F')
      spawnSync('ip', [...within.slice(1), 'tc', 'qdisc', 'del', 'dev', 'eth0', 'root'])
      for (const from of redirected.splice(0)) breakOff(from)
    },
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args)
}
