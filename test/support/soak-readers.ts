/**
 * Those who read all the while: the feed of changes over gRPC and over HTTP, the metrics, health,
 * and the admin socket. A reader of the feed leaves after a time, and the next one comes.
 */
import type { Client } from '../../src/client/api.ts'
import { run } from './cli-run.ts'
import type { SoakTarget } from './soak-server.ts'

export interface Readers {
  /** Changes that were read. */
  readonly changes: () => number
  /** Ends them; rejects with what one of them has met. */
  close(): Promise<void>
}

export function startReaders(
  { operator, db }: SoakTarget,
  client: Client,
  { every_ms, stay_ms }: { readonly every_ms: number; readonly stay_ms: number },
): Readers {
  const closing = new AbortController()
  let changes = 0

  async function again(ms: number, read: (signal: AbortSignal) => Promise<void>): Promise<void> {
    while (!closing.signal.aborted) {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(ms)])
      try {
        await read(signal)
        await untilAborted(signal)
      } catch (error) {
        if (!signal.aborted) throw error
      }
    }
  }

  async function readFeed(signal: AbortSignal): Promise<void> {
    for await (const _ of client.changes({ signal })) changes++
  }

  async function readEvents(signal: AbortSignal): Promise<void> {
    const { body, status } = await fetch(`${operator}/changes?data=1`, { signal })
    if (status !== 200 || body === null) throw new Error(`/changes is answered ${status}`)
    for await (const _ of body) changes++
  }

  async function readState(): Promise<void> {
    for (const path of ['/metrics', '/readyz', '/healthz']) {
      const answer = await fetch(operator + path)
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${path} is answered ${answer.status}: ${text}`)
    }
  }

  async function askSocket(): Promise<void> {
    for (const argv of [
      ['process', 'list'],
      ['task', 'list', '--limit', '5'],
    ]) {
      const { exit, err } = await run([...argv, '--db', db])
      if (exit !== 0) throw new Error(`${argv.join(' ')}: ${err}`)
    }
  }

  const all = [
    again(stay_ms, readFeed),
    again(stay_ms, readEvents),
    again(every_ms, readState),
    again(10 * every_ms, askSocket),
  ]
  const ended = Promise.all(all)
  ended.catch(() => {})
  return {
    changes: () => changes,
    async close() {
      closing.abort()
      await ended
    },
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
