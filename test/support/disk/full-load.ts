/**
 * Callers who create and modify tasks as fast as they are answered, half of them over HTTP and half
 * over gRPC, until they are stopped; a refused request is followed by another one soon.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { becomes } from '../waits.ts'
import { type FullServer, type FullWork, put, readTasks } from './full-server.ts'

export interface Load {
  /** Resolves once each caller was refused three times on end, from now on. */
  refused(): Promise<void>
  /** Resolves once a request was taken, from now on. */
  taken(): Promise<void>
  /** Resolves once all is answered. */
  stop(): Promise<void>
}

const callers = 8
/** Of one request. */
const [request_bytes, batch_max] = [100_000, 50]
const retry_ms = 20
/** The disk fills as fast as a machine that has other work can. */
const fill_ms_max = 120_000

export function startLoad(
  { http, grpc }: FullServer,
  work: FullWork,
  fraction: () => number,
): Load {
  let is_stopped = false
  const refusals = Array.from({ length: callers }, () => 0)
  let taken = 0
  let wrong: unknown

  async function send(at: number): Promise<void> {
    const [own, other] = at % 2 === 0 ? [http, grpc] : [grpc, http]
    /** Only this caller changes them. */
    const mine: string[] = []
    while (!is_stopped) {
      const is_new = mine.length === 0 || fraction() < 0.6
      const refs = is_new ? newRefs(work) : someOf(mine, batchOf(work), fraction)
      const code = await put(own, work, refs)
      if (code === 'ok') {
        taken++
        refusals[at] = 0
        if (is_new) mine.push(...refs)
        const ref = refs[Math.floor(fraction() * refs.length)] as string
        if (fraction() < 0.25) await readTasks(other, work, [ref])
      } else if (code === 'no_space') {
        refusals[at] = (refusals[at] as number) + 1
        await sleep(retry_ms)
      } else return
    }
  }

  const working = Promise.all(Array.from({ length: callers }, (_, at) => send(at))).catch(
    (error: unknown) => {
      wrong ??= error
    },
  )
  const untilIs = (what: string, isSo: () => boolean): Promise<void> => {
    const isOver = (): boolean => {
      if (wrong !== undefined) throw wrong
      return isSo()
    }
    return becomes(what, isOver, fill_ms_max)
  }

  return {
    refused() {
      refusals.fill(0)
      return untilIs('all are refused', () => refusals.every((count) => count >= 3))
    },
    taken() {
      const before = taken
      return untilIs('a caller is taken', () => taken > before)
    },
    async stop() {
      is_stopped = true
      await working
      if (wrong !== undefined) throw wrong
    },
  }
}

const batchOf = ({ bytes }: FullWork): number =>
  Math.min(batch_max, Math.ceil(request_bytes / bytes))

function newRefs(work: FullWork): string[] {
  return Array.from({ length: batchOf(work) }, () => work.newRef())
}

function someOf(refs: readonly string[], count: number, fraction: () => number): string[] {
  const from = Math.floor(fraction() * Math.max(1, refs.length - count))
  return refs.slice(from, from + count)
}
