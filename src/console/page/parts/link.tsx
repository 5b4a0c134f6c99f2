/**
 * Links within the page. They are real ones, which open in another tab where the reader asks for
 * that. Their address has ids alone; what names them is text.
 */
import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { go, type Place, pathOf } from '../place.ts'

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
      href={pathOf(to)}
      class={look}
      aria-label={label}
      aria-current={is_current ? 'page' : undefined}
      onClick={onClick}
    >
      {children}
    </a>
  )
}

interface ProcessLinkProps {
  readonly conv_id: string
  readonly title?: string | ReadonlySignal<string>
  readonly class?: string
}

/** By its title, else by its id. */
export function ProcessLink({ conv_id, title, class: look = '' }: ProcessLinkProps) {
  return (
    <Link to={{ name: 'process', conv_id }} class={look}>
      <bdi>{title || conv_id}</bdi>
    </Link>
  )
}

interface TaskLinkProps {
  readonly obj_id: string
  /** The caller's name of the task; a task without one is named by its id. */
  readonly ref_text?: string | null | undefined
  readonly class?: string
}

export function TaskLink({ obj_id, ref_text, class: look = '' }: TaskLinkProps) {
  return (
    <Link to={{ name: 'task', obj_id }} class={look}>
      <bdi>{ref_text || obj_id}</bdi>
    </Link>
  )
}
