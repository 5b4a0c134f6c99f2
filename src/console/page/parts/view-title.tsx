/**
 * The heading of a view, which names the window as well. After a change of the place the focus is
 * on it, so that a screen reader says where one is and Tab goes on from there.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { type Place, place } from '../place.ts'

interface ViewTitleProps {
  /** Of the window; browsers keep it, so nothing of a task's data belongs here. */
  readonly window: string
  readonly children?: ComponentChildren
}

/** Of the heading that was shown last. */
let shown: Place | undefined

export function ViewTitle({ window, children = window }: ViewTitleProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    const is_first = shown === undefined
    // A view that draws its heading anew takes the focus from nobody.
    const is_free = shown !== place.peek() || document.activeElement === document.body
    if (!is_first && is_free) heading.current?.focus({ preventScroll: true })
    shown = place.peek()
  }, [])
  useEffect(() => {
    document.title = `${window} · Conveyor`
  }, [window])
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  )
}
