/**
 * `conveyor serve` with both servers and the admin socket, built into one script so that it starts
 * quickly, and its data file: two processes, a user who signs, and a certificate that acts as that
 * user.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { addClient, initFolder } from '../../src/certs/folder.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'
import { openEngine } from '../../src/open.ts'
import type { CrashForm } from './commit-log-crash.ts'
import type { Target } from './crash-servers-load.ts'
import { ledger, orders, servers_processes } from './crash-servers-work.ts'
import { buildChild } from './store-child.ts'

export interface ServersFile {
  readonly path: string
  /** The program `conveyor`, as one file. */
  readonly script: string
  readonly access: Pick<Target, 'user' | 'secret' | 'folder'>
  start(): DoorsServer
  remove(): Promise<void>
}

export interface DoorsServer {
  /** Where it listens; undefined where it ended before. */
  readonly listening: Promise<Target | undefined>
  kill(): void
  /** The signal that ended it, and what it had to say. */
  readonly ended: Promise<{ readonly signal: NodeJS.Signals | null; readonly said: string }>
}

export async function makeServersFile({ edits }: CrashForm): Promise<ServersFile> {
  const { script, folder, remove } = await buildChild('../../bin/conveyor.ts', edits)
  const path = join(folder, 'tasks.lmdb')
  const tls = join(folder, 'tls')
  const making = { now_ms: systemClock.now_ms(), chance: systemChance }
  await initFolder(tls, [], making)
  const { names } = await addClient(tls, 'load', making)
  const engine = await openEngine(path)
  for (const definition of servers_processes) await engine.putProcess(definition)
  const { id: user, secret } = await engine.users.add()
  for (const conv_id of [orders, ledger]) await engine.processes.share(conv_id, user)
  await engine.users.bind(user, names[0] as string)
  await engine.close()
  const access = { user, secret, folder: tls }
  const servers = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--tls', tls]
  const args = [script, 'serve', '--json', '--db', path, ...servers]
  return { path, script, access, remove, start: () => startServer(args, access) }
}

function startServer(args: readonly string[], access: ServersFile['access']): DoorsServer {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  const ended = once(child, 'close').then(([, signal]) => ({ signal, said }))
  const lines = createInterface({ input: child.stdout })
  const listening = new Promise<Target | undefined>((resolve) => {
    lines.once('line', (line) => {
      const { http, grpc } = JSON.parse(line) as { http: string; grpc: string }
      resolve({ url: http, address: grpc, ...access })
    })
    child.once('close', () => resolve(undefined))
  })
  return { listening, ended, kill: () => void child.kill('SIGKILL') }
}
