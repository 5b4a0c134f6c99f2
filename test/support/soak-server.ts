/**
 * The server of the soak: `conveyor serve` with every listener, on a file with the processes of the
 * work, and what it holds: memory, descriptors, files and tasks.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { addClient, initFolder } from '../../src/certs/folder.ts'
import type { Client } from '../../src/client/api.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'
import { openEngine } from '../../src/open.ts'
import { top } from './package-folder.ts'
import { processesOf, shared, standing_id, standingRef, webhook_id } from './soak-work.ts'
import type { BuiltChild } from './store-child.ts'

/** Where its callers find it, and as whom. */
export interface SoakTarget {
  readonly http: string
  readonly http_sync: string
  readonly grpc: string
  readonly operator: string
  readonly user: string
  readonly secret: string
  /** The path of the webhook. */
  readonly webhook: string
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string }
  readonly db: string
}

/** What makes a server worse, for the control: soak-preload. */
export interface Worse {
  readonly bytes: number
  readonly descriptor_every: number
  readonly us_more: number
  readonly ms_max: number
}

export interface ServerOptions {
  readonly ended_kept_ms: number
  readonly changes_kept_ms: number
  readonly checkpoint_bytes: number
  readonly standing_tasks: number
  readonly worse?: Worse
  /** The server that calls go to. */
  readonly stub: string
}

export type Held = Readonly<Record<HeldName, number>>
export type HeldName = (typeof held_names)[number]
export const held_names = [
  ...(['rss_bytes', 'anonymous_bytes', 'heap_bytes', 'external_bytes'] as const),
  ...(['array_buffer_bytes', 'descriptors', 'threads', 'file_bytes', 'log_bytes'] as const),
  'tasks',
] as const

export interface SoakServer {
  readonly target: SoakTarget
  /** What it holds now, asked by a caller; `is_collected`: without its garbage. */
  held(client: Client, is_collected: boolean): Promise<Held>
  /** The lines of its log, by level and event. */
  readonly events: Map<string, number>
  /** Ends it, and answers what is wrong with its end or with the file it leaves. */
  stop(): Promise<string | undefined>
  kill(): Promise<void>
}

let files = 0

export async function startServer(built: BuiltChild, options: ServerOptions): Promise<SoakServer> {
  const folder = join(built.folder, `soak-${files++}`)
  const tls_folder = join(folder, 'tls')
  const making = { now_ms: systemClock.now_ms(), chance: systemChance }
  await initFolder(tls_folder, [], making)
  const { names } = await addClient(tls_folder, 'load', making)
  const db = join(folder, 'tasks.lmdb')
  const engine = await openEngine(db, { background: false })
  await engine.processes.putMany(processesOf(options.stub))
  const { id: user, secret } = await engine.users.add()
  for (const conv_id of shared) await engine.processes.share(conv_id, user)
  await engine.users.bind(user, names[0] as string)
  const { address } = await engine.processes.webhook(webhook_id, { address: 'new' })
  await engine.schedules.put({
    id: 'beat',
    cron: '* * * * * *',
    timezone: 'UTC',
    conv_id: webhook_id,
  })
  const refs = Array.from({ length: options.standing_tasks }, (_, n) => standingRef(n))
  await Promise.all(refs.map((ref) => engine.create({ conv_id: standing_id, ref, data: {} })))
  await engine.close()

  const { host } = new URL(options.stub)
  const child = spawn(
    process.execPath,
    [
      ...['--expose-gc', '--require', join(top, 'test/support/soak-preload.cjs'), built.script],
      ...['serve', '--json', '--db', db, '--tls', tls_folder, '--allow-host', host],
      ...['http', 'http-sync', 'grpc', 'operator'].flatMap((at) => [`--${at}`, '127.0.0.1:0']),
      ...['--ended-kept-ms', String(options.ended_kept_ms), '--log-level', 'debug'],
      // What a machine does that is busy with other work is not the failure of a task.
      ...['--code-ms-max', '30000'],
      ...['--changes-kept-ms', String(options.changes_kept_ms)],
      ...['--checkpoint-bytes', String(options.checkpoint_bytes)],
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        ...process.env,
        ...(options.worse && { CONVEYOR_SOAK_WORSE: JSON.stringify(options.worse) }),
      },
    },
  )
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  const events = eventsOf(child)
  const line = await Promise.race([
    once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line'),
    ended.then(({ code }) => Promise.reject(new Error(`the server ended with ${code}`))),
  ])
  const { http, http_sync, grpc, operator } = JSON.parse(line[0] as string) as SoakTarget
  const at = (name: string): string => join(tls_folder, name)
  return {
    target: {
      ...{ http, http_sync, grpc, operator, user, secret, db },
      webhook: new URL(address as string, http).pathname,
      tls: { ca: at('ca.crt'), cert: at('load.crt'), key: at('load.key') },
    },
    events,
    held: (client, is_collected) => heldBy(child, { folder, db, client, is_collected }),
    async stop() {
      child.kill('SIGTERM')
      const { code, signal } = await ended
      if (code !== 0) return `it ended with ${code ?? signal}`
      const left = await openEngine(db, { background: false })
      const { breaches } = await left.check()
      await left.close()
      return breaches.length === 0 ? undefined : `check: ${breaches.slice(0, 3).join('; ')}`
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

interface Line {
  readonly level: string
  readonly event: string
}

function eventsOf(child: ChildProcess): Map<string, number> {
  const events = new Map<string, number>()
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (text) => {
    const { level, event } = JSON.parse(text) as Line
    const name = `${level} ${event}`
    events.set(name, (events.get(name) ?? 0) + 1)
  })
  return events
}

interface Place {
  readonly folder: string
  readonly db: string
  readonly client: Client
  readonly is_collected: boolean
}

async function heldBy(child: ChildProcess, place: Place): Promise<Held> {
  const told = once(child, 'message')
  child.send(place.is_collected)
  const [{ heapUsed, external, arrayBuffers }] = (await told) as [NodeJS.MemoryUsage]
  const { total } = await place.client.count({ status: 'any' })
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const number = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  const logs = readdirSync(place.folder).filter((name) => name.includes('-log-'))
  return {
    rss_bytes: number('VmRSS') * 1_024,
    anonymous_bytes: number('RssAnon') * 1_024,
    heap_bytes: heapUsed,
    external_bytes: external,
    array_buffer_bytes: arrayBuffers,
    descriptors: readdirSync(`/proc/${child.pid}/fd`).length,
    threads: number('Threads'),
    file_bytes: statSync(place.db).size,
    log_bytes: logs.reduce((sum, name) => sum + statSync(join(place.folder, name)).size, 0),
    tasks: total,
  }
}
