/**
 * A node of a graph as a box: its title in at most two lines, what it does, and the badges of what
 * is in it now. Titles come from definitions: text of any length and direction.
 */
import { type ReadonlySignal, useComputed } from '@preact/signals'
import type { Box } from '../../diagram/drawing.ts'
import { nameText } from '../parts/name.tsx'
import { shownText } from '../parts/texts.ts'
import { type Counts, inWords } from './counts.ts'

/** How a node is marked beside its counts; never by colour alone. */
export interface Mark {
  readonly kind: 'added' | 'removed' | 'changed' | 'wrong' | 'passed' | 'present'
  readonly sign: string
  /** What the sign means, for screen readers. */
  readonly says: string
}

interface NodeProps {
  readonly box: Box
  readonly counts: ReadonlySignal<Counts> | undefined
  readonly mark: Mark | undefined
  readonly is_far: ReadonlySignal<boolean>
  readonly opened: ReadonlySignal<string | undefined> | undefined
  onOpen(node_id: string): void
}

export function Node({ box, counts, mark, is_far, opened, onOpen }: NodeProps) {
  const { node_id, title, kind, does, x, y, width, height } = box
  const is_open = useComputed(() => opened?.value === node_id)
  const now = counts?.value
  const name = title === '' ? node_id : title
  const words = [now && inWords(now), mark?.says].filter((part) => part).join(', ')
  const failed = now?.by_status.failed ? ' failed' : ''
  const busy = now && (now.by_status.delayed || now.by_status.processing) ? ' busy' : ''
  return (
    <button
      type="button"
      class={`node ${kind}${busy}${failed}${mark ? ` ${mark.kind}` : ''}`}
      style={{ left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` }}
      data-node={node_id}
      aria-label={is_far.value ? [nameText(name), words].filter(Boolean).join(', ') : undefined}
      aria-pressed={opened && is_open}
      title={name.length > 24 ? shownText(name.slice(0, 500)) : undefined}
      onClick={() => onOpen(node_id)}
    >
      {!is_far.value && (
        <>
          <span class="node-title" dir="auto">
            {nameText(name)}
          </span>
          {does !== '' && <span class="node-does">{does}</span>}
          {now && <Badges counts={now} />}
          {mark && mark.sign !== '' && (
            <span class="node-sign" aria-hidden="true">
              {mark.sign}
            </span>
          )}
          {words !== '' && <span class="unseen">{words}</span>}
        </>
      )}
    </button>
  )
}

function Badges({ counts: { by_status, due_soon } }: { readonly counts: Counts }) {
  const { failed = 0, delayed = 0, processing = 0, processed = 0, canceled = 0 } = by_status
  const live = delayed + processing
  const ended = processed + canceled
  if (live + ended + failed + due_soon === 0) return null
  return (
    <span class="node-badges" aria-hidden="true">
      {due_soon > 0 && <span class="node-badge due">◷ {short(due_soon)}</span>}
      {failed > 0 && <span class="node-badge bad">✕ {short(failed)}</span>}
      {live > 0 && <span class="node-badge live">{short(live)}</span>}
      {ended > 0 && (
        <span class={`node-badge ${processed > 0 ? 'good' : 'ended'}`}>✓ {short(ended)}</span>
      )}
    </span>
  )
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

const short = (count: number): string => (count < 10_000 ? String(count) : compact.format(count))
