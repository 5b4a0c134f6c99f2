/**
 * A button that runs what it is given. While that runs it says so and takes no other press, but
 * keeps the focus; where it is refused the toasts tell why.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { sayFault } from './toasts.tsx'

interface ButtonProps {
  readonly act: () => unknown
  /** `main`: what the reader came for, one of a view; `danger`: what cannot be undone. */
  readonly kind?: 'plain' | 'main' | 'danger' | 'quiet'
  /** Why it cannot be pressed now, which is shown; empty or absent where it can. */
  readonly why_not?: string | false | undefined
  /** Where what is in it is no text. */
  readonly label?: string
  readonly title?: string
  readonly class?: string
  readonly is_pressed?: boolean
  readonly is_expanded?: boolean
  /** Sends the form that it stands in; `act` is not called then, but by the form. */
  readonly is_running?: boolean
  readonly children: ComponentChildren
}

export function Button(props: ButtonProps) {
  const { act, kind = 'plain', why_not, label, title, children } = props
  const runs = useSignal(false)
  const is_running = runs.value || props.is_running === true
  const is_off = is_running || Boolean(why_not)
  const press = async () => {
    if (is_off) return
    runs.value = true
    try {
      await act()
    } catch (fault) {
      sayFault(fault)
    } finally {
      runs.value = false
    }
  }
  return (
    <button
      type="button"
      class={`button ${kind} ${props.class ?? ''}`}
      aria-disabled={is_off}
      aria-busy={is_running}
      aria-label={label}
      aria-pressed={props.is_pressed}
      aria-expanded={props.is_expanded}
      title={why_not || title}
      onClick={press}
    >
      {children}
    </button>
  )
}

/** Of a form, whose `onSubmit` does it. */
export function SubmitButton({
  is_running,
  children,
}: {
  readonly is_running: boolean
  readonly children: ComponentChildren
}) {
  return (
    <button type="submit" class="button main" aria-disabled={is_running} aria-busy={is_running}>
      {children}
    </button>
  )
}
