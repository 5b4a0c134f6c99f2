/** A button that opens a short list of actions below it; Escape, or a look elsewhere, closes it. */

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { Button } from './button.tsx'
import { set } from './set.ts'

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
