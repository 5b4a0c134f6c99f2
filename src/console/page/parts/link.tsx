/**
 * Links within the page, which also open in another tab, and the title of a view. Addresses hold
 * ids only; what names them is text.
 */

import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { addressOf, go, type Place, place } from '../place.ts'
import type { Sentence } from '../task/words.ts'
import { Name, nameText } from './name.tsx'
import { shownText } from './texts.ts'
import { Countdown } from './values.tsx'

interface LinkProps {
  readonly to: Place
  /** What the place is opened with, such as a filter. */
  readonly given?: unknown
  readonly class?: string
  /** Where its text alone does not say where it leads. */
  readonly label?: string
  readonly is_current?: boolean
  readonly children: ComponentChildren
}

export function Link({ to, given, class: look, label, is_current, children }: LinkProps) {
  const onClick = (event: MouseEvent) => {
    const is_elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey
    if (is_elsewhere || event.button !== 0) return
    event.preventDefault()
    go(to, given)
  }
  return (
    <a
      href={addressOf(to, given)}
      class={look}
      aria-label={label}
      aria-current={is_current ? 'page' : undefined}
      onClick={onClick}
    >
      {children}
    </a>
  )
}

/** A process by its title, else by its id. */
export function ProcessLink({
  conv_id,
  title,
}: {
  readonly conv_id: string
  readonly title?: string | ReadonlySignal<string>
}) {
  return (
    <Link to={{ name: 'process', conv_id }}>
      <Name of={(typeof title === 'string' ? title : title?.value) || conv_id} />
    </Link>
  )
}

/** A task by the ref that its caller gave it, else by its id. */
export function TaskLink({ obj_id, ref_text }: { obj_id: string; ref_text?: string | null }) {
  return (
    <Link to={{ name: 'task', obj_id }}>
      <Name of={ref_text || obj_id} />
    </Link>
  )
}

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
    // A view that redraws its heading does not take the focus.
    const is_free = shown !== place.peek() || document.activeElement === document.body
    if (!is_first && is_free) heading.current?.focus({ preventScroll: true })
    shown = place.peek()
  }, [])
  useEffect(() => {
    document.title = `${nameText(window)} · Conveyor`
  }, [window])
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  )
}

/** A sentence with its times counting down and its tasks as links. */
export function Words({ of: parts }: { readonly of: Sentence }) {
  return (
    <span class="words">
      {parts.map((part, at) => {
        if (typeof part === 'string') return <bdi key={at}>{shownText(part)}</bdi>
        if ('at_ms' in part) return <Countdown key={at} ms={part.at_ms} />
        return <TaskLink key={at} obj_id={part.obj_id} />
      })}
    </span>
  )
}
