/**
 * The heading of a view, which names the window as well. After a change of the place the focus is
 * on it, so that a screen reader says where one is and Tab goes on from there.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface ViewTitleProps {
  /** Of the window; browsers keep it, so nothing of a task's data belongs here. */
  readonly window: string
  readonly children?: ComponentChildren
}

let has_shown = false

export function ViewTitle({ window, children = window }: ViewTitleProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (has_shown) heading.current?.focus({ preventScroll: true })
    has_shown = true
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
