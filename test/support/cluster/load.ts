/**
 * Callers of a cluster, who create lists, append to them and read them, several of them each list,
 * and keep the history of it. Nothing is sent again: what was not answered is unknown.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../src/client/api.ts'
import { isClientFault } from '../../../src/client/faults.ts'
import type { Answer, History, Sent } from './history.ts'
import { firstData, list_id, nextData, valuesOf } from './list-process.ts'

export interface LoadOptions {
  /** Those that callers take turns at; each speaks to the cluster in its way. */
  readonly clients: readonly Client[]
  readonly callers: number
  readonly history: History
  /** From 0 up to 1, from the seed of the run. */
  readonly fraction: () => number
  /** What refs and values begin with. */
  readonly name: string
  /** Between two ops of a caller. */
  readonly pause_ms?: number
}

export interface Load {
  /** The refs that were sent. */
  readonly refs: ReadonlySet<string>
  /** How many ops have been acknowledged. */
  acknowledged(): number
  /** The longest time in which none was, since the last call of this. */
  longestGap_ms(): number
  /** Resolves once so many more have been acknowledged; false where it takes too long. */
  more(count: number, within_ms: number): Promise<boolean>
  /** No caller sends again; resolves once each has its last answer. */
  end(): Promise<void>
}

/** As long as the slowest cluster may take; later it is unknown. */
const timeout_ms = 5_000
/** Where nobody listens, a caller tries again soon. */
const again_ms = 50
const lists_max = 48
const writes_max = 40

export function startLoad(options: LoadOptions): Load {
  const { clients, callers, history, fraction, name, pause_ms = 3 } = options
  const refs = new Set<string>()
  /** Lists that take more values, and how many they were sent. */
  const open = new Map<string, number>()
  let values = 0
  let acknowledged = 0
  let last_ms = performance.now()
  let gap_ms = 0
  let is_ending = false

  function nextOp(): Sent {
    const refs_open = [...open.keys()]
    const ref = refs_open[Math.floor(fraction() * refs_open.length)]
    const kind = fraction()
    if (ref === undefined || refs_open.length < 8 || (kind < 0.1 && open.size < lists_max)) {
      const made = `${name}-${refs.size}`
      refs.add(made)
      open.set(made, 1)
      return { kind: 'create', ref: made, value: `c${name}-${values++}` }
    }
    if (kind < 0.3) return { kind: 'read', ref }
    const sent = (open.get(ref) ?? 0) + 1
    if (sent > writes_max) open.delete(ref)
    else open.set(ref, sent)
    return { kind: 'modify', ref, value: `m${name}-${values++}` }
  }

  async function call(client: Client): Promise<void> {
    const sent = nextOp()
    const end = history.begin(sent)
    const answer = await send(client, sent)
    end(answer)
    if (answer.outcome === 'ok') {
      const now_ms = performance.now()
      gap_ms = Math.max(gap_ms, now_ms - last_ms)
      last_ms = now_ms
      acknowledged++
    }
    // A list that was not made takes no values.
    if (sent.kind === 'create' && answer.outcome === 'refused') open.delete(sent.ref)
    await sleep(answer.outcome === 'ok' ? fraction() * 2 * pause_ms : again_ms)
  }

  async function caller(n: number): Promise<void> {
    while (!is_ending) await call(clients[n % clients.length] as Client)
  }

  const ended = Promise.all(Array.from({ length: callers }, (_, n) => caller(n)))
  return {
    refs,
    acknowledged: () => acknowledged,
    longestGap_ms() {
      const longest = Math.max(gap_ms, performance.now() - last_ms)
      gap_ms = 0
      return longest
    },
    async more(count, within_ms) {
      const wanted = acknowledged + count
      const until_ms = performance.now() + within_ms
      while (acknowledged < wanted && performance.now() < until_ms) await sleep(10)
      return acknowledged >= wanted
    },
    async end() {
      is_ending = true
      await ended
    },
  }
}

/** The values of a list; empty where there is none. Rejects where nobody answers. */
export async function readList(client: Client, ref: string): Promise<string[]> {
  return valuesOf(await client.task({ conv_id: list_id, ref }, { timeout_ms }))
}

async function send(client: Client, { kind, ref, value = '' }: Sent): Promise<Answer> {
  const target = { conv_id: list_id, ref }
  try {
    if (kind === 'read') return { outcome: 'ok', seen: await readList(client, ref) }
    const { proc } =
      kind === 'create'
        ? await client.create({ ...target, data: firstData(value) }, { timeout_ms })
        : await client.modify({ ...target, data: nextData(value) }, { timeout_ms })
    if (proc === 'ok') return { outcome: 'ok' }
    // Whoever is told that there is no task has read it.
    const seen = proc === 'not_found_task' ? { seen: [] } : {}
    return { outcome: 'refused', why: proc, ...seen }
  } catch (error) {
    if (!isClientFault(error)) throw error
    return { outcome: error.outcome === 'unknown' ? 'unknown' : 'refused', why: error.code }
  }
}
