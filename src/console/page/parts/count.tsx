/** A number with its digits in groups; of a signal, whose changes redraw its text and no more. */
import { type ReadonlySignal, useComputed } from '@preact/signals'
import { countText } from './texts.ts'

interface CountProps {
  readonly of: number | ReadonlySignal<number>
  /** What the number is of, where it stands without a heading of a column. */
  readonly label?: string
  /** Where it is not 0 it is bad news. */
  readonly is_bad?: boolean
}

export function Count({ of, label, is_bad = false }: CountProps) {
  return typeof of === 'number' ? (
    <span class={classOf(of, is_bad)}>
      {countText(of)}
      {label && <span class="unseen"> {label}</span>}
    </span>
  ) : (
    <LiveCount of={of} is_bad={is_bad} />
  )
}

function LiveCount({ of, is_bad }: { of: ReadonlySignal<number>; is_bad: boolean }) {
  const text = useComputed(() => countText(of.value))
  const look = useComputed(() => classOf(of.value, is_bad))
  return <span class={look}>{text}</span>
}

function classOf(count: number, is_bad: boolean): string {
  return count === 0 ? 'count none' : is_bad ? 'count bad' : 'count'
}
