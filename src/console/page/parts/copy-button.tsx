/** Copies a text, also where the browser gives no clipboard to a page without TLS. */

import { useSignal } from '@preact/signals'
import { Button } from './button.tsx'
import { set } from './set.ts'

const copied_ms = 2_000

interface CopyButtonProps {
  readonly text: string
  /** Goes on after its text, for who cannot see what it stands beside. */
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
