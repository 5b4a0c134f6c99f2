/**
 * `conveyor serve` with all its listeners in a process of its own, over a file with large tasks, and
 * what is seen of it from outside: its memory and its descriptors.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { addClient, initFolder } from '../../src/certs/folder.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'
import { openEngine } from '../../src/open.ts'
import { firstLine, type Limits, type Listening, startServing } from './disk/serve.ts'
import { conv_id, process_definition } from './http-server.ts'
import { connectionOf } from './slow-clients.ts'
import { buildChild } from './store-child.ts'

export interface Signer {
  readonly user: string
  readonly secret: string
}

/** What a client must know of it. */
export interface SlowTarget {
  readonly http_port: number
  readonly grpc_port: number
  readonly operator_port: number
  readonly honest: Signer
  readonly hostile: Signer
  /** The certificate of the hostile user, which is bound. */
  readonly keys: { readonly ca: Buffer; readonly cert: Buffer; readonly key: Buffer }
  readonly tasks: number
}

export interface Attacked extends SlowTarget {
  rss_mb(): number
  /** Those it has open, as `connectionOf` writes them. */
  connections(): ReadonlySet<string>
  stop(): Promise<unknown>
}

export interface SlowFile {
  /** Is the caller's to remove. */
  readonly folder: string
  start(limits: Limits): Promise<Attacked>
}

const task_bytes = 120_000

export async function makeSlowFile(tasks: number): Promise<SlowFile> {
  const { script, folder } = await buildChild('../../bin/conveyor.ts')
  const path = join(folder, 'tasks.lmdb')
  const tls = join(folder, 'tls')
  const making = { now_ms: systemClock.now_ms(), chance: systemChance }
  await initFolder(tls, [], making)
  const { names } = await addClient(tls, 'hostile', making)
  const engine = await openEngine(path)
  await engine.processes.put(process_definition)
  const honest = await engine.users.add()
  const hostile = await engine.users.add()
  for (const { id } of [honest, hostile]) await engine.processes.share(conv_id, id)
  await engine.users.bind(hostile.id, names[0] as string)
  const data = { s: 'x'.repeat(task_bytes) }
  for (let n = 0; n < tasks; n++) await engine.create({ conv_id, ref: `${n}`, data })
  await engine.close()
  const read = (name: string): Buffer => readFileSync(join(tls, name))
  const keys = { ca: read('ca.crt'), cert: read('hostile.crt'), key: read('hostile.key') }
  const listeners = ['http', 'grpc', 'operator'] as const
  return {
    folder,
    async start(limits) {
      const serving = startServing({ script, path, listeners, tls, limits })
      const { http, grpc, operator } = await firstLine<Listening>(serving)
      const { child, ended } = serving
      return {
        http_port: Number(new URL(http).port),
        grpc_port: Number(grpc.split(':')[1]),
        operator_port: Number(new URL(operator).port),
        honest: { user: honest.id, secret: honest.secret },
        hostile: { user: hostile.id, secret: hostile.secret },
        ...{ keys, tasks },
        rss_mb: serving.rss_mb,
        connections: () => connectionsOf(`/proc/${child.pid}`),
        async stop() {
          child.kill('SIGKILL')
          await ended
        },
      }
    },
  }
}

function connectionsOf(proc: string): ReadonlySet<string> {
  const sockets = new Set(readdirSync(`${proc}/fd`).map((fd) => socketAt(`${proc}/fd/${fd}`)))
  const lines = readFileSync(`${proc}/net/tcp`, 'utf8').split('\n').slice(1)
  const open = lines.map((line) => line.trim().split(/\s+/)).filter((at) => sockets.has(at[9]))
  return new Set(open.map(([, own, peer]) => connectionOf(portAt(peer), portAt(own))))
}

/** Of an address as the kernel writes it: `0100007F:1F90`. */
function portAt(address = ''): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16)
}

/** The inode of the socket; none for a file, and for one that was closed meanwhile. */
function socketAt(path: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(path))?.[1]
  } catch {
    return undefined
  }
}
