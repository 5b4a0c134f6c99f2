/**
 * Buttons: one that runs an act, one that submits a form, one that copies a text, and one that
 * opens a menu. While an act runs its button shows that, ignores presses and keeps the focus; a
 * refusal becomes a toast.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { set } from './set.ts'
import { sayFault } from './toasts.tsx'

interface ButtonProps {
  readonly act: () => unknown
  /** `main`: what the reader came for, one of a view; `danger`: what cannot be undone. */
  readonly kind?: 'plain' | 'main' | 'danger' | 'quiet'
  /** Why it cannot be pressed now, which is shown; empty or absent where it can. */
  readonly why_not?: string | false | undefined
  /** For screen readers, where its content is no text. */
  readonly label?: string
  readonly title?: string
  readonly class?: string
  readonly is_pressed?: boolean
  readonly is_expanded?: boolean
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

const copied_ms = 2_000

interface CopyButtonProps {
  readonly text: string
  /** What is copied, for screen readers. */
  readonly what: string
  readonly children?: string
}

export function CopyButton({ text, what, children = 'Copy' }: CopyButtonProps) {
  const is_copied = useSignal(false)
  const act = async () => {
    await copy(text)
    is_copied.value = true
    setTimeout(() => set(is_copied, false), copied_ms)
  }
  return (
    <Button act={act} kind="quiet" label={is_copied.value ? 'Copied' : `${children} ${what}`}>
      <span aria-live="polite">{is_copied.value ? 'Copied' : children}</span>
    </Button>
  )
}

async function copy(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const area = document.createElement('textarea')
  area.value = text
  const before = document.querySelector<HTMLElement>(':focus')
  document.body.append(area)
  area.select()
  const is_done = document.execCommand('copy')
  area.remove()
  before?.focus()
  if (!is_done) throw new Error('this browser does not let the page copy: mark and copy the text')
}

export function Command({ line }: { readonly line: string }) {
  return (
    <p class="command-line">
      <code>{line}</code> <CopyButton text={line} what="the command" />
    </p>
  )
}

interface MenuProps {
  readonly label: ComponentChildren
  readonly children: ComponentChildren
  readonly class?: string
}

export function Menu({ label, children, class: look = '' }: MenuProps) {
  const is_open = useSignal(false)
  const box = useRef<HTMLDivElement>(null)
  const close = () => set(is_open, false)
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !is_open.value) return
    event.stopPropagation()
    close()
    box.current?.querySelector('button')?.focus()
  }
  const onFocusOut = ({ relatedTarget }: FocusEvent) => {
    if (!box.current?.contains(relatedTarget as Node | null)) close()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the buttons within
    <div class={`menu ${look}`} ref={box} onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <Button kind="quiet" is_expanded={is_open.value} act={() => set(is_open, !is_open.value)}>
        {label}
      </Button>
      {is_open.value && <div class="menu-list">{children}</div>}
    </div>
  )
}
