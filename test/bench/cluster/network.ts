/**
 * PostgreSQL behind a network that delays what it answers, so that each round trip takes longer by the
 * delay: in a network namespace, at the other end of a pair of virtual Ethernet devices, by `tc netem`.
 * Where that cannot be had, behind a relay (see relay.ts); only root may have it, with iproute2, on a
 * kernel that has netem.
 */
import { execFileSync } from 'node:child_process'
import { startChild } from '../child.ts'
import type { BenchFolder } from '../folder.ts'
import { type RunningBackend, startPostgresBackend } from '../rival-backends.ts'
import type { RelayCalls } from './relay.ts'

export interface FarServer extends RunningBackend {
  readonly delayed_by: 'tc netem' | 'a relay'
}

/** A network namespace, with the addresses of the server in it and of its clients outside. */
export interface Namespace {
  readonly server_host: string
  readonly client_host: string
  /** A command that starts with these words runs inside. */
  readonly enter: readonly string[]
  remove(): void
}

export async function startFarServer(
  { script }: BenchFolder,
  delay_ms: number,
  print: (text: string) => void,
): Promise<FarServer> {
  const found = createNamespace(delay_ms)
  if ('missing' in found) {
    print(`no tc netem here, so a relay delays what PostgreSQL answers: ${found.missing}`)
    const server = await startPostgresBackend()
    const { host } = server
    const relay = startChild<RelayCalls>(script('cluster/relay'))
    const { port } = await relay.call('listen', { host, port: server.port, delay_ms })
    const stop = async (): Promise<void> => {
      await relay.stop()
      await server.stop()
    }
    return { ...server, port, delayed_by: 'a relay', stop }
  }
  const server = await startPostgresBackend(found)
  const stop = async (): Promise<void> => {
    await server.stop()
    found.remove()
  }
  return { ...server, delayed_by: 'tc netem', stop }
}

function createNamespace(delay_ms: number): Namespace | { readonly missing: string } {
  const id = process.pid
  const name = `conveyor-bench-${id}`
  // A device's name has at most 15 characters.
  const [here, there] = [`cvh${id}`, `cvs${id}`]
  const subnet = `10.${200 + (id % 50)}.${(id >> 6) % 256}`
  const [client_host, server_host] = [`${subnet}.1`, `${subnet}.2`]
  const remove = (): void => {
    process.off('exit', remove)
    run('ip', 'netns', 'delete', name)
  }
  try {
    run('ip', 'netns', 'add', name)
  } catch (error) {
    return { missing: firstLine(error) }
  }
  process.once('exit', remove)
  try {
    run('ip', 'link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name)
    run('ip', 'addr', 'add', `${client_host}/30`, 'dev', here)
    run('ip', 'link', 'set', here, 'up')
    run('ip', '-n', name, 'addr', 'add', `${server_host}/30`, 'dev', there)
    run('ip', '-n', name, 'link', 'set', there, 'up')
    const netem = ['netem', 'delay', `${delay_ms}ms`, 'limit', '100000']
    run('tc', '-n', name, 'qdisc', 'add', 'dev', there, 'root', ...netem)
  } catch (error) {
    remove()
    return { missing: firstLine(error) }
  }
  return { server_host, client_host, enter: ['ip', 'netns', 'exec', name], remove }
}

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** What the program said, or that it is missing. */
function firstLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: Buffer | null; message: string }
  return (stderr?.toString() || message).trim().split('\n')[0] as string
}
