/**
 * Times: `Time` says when something was, `Countdown` when it will be. The exact time is there for a
 * pointer that rests on it, and for programs. Only the text changes with the clock.
 */
import { useComputed } from '@preact/signals'
import { now_ms } from './clock.ts'
import { agoText, dueText, exactText } from './texts.ts'

interface TimeProps {
  readonly ms: number
  /** Default `relative`. */
  readonly as?: 'relative' | 'exact' | 'both'
}

export function Time({ ms, as = 'relative' }: TimeProps) {
  const exact = exactText(ms)
  return (
    <time dateTime={isoText(ms)} title={exact}>
      {as === 'relative' ? '' : exact}
      {as === 'both' ? ', ' : ''}
      {as === 'exact' ? '' : <Ago key={ms} ms={ms} />}
    </time>
  )
}

function Ago({ ms }: { readonly ms: number }) {
  return <>{useComputed(() => agoText(ms, now_ms.value))}</>
}

export function Countdown({ ms }: { readonly ms: number }) {
  return (
    <time class="countdown" dateTime={isoText(ms)} title={exactText(ms)}>
      <Due key={ms} ms={ms} />
    </time>
  )
}

function Due({ ms }: { readonly ms: number }) {
  return <>{useComputed(() => dueText(ms, now_ms.value))}</>
}

function isoText(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}
