/**
 * Pan and zoom of a graph. The browser pans: the frame scrolls, so arrow keys, touch, wheel and
 * focus work as everywhere. This adds dragging with a mouse, the zoom, which scales the stage, and
 * the area in sight.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'

const zoom_min = 0.04
const zoom_max = 2
/** The smallest zoom at which the first sight of a graph can be read. */
const first_zoom_min = 0.55
const step = 1.25
/** A press that moves no further than this is a click. */
const click_px = 4
const around_px = 24
/** Kept free below the graph for the buttons of the zoom. */
const bar_px = 56
/** The steps of what is in sight, as seen on the screen; as much is drawn around it. */
const seen_px = 400

export interface Size {
  readonly width: number
  readonly height: number
}

export interface Area {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

export interface Zoom {
  readonly value: ReadonlySignal<number>
  /** What is in sight and around it: it changes in steps, so that few scrolls draw anything. */
  readonly seen: ReadonlySignal<Area>
  in(): void
  out(): void
  /** All of the graph, where it is no smaller than it can be drawn. */
  fit(): void
  reset(): void
  show(x: number, y: number): void
}

/** `frame` scrolls a first child, the stage's place, whose first child is the stage. */
export function useZoom(frame: RefObject<HTMLElement | null>, { width, height }: Size): Zoom {
  const zoom = useMemo(() => newZoom(frame, { width, height }), [width, height])
  useEffect(() => zoom.listen(), [zoom])
  return zoom
}

function newZoom(ref: RefObject<HTMLElement | null>, size: Size): Zoom & { listen(): () => void } {
  const value = signal(1)
  const seen = signal<Area>({ left: 0, top: 0, right: 0, bottom: 0 })

  function look(): void {
    const frame = ref.current
    const stage = frame?.firstElementChild?.firstElementChild
    if (!frame || !stage) return
    const outer = frame.getBoundingClientRect()
    const inner = stage.getBoundingClientRect()
    const before = (px: number) => ((Math.floor(px / seen_px) - 1) * seen_px) / value.peek()
    const after = (px: number) => ((Math.ceil(px / seen_px) + 1) * seen_px) / value.peek()
    const now = {
      left: before(outer.left - inner.left),
      top: before(outer.top - inner.top),
      right: after(outer.right - inner.left),
      bottom: after(outer.bottom - inner.top),
    }
    const { left, top, right, bottom } = seen.peek()
    const is_same = left === now.left && top === now.top && right === now.right
    if (!is_same || bottom !== now.bottom) seen.value = now
  }

  /** Keeps the point of the graph that is at (x, y) of the window, by default in the middle. */
  function zoomTo(wanted: number, at?: { readonly x: number; readonly y: number }): void {
    const frame = ref.current
    const place = frame?.firstElementChild as HTMLElement | null
    const stage = place?.firstElementChild as HTMLElement | null
    if (!frame || !place || !stage) return
    const next = Math.min(zoom_max, Math.max(zoom_min, wanted))
    const bounds = frame.getBoundingClientRect()
    const x = at?.x ?? bounds.left + bounds.width / 2
    const y = at?.y ?? bounds.top + bounds.height / 2
    const before = stage.getBoundingClientRect()
    place.style.width = `${size.width * next}px`
    place.style.height = `${size.height * next}px`
    stage.style.transform = `scale(${next})`
    const after = stage.getBoundingClientRect()
    const grown = next / value.peek()
    frame.scrollLeft += after.left + (x - before.left) * grown - x
    frame.scrollTop += after.top + (y - before.top) * grown - y
    value.value = next
    look()
  }

  function fitting(): number {
    const { clientWidth = 1, clientHeight = 1 } = ref.current ?? {}
    const wide = (clientWidth - around_px) / size.width
    const tall = (clientHeight - around_px - bar_px) / size.height
    return Math.min(1, wide, tall)
  }

  function listen(): () => void {
    const frame = ref.current
    if (!frame) return () => {}
    zoomTo(Math.max(first_zoom_min, fitting()))
    const ends = new AbortController()
    const { signal } = ends
    frame.addEventListener('scroll', look, { passive: true, signal })
    const resized = new ResizeObserver(look)
    resized.observe(frame)
    signal.addEventListener('abort', () => resized.disconnect())
    frame.addEventListener('wheel', onWheel, { passive: false, signal })
    frame.addEventListener('keydown', onKey, { signal })
    frame.addEventListener('pointerdown', (down) => drag(frame, down), { signal })
    frame.addEventListener('touchstart', onPinch, { passive: false, signal })
    frame.addEventListener('touchmove', onPinch, { passive: false, signal })
    return () => ends.abort()
  }

  let wheeled = 0
  let wheel_at = { x: 0, y: 0 }

  /** A wheel may turn more often than the screen is drawn. */
  function onWheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey) return
    event.preventDefault()
    if (wheeled === 0) {
      requestAnimationFrame(() => {
        const turned = Math.max(-100, Math.min(100, wheeled))
        wheeled = 0
        zoomTo(value.peek() * Math.exp(-turned / 250), wheel_at)
      })
    }
    wheeled += event.deltaY || 0.01
    wheel_at = { x: event.clientX, y: event.clientY }
  }

  const keys: Readonly<Record<string, () => void>> = {
    '+': () => zoomTo(value.peek() * step),
    '=': () => zoomTo(value.peek() * step),
    '-': () => zoomTo(value.peek() / step),
    '0': () => zoomTo(fitting()),
  }

  function onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const act = keys[event.key]
    if (act === undefined) return
    event.preventDefault()
    act()
  }

  let apart = 0

  function onPinch(event: TouchEvent): void {
    const [one, other] = event.touches
    if (one === undefined || other === undefined || event.touches.length !== 2) return
    event.preventDefault()
    const now = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY)
    const at = { x: (one.clientX + other.clientX) / 2, y: (one.clientY + other.clientY) / 2 }
    if (event.type === 'touchmove' && apart > 0) zoomTo((value.peek() * now) / apart, at)
    apart = now
  }

  return {
    value,
    seen,
    in: () => zoomTo(value.peek() * step),
    out: () => zoomTo(value.peek() / step),
    fit: () => zoomTo(fitting()),
    reset: () => zoomTo(1),
    show(x, y) {
      const frame = ref.current
      const stage = frame?.firstElementChild?.firstElementChild
      if (!frame || !stage) return
      if (value.peek() < first_zoom_min) zoomTo(first_zoom_min)
      const outer = frame.getBoundingClientRect()
      const inner = stage.getBoundingClientRect()
      frame.scrollLeft += inner.left + x * value.peek() - outer.left - outer.width / 2
      frame.scrollTop += inner.top + y * value.peek() - outer.top - outer.height / 2
      look()
    },
    listen,
  }
}

/** The pointer is captured only once it is a drag, because a capture takes the click of a node. */
function drag(frame: HTMLElement, down: PointerEvent): void {
  if (down.pointerType === 'touch' || down.button !== 0) return
  const ends = new AbortController()
  const { signal } = ends
  const { scrollLeft, scrollTop } = frame
  const move = ({ clientX, clientY, pointerId }: PointerEvent): void => {
    const [x, y] = [clientX - down.clientX, clientY - down.clientY]
    if (!frame.hasPointerCapture(pointerId)) {
      if (Math.hypot(x, y) <= click_px) return
      frame.setPointerCapture(pointerId)
      frame.classList.add('dragged')
    }
    frame.scrollTo(scrollLeft - x, scrollTop - y)
  }
  const end = (): void => {
    frame.classList.remove('dragged')
    ends.abort()
  }
  addEventListener('pointermove', move, { signal })
  addEventListener('pointerup', end, { signal })
  addEventListener('pointercancel', end, { signal })
}
