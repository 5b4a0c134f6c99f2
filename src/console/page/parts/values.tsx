/**
 * Counts, rows of counts, statuses and times as all views show them; a signal that changes redraws
 * its own text only. All times follow one clock, which ticks each second while the page is visible.
 * It is the clock of the server, set by every frame, so countdowns are right where the reader's
 * clock is wrong.
 */
import { type ReadonlySignal, signal, useComputed } from '@preact/signals'
import type { Status } from '../../../core/model.ts'
import type { ProcessRow } from '../../overview/messages.ts'
import { agoText, countText, dueText, exactText, status_words } from './texts.ts'

/** The time of this machine: it goes on evenly, whatever is done to its clock. */
const own_ms = () => performance.timeOrigin + performance.now()

let ahead_ms = 0

/** Milliseconds since 1970 at the server, as of the last tick. */
export const now_ms = signal(own_ms())

/** With `at_ms` of a frame. Differences below a second are the way of the frame. */
export function setServerTime(at_ms: number): void {
  const new_ahead_ms = at_ms - own_ms()
  if (Math.abs(new_ahead_ms - ahead_ms) < 1_000) return
  ahead_ms = new_ahead_ms
  tick()
}

function tick(): void {
  now_ms.value = own_ms() + ahead_ms
}

setInterval(() => document.hidden || tick(), 1_000)
document.addEventListener('visibilitychange', () => document.hidden || tick())

interface CountProps {
  readonly of: number | ReadonlySignal<number>
  /** What the number is of, where no heading of a column says it. */
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

const width = 96
const height = 22

interface SparklineProps {
  readonly of: ReadonlySignal<readonly number[]>
  /** Of the numbers, such as `12 done a minute now, 30 at most`. */
  readonly text: (values: readonly number[]) => string
}

export function Sparkline({ of, text }: SparklineProps) {
  const line = useComputed(() => pathOfValues(of.value))
  const words = useComputed(() => text(of.value))
  return (
    <svg
      class="sparkline"
      role="img"
      aria-label={words}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      preserveAspectRatio="none"
    >
      <path d={line} />
    </svg>
  )
}

/** An area over the base line, whose sides lie outside; empty where nothing happened. */
function pathOfValues(values: readonly number[]): string {
  const most = Math.max(...values, 0)
  if (most === 0 || values.length < 2) return ''
  const step = width / (values.length - 1)
  const heights = values.map((value) => (height - 1 - (value / most) * (height - 3)).toFixed(1))
  const points = heights.map((y, at) => `${(at * step).toFixed(1)} ${y}`)
  const [first, last, below] = [heights[0], heights.at(-1), height + 2]
  return `M-3 ${below}V${first}L${points.join('L')}L${width + 3} ${last}V${below}Z`
}

type Badge = Status | ProcessRow['status'] | 'fine' | 'wrong' | 'soon'

const looks: Readonly<Record<Badge, 'good' | 'warn' | 'bad' | 'live' | 'quiet'>> = {
  processing: 'live',
  delayed: 'live',
  failed: 'bad',
  processed: 'good',
  canceled: 'quiet',
  active: 'good',
  paused: 'warn',
  draft: 'quiet',
  fine: 'good',
  wrong: 'bad',
  soon: 'warn',
}

const words: Readonly<Record<string, string>> = status_words

/** `word` where another one says it better. */
export function StatusBadge({ status, word }: { readonly status: Badge; readonly word?: string }) {
  return <span class={`badge ${looks[status]}`}>{word ?? words[status] ?? status}</span>
}

export function Time({ ms, as = 'relative' }: { ms: number; as?: 'relative' | 'exact' | 'both' }) {
  const exact = exactText(ms)
  return (
    <time dateTime={isoText(ms)} title={exact}>
      {as === 'relative' ? '' : exact}
      {as === 'both' ? ', ' : ''}
      {as === 'exact' ? '' : <Ago key={ms} ms={ms} />}
    </time>
  )
}

const Ago = ({ ms }: { readonly ms: number }) => <>{useComputed(() => agoText(ms, now_ms.value))}</>

export function Countdown({ ms }: { readonly ms: number }) {
  return (
    <time class="countdown" dateTime={isoText(ms)} title={exactText(ms)}>
      <Due key={ms} ms={ms} />
    </time>
  )
}

const Due = ({ ms }: { readonly ms: number }) => <>{useComputed(() => dueText(ms, now_ms.value))}</>

function isoText(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}
