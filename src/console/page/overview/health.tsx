/** The health of the server: whether all is well and what helps, and a tile for each part. */
import { type ReadonlySignal, useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { Health } from '../../overview/messages.ts'
import { durationText, rateText } from '../parts/texts.ts'
import { now_ms, StatusBadge } from '../parts/values.tsx'
import { healthRows } from './health-rows.ts'

interface HealthProps {
  readonly health: ReadonlySignal<Health | undefined>
}

/** What is not fine and what helps; read out when it changes, which is seldom. */
export function HealthNotes({ health }: HealthProps) {
  const troubled = useComputed(() => {
    if (health.value === undefined) return undefined
    return healthRows(health.value, now_ms.value).filter(({ state }) => state !== 'fine')
  })
  // By text, because each frame makes other rows of the same.
  const text = useComputed(() => JSON.stringify(troubled.value))
  return useMemo(
    () => (
      <div class="health-notes" role="status">
        {troubled.value?.length === 0 && <StatusBadge status="fine" word="the server is well" />}
        {troubled.value?.map(({ name, state, word, helps = '' }) => (
          <p key={name} class={state}>
            <StatusBadge status={state} word={`${name}: ${word ?? state}`} /> {withCode(helps)}
          </p>
        ))}
      </div>
    ),
    [text.value],
  )
}

function withCode(text: string) {
  return text.split('`').map((part, at) => (at % 2 === 1 ? <code key={part}>{part}</code> : part))
}

export function Uptime({ health }: HealthProps) {
  const text = useComputed(() => {
    if (health.value === undefined) return ''
    const { ops_per_s, uptime_s, version } = health.value
    return `${rateText(ops_per_s)} ops/s · up ${durationText(uptime_s * 1000)} · ${version}`
  })
  return <p class="quiet-text">{text}</p>
}

export function HealthTiles({ health }: HealthProps) {
  const { value } = health
  if (value === undefined) return null
  return (
    <section class="health" aria-labelledby="health">
      <h2 id="health" class="unseen">
        Health of the server
      </h2>
      <dl class="panel">
        {healthRows(value, now_ms.value).map(({ name, state, word, figure }) => (
          <div key={name} class={state}>
            <dt>
              {name} <StatusBadge status={state} {...(word !== undefined && { word })} />
            </dt>
            <dd>{figure}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
