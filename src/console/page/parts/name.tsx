/**
 * A title, a ref or another name that comes from a definition or a caller: text of any length and
 * direction. At most 120 characters of it are shown, so that no row grows with it.
 */
import type { ReadonlySignal } from '@preact/signals'
import { cut } from '../../diagram/text.ts'
import { shownText } from './texts.ts'

const chars_max = 120
const tooltip_chars_max = 1_000

export const nameText = (name: string): string => shownText(cut(name, chars_max))

interface NameProps {
  readonly of: string | ReadonlySignal<string>
  readonly class?: string
}

export function Name({ of, class: look }: NameProps) {
  const whole = typeof of === 'string' ? of : of.value
  const shown = nameText(whole)
  const title = whole.length > chars_max ? shownText(cut(whole, tooltip_chars_max)) : undefined
  return (
    <bdi class={look} title={title}>
      {shown}
    </bdi>
  )
}
