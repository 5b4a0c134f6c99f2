/**
 * What a view shows, kept up to date: by server-sent events, and where these do not come through by
 * asking each two seconds. A connection that broke is made again, and begins with a whole frame.
 */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Frame, View } from '../server/console/messages.ts'
import { base } from './place.ts'
import { call, isCallFault, session } from './session.ts'

/** `live`: by events; `asking`: by asking; `away`: the server does not answer. */
export const connection = signal<'live' | 'asking' | 'away'>('live')

const ask_every_ms = 2_000
/** So long an event source gets before the page asks instead; it is tried again as long. */
const event_ms_max = 10_000

/** Calls `onFrame` with each frame of the view until the function that it returns is called. */
export function follow(view: View, onFrame: (frame: Frame) => void): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let heard_at = 0
  let has_ended = false

  function listen(): void {
    const query = new URLSearchParams(Object.entries(view))
    source = new EventSource(`${base}/live?${query}`)
    source.addEventListener('frame', ({ data }) => {
      heard_at = performance.now()
      connection.value = 'live'
      onFrame(JSON.parse(data) as Frame)
    })
    // The server says that it lives also where nothing changes.
    source.addEventListener('beat', () => {
      heard_at = performance.now()
    })
    heard_at = performance.now()
  }

  async function watch(): Promise<void> {
    if (performance.now() - heard_at > event_ms_max || source?.readyState === 2) {
      source?.close()
      await ask()
      if (has_ended) return
      if (performance.now() - heard_at > 2 * event_ms_max && connection.value !== 'away') listen()
    }
    timer = setTimeout(watch, ask_every_ms)
  }

  async function ask(): Promise<void> {
    try {
      const frame = await call('frame', view)
      if (has_ended) return
      connection.value = 'asking'
      onFrame(frame)
    } catch (error) {
      connection.value = isCallFault(error) && error.code === 'unreachable' ? 'away' : 'asking'
      // It is back, or has begun anew: events are tried again.
      heard_at = Math.min(heard_at, performance.now() - 2 * event_ms_max)
    }
  }

  listen()
  timer = setTimeout(watch, ask_every_ms)
  return () => {
    has_ended = true
    clearTimeout(timer)
    source?.close()
  }
}

/** A hook: the frames of a view, followed as long as the component is there and signed in. */
export function useFrames(view: View, onFrame: (frame: Frame) => void): void {
  const key = JSON.stringify(view)
  const is_in = typeof session.value === 'object'
  useEffect(() => (is_in ? follow(view, onFrame) : undefined), [key, is_in])
}
