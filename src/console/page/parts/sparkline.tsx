/** A row of numbers as a small line, with the same in words for who does not see it. */
import { type ReadonlySignal, useComputed } from '@preact/signals'

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
