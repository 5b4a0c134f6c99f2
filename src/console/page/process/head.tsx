/**
 * The head of a process: its title, status, number of tasks, and the actions on all of it. Actions
 * beyond the right of the session are not shown.
 */

import { useComputed, useSignal } from '@preact/signals'
import type { ProcessPage } from '../../server/messages.ts'
import { totalsOf } from '../graph/counts.ts'
import { Import } from '../import/import.tsx'
import { Button } from '../parts/button.tsx'
import { Confirm } from '../parts/dialog.tsx'
import { Link, ViewTitle } from '../parts/link.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { status_words, statuses } from '../parts/texts.ts'
import { say } from '../parts/toasts.tsx'
import { Count, StatusBadge } from '../parts/values.tsx'
import { base } from '../place.ts'
import { call, may } from '../session.ts'
import type { ProcessState } from './state.ts'
import { VersionChoice, Versions } from './versions.tsx'

interface HeadProps {
  readonly state: ProcessState
  readonly page: ProcessPage
}

export function ProcessHead({ state, page }: HeadProps) {
  const { row, aliases } = page
  const status = state.status.value ?? row.status
  return (
    <header class="process-head">
      <div class="process-name">
        <ViewTitle window={row.title || row.conv_id}>
          <Name of={row.title || row.conv_id} />
        </ViewTitle>
        <StatusBadge status={status} />
        <code>{row.conv_id}</code>
        {aliases.map((name) => (
          <code key={name} title="An alias: definitions may name the process by it">
            @{name}
          </code>
        ))}
      </div>
      <Totals state={state} />
      <Bar state={state} page={page} />
    </header>
  )
}

function Totals({ state: { conv_id, counts } }: { readonly state: ProcessState }) {
  const totals = useComputed(() => totalsOf(counts.last.value))
  return (
    <ul class="totals" aria-label="Tasks by status">
      {statuses.map((status) => (
        <li key={status}>
          <Link to={{ name: 'tasks' }} given={{ conv_id, status }}>
            <Count of={totals.value[status] ?? 0} is_bad={status === 'failed'} />{' '}
            {status_words[status]}
          </Link>
        </li>
      ))}
    </ul>
  )
}

function Bar({ state, page }: HeadProps) {
  const { conv_id } = state
  const { row, version, versions, drawing } = page
  const { laid_out } = state.shown.value
  const compares = useSignal(false)
  const can_turn = drawing.places === 'drawn' || laid_out === true
  return (
    <div class="process-bar">
      <VersionChoice
        label="Version"
        versions={versions}
        value={version}
        used={row.version}
        onChange={(wanted) => {
          const shown = wanted === row.version ? {} : { version: wanted }
          void state.show({ ...shown, ...(laid_out ? { laid_out } : {}) })
        }}
      />
      {versions.length > 1 && <Button act={() => set(compares, true)}>Compare…</Button>}
      {can_turn && (
        <Button
          is_pressed={laid_out === true}
          title="Lay the nodes out automatically, or as their author placed them"
          act={() => {
            const { laid_out: _before, ...shown } = state.shown.value
            return state.show(laid_out ? shown : { ...shown, laid_out: true })
          }}
        >
          Auto layout
        </Button>
      )}
      <Export page={page} />
      {may('administer') && <Import state={state} />}
      {may('administer') && <PauseButton state={state} title={row.title || conv_id} />}
      {compares.value && <Versions page={page} onClose={() => set(compares, false)} />}
    </div>
  )
}

/** The version in use is a file of the server; an older one is made into a file here. */
function Export({ page: { definition_text, row, version } }: Pick<HeadProps, 'page'>) {
  if (version === row.version) {
    const query = new URLSearchParams({ conv_id: row.conv_id })
    return (
      <a class="button" href={`${base}/export?${query}`} download>
        Export
      </a>
    )
  }
  const act = () => {
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([definition_text], { type: 'application/json' }))
    link.download = `process-${row.conv_id.replaceAll(/[^\w.-]/g, '_')}-${version}.json`
    link.click()
    URL.revokeObjectURL(link.href)
  }
  return <Button act={act}>Export</Button>
}

function PauseButton({ state, title }: { readonly state: ProcessState; readonly title: string }) {
  const { conv_id } = state
  const asks = useSignal(false)
  const is_paused = state.status.value === 'paused'
  if (state.status.value === 'draft') return null
  const act = async () => {
    await call(is_paused ? 'resume' : 'pause', { conv_id })
    say(is_paused ? 'The process goes on.' : 'The process is paused.')
    await state.show(state.shown.value)
  }
  return (
    <>
      <Button act={() => set(asks, true)}>{is_paused ? 'Resume…' : 'Pause…'}</Button>
      {asks.value && (
        <Confirm
          title={is_paused ? 'Resume the process?' : 'Pause the process?'}
          verb={is_paused ? 'Resume' : 'Pause'}
          is_danger={!is_paused}
          act={act}
          onClose={() => set(asks, false)}
        >
          <p>
            <Name of={title} />{' '}
            {is_paused
              ? 'takes tasks and callbacks again; timers that came due meanwhile fire at once.'
              : 'takes no new tasks and no callbacks until it is resumed; its timers wait.'}
          </p>
        </Confirm>
      )}
    </>
  )
}
