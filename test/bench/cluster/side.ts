/**
 * One side of the comparison: its process, which is called by itself or over HTTP, and how many of its
 * tasks are created and called back. A rival's process is frozen between its slots, because some poll
 * the server; ours must renew its lease.
 */
import type { WriteVerb } from '../cells.ts'
import { type Child, startChild } from '../child.ts'
import type { HttpClientCalls } from '../client-http.ts'
import type { BenchFolder } from '../folder.ts'
import type { RunningBackend } from '../rival-backends.ts'
import { packagesOf } from '../rival-packages.ts'
import type { Slot } from '../statistics.ts'
import { type Span, spanSeconds } from '../stopwatch.ts'
import {
  type ClusterCell,
  type ClusterRivalName,
  type ClusterSide,
  cluster_rivals,
  clusterName,
} from './line.ts'
import type { LivesCalls } from './lives-calls.ts'

/** What all sides of a run share. */
export interface Shared {
  readonly folder: BenchFolder
  readonly server: RunningBackend
  readonly client: Child<HttpClientCalls>
}

export interface Side {
  /** Callbacks end with the last task that waits; a slot of callbacks leaves none. */
  measure(cell: ClusterCell, slot_s: number): Promise<Slot>
  stop(): Promise<void>
}

/** Requests a second to prepare before a rate is known. */
const guessed_rate = 20_000
/** What a slot of callbacks leaves must be done by then. */
const rest_s_max = 120
const own_scripts = { ours: 'cluster/ours', file: 'cluster/ours', floor: 'cluster/floor' } as const

export function isRival(name: ClusterSide): name is ClusterRivalName {
  return cluster_rivals.some((rival) => rival === name)
}

/** Callbacks are faster than creates on most sides, and so their slots are shorter. */
const spanOf = (verb: WriteVerb, slot_s: number): Span =>
  verb === 'create'
    ? { warmup_s: slot_s / 4, slot_s }
    : { warmup_s: slot_s / 8, slot_s: (slot_s * 3) / 4 }

export async function startSide(shared: Shared, name: ClusterSide): Promise<Side> {
  const { folder, server, client } = shared
  const is_rival = isRival(name)
  const script = is_rival ? (`cluster/rival-${name}` as const) : own_scripts[name]
  const child = startChild<LivesCalls>(folder.script(script), ['--no-warnings'])
  const { host, port, admin_port } = server
  const packages = is_rival ? packagesOf(name) : ''
  const commit_log = name === 'file' ? 'files' : 'postgres'
  const path = folder.newPath()
  const endpoint = await child.call('open', { host, port, admin_port, packages, path, commit_log })
  if (is_rival) child.freeze()
  const rates = new Map<string, number>()
  const done: Record<WriteVerb, number> = { create: 0, modify: 0 }

  async function overHttp(cell: ClusterCell, requests: number, span: Span): Promise<Slot> {
    const { verb, callers } = cell
    const given = { verb, ops: 1, requests, tasks: 0, refs: 'random', first: done[verb] } as const
    await client.call('prepare', { ...given, secret: endpoint.secret })
    return client.call('run', { port: endpoint.port, callers, ops: 1, ...span })
  }

  async function embedded(cell: ClusterCell, requests_max: number, span: Span): Promise<Slot> {
    const { verb, callers } = cell
    return child.call('run', { verb, callers, first: done[verb], requests_max, ...span })
  }

  return {
    async measure(cell, slot_s) {
      if (is_rival) child.thaw()
      const { verb, callers, transport } = cell
      const span = spanOf(verb, slot_s)
      const key = clusterName(cell)
      const expected = callers + 2 * (rates.get(key) ?? guessed_rate) * spanSeconds(span)
      const waiting = done.create - done.modify
      const requests_max = verb === 'create' ? Number.POSITIVE_INFINITY : waiting
      if (verb === 'modify') await child.call('prepare')
      const slot =
        transport === 'http'
          ? await overHttp(cell, Math.min(Math.ceil(expected), requests_max), span)
          : await embedded(cell, requests_max, span)
      done[verb] += slot.whole.ops
      rates.set(key, slot.whole.ops / slot.whole.seconds)
      const rest = done.create - done.modify
      if (verb === 'modify' && rest > 0) {
        const made = await embedded(cell, rest, { warmup_s: 0, slot_s: rest_s_max })
        done.modify += made.whole.ops
      }
      await child.call('settle')
      if (is_rival) child.freeze()
      return slot
    },
    async stop() {
      if (is_rival) child.thaw()
      await child.call('close')
      await child.stop()
    },
  }
}
