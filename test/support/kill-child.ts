/**
 * A program with all servers, embedded callers and work of its own, until it is killed:
 * `kill-child PATH OPTIONS`. Prints a line of JSON for everything that it has been promised.
 * SIGTERM ends it as a service ends.
 */
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientResult } from '../../src/client/api.ts'
import { servedEngine } from '../../src/engine/served-engine.ts'
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { openEngine } from '../../src/open.ts'
import { handled, handlerThat, putJobProcesses, work } from './kill-jobs.ts'
import { newSequence, requestOf } from './workload.ts'

export interface KillOptions {
  /** Of the server that counts calls. */
  readonly url: string
  /** Of certificates. */
  readonly folder: string
  /** Of the embedded callers. */
  readonly sequences: readonly string[]
  readonly blocking_commits: boolean
  /** Whether the file is checked under the load. */
  readonly checks: boolean
  readonly drain_ms_max: number
  readonly handler_ms_max: number
}

export interface KillReport {
  readonly listening?: { readonly url: string; readonly sync_url: string; readonly address: string }
  /** The next answer of an embedded caller. */
  readonly answered?: { readonly sequence: string; readonly results: readonly ClientResult[] }
  readonly made?: readonly string[]
  /** Whom the handler is called for, and whom it is done with. */
  readonly handled?: string
  readonly done?: string
  readonly breaches?: readonly string[]
}

const [path = '', json = ''] = process.argv.slice(2)
const options = JSON.parse(json) as KillOptions
const { url, folder, sequences, blocking_commits, checks, drain_ms_max, handler_ms_max } = options

function send(report: KillReport): void {
  const line = Buffer.from(`${JSON.stringify(report)}\n`)
  for (let at = 0; at < line.length; ) {
    try {
      at += writeSync(1, line, at)
    } catch (error) {
      // Its reader is behind.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

const engine = await openEngine(path, {
  ...{ blocking_commits, admin: true, limits: { drain_ms_max } },
  allow_hosts: [new URL(url).host],
  handlers: {
    [handled]: handlerThat((obj_id) => send({ handled: obj_id }), {
      done: (obj_id) => send({ done: obj_id }),
      ms_max: handler_ms_max,
    }),
  },
})
await putJobProcesses(engine, url)
const servers = await Promise.all([
  serveHttp(engine, { port: 0 }),
  serveHttp(engine, { port: 0, sync: true }),
  serveGrpc(engine, { port: 0, tls: { folder } }),
])
const [http, sync, grpc] = servers
let is_stopped = false
process.once('SIGTERM', () => {
  is_stopped = true
  // As `serve` does: requests and handlers have the same time.
  void Promise.all([...servers, servedEngine(engine)].map((one) => one.drain()))
    .then(() => engine.close())
    .then(() => process.exit(0))
})
send({ listening: { url: http.url, sync_url: sync.url, address: grpc.address } })

async function callEmbedded(name: string): Promise<void> {
  const sequence = newSequence(name, 'embedded')
  for (let n = 1; ; n++) {
    const results = await engine.apply(requestOf(sequence, n).map(({ op }) => op))
    send({ answered: { sequence: name, results: results as readonly ClientResult[] } })
  }
}

async function makeWork(): Promise<void> {
  const create = { type: 'create', obj: 'task', conv_id: work, data: { changes: 0 } }
  for (;;) {
    const results = await engine.apply([create, create])
    send({ made: results.map(({ obj_id }) => obj_id as string) })
    await sleep(10)
  }
}

async function check(): Promise<void> {
  send({ breaches: (await engine.check()).breaches })
}

const loads = [...sequences.map(callEmbedded), makeWork(), ...(checks ? [check()] : [])]
await Promise.all(loads).catch((error: { readonly code?: string }) => {
  if (!is_stopped || error.code !== 'shutting_down') throw error
})
