/**
 * Keeps a view up to date by server-sent events, or by polling each two seconds while these do not
 * come through, as behind a proxy that buffers them. Frames are applied in order, at most once per
 * animation frame. A broken connection is opened again and begins with a whole frame. A hidden page
 * follows nothing.
 */
import { batch, computed, effect, signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Frame, View } from '../server/messages.ts'
import { setServerTime } from './parts/values.tsx'
import { base } from './place.ts'
import { call, findSession, has_ended, is_reachable, session } from './session.ts'

/** `is_whole`: what the frame does not name is gone. */
export type OnFrame = (frame: Frame, is_whole: boolean) => void

const tick_ms = 1_000
/** The longest silence before the page polls; the server sends a beat each 3 seconds. */
const silent_ms_max = 8_000
/** A first frame that takes longer is held back by something. */
const first_ms_max = 2_500
const ask_every_ms = 2_000
const ask_ms_max = 5_000
/**
 * While the page asks, events are tried again this often; sooner where the server has ended them.
 */
const listen_again_ms = 30_000
const closed_ms = 10_000
/** A page that is hidden for less keeps its connection. */
const hidden_ms_max = 5_000

const follows = signal(0)
const hears = signal(false)

/**
 * `live`: by events; `asking`: by asking; `ready`: the view is not live; `away`: the server does
 * not answer, which is tried again each two seconds.
 */
export const connection = computed(() => {
  if (!is_reachable.value) return 'away'
  return follows.value === 0 ? 'ready' : hears.value ? 'live' : 'asking'
})

/** Calls `onFrame` with the frames of the view until the function that it returns is called. */
export function follow(
  view: View,
  onFrame: OnFrame,
  onRefused: (fault: unknown) => void = () => {},
): () => void {
  const query = new URLSearchParams(Object.entries(view))
  const began_ms = performance.now()
  let source: EventSource | undefined
  let listened_ms = 0
  let heard_ms = 0
  let asked_ms = -ask_every_ms
  let is_asking = false
  let has_stopped = false
  let has_shown = false
  let waiting: (readonly [Frame, boolean])[] = []

  function listen(): void {
    source?.close()
    listened_ms = performance.now()
    const opened = new EventSource(`${base}/live?${query}`)
    let is_whole = true
    // Also after each time that the browser connects again by itself.
    opened.addEventListener('open', () => {
      is_whole = true
    })
    opened.addEventListener('frame', ({ data }) => {
      heard()
      take(JSON.parse(data) as Frame, is_whole)
      is_whole = false
    })
    opened.addEventListener('beat', () => is_whole || heard())
    opened.addEventListener('error', () => {
      heard_ms = 0
      hears.value = false
      void tick()
    })
    source = opened
  }

  function heard(): void {
    heard_ms = performance.now()
    hears.value = true
    is_reachable.value = true
  }

  function take(frame: Frame, is_whole: boolean): void {
    if (has_stopped) return
    if (frame.view === 'overview') setServerTime(frame.overview.at_ms)
    if (frame.view === 'process') setServerTime(frame.counts.at_ms)
    if (waiting.length === 0 && has_shown) requestAnimationFrame(apply)
    if (is_whole) waiting = []
    waiting.push([frame, is_whole])
    // The first frame of a view is shown at once.
    if (!has_shown) apply()
    has_shown = true
  }

  function apply(): void {
    const frames = waiting
    waiting = []
    if (has_stopped) return
    batch(() => {
      for (const [frame, is_whole] of frames) onFrame(frame, is_whole)
    })
  }

  async function tick(): Promise<void> {
    const now_ms = performance.now()
    const silent_ms = now_ms - Math.max(heard_ms, began_ms)
    // The browser closes a refused stream; a poll gets the reason.
    const is_refused = source?.readyState === EventSource.CLOSED
    if (!is_refused && silent_ms < (heard_ms === 0 ? first_ms_max : silent_ms_max)) return
    hears.value = false
    if (is_asking || now_ms - asked_ms < ask_every_ms) return
    is_asking = true
    await ask(now_ms)
    is_asking = false
    const is_closed = source?.readyState === EventSource.CLOSED
    const again_ms = is_closed ? closed_ms : listen_again_ms
    if (!has_stopped && is_reachable.value && now_ms - listened_ms > again_ms) listen()
  }

  async function ask(now_ms: number): Promise<void> {
    asked_ms = now_ms
    try {
      const frame = await call('frame', view, ask_ms_max)
      if (heard_ms < now_ms) take(frame, true)
    } catch (fault) {
      // It is away, which the frame of the page says, or refuses: it is asked again.
      if (!has_stopped && is_reachable.value) onRefused(fault)
    }
  }

  follows.value += 1
  hears.value = true
  listen()
  const timer = setInterval(tick, tick_ms)
  return () => {
    has_stopped = true
    follows.value -= 1
    clearInterval(timer)
    source?.close()
  }
}

const is_seen = signal(!document.hidden)
let hiding: ReturnType<typeof setTimeout> | undefined
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding)
  if (!document.hidden) is_seen.value = true
  else hiding = setTimeout(() => (is_seen.value = false), hidden_ms_max)
})

/**
 * A hook: follows the view as long as the component is there, seen and signed in. `onRefused`
 * gets why there is nothing to follow, such as a task that is gone.
 */
export function useFrames(
  view: View,
  onFrame: OnFrame,
  onRefused?: (fault: unknown) => void,
): void {
  const latest = useRef({ onFrame, onRefused })
  latest.current = { onFrame, onRefused }
  const key = JSON.stringify(view)
  const is_on = is_seen.value && typeof session.value === 'object' && !has_ended.value
  // Before the first paint, which the frame need not wait for.
  useLayoutEffect(() => {
    if (!is_on) return
    return follow(
      view,
      (frame, is_whole) => latest.current.onFrame(frame, is_whole),
      (fault) => latest.current.onRefused?.(fault),
    )
  }, [key, is_on])
}

/** Finds out when the server is back while no view polls. */
effect(() => {
  if (connection.value !== 'away' || follows.value > 0) return
  const timer = setInterval(() => void findSession().catch(() => {}), ask_every_ms)
  return () => clearInterval(timer)
})
