/** The first view: how the server is, what has failed, and what happens in each process. */
import { useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { useFrames } from '../live.ts'
import { Failed } from '../overview/failed.tsx'
import { HealthNotes, HealthTiles, Uptime } from '../overview/health.tsx'
import { Processes } from '../overview/processes.tsx'
import { newOverviewState } from '../overview/state.ts'
import { CopyButton } from '../parts/copy-button.tsx'
import { ViewTitle } from '../parts/view-title.tsx'

export function Overview() {
  const state = useMemo(newOverviewState, [])
  useFrames({ view: 'overview' }, (frame, is_whole) => {
    if (frame.view === 'overview') state.take(frame.overview, is_whole)
  })
  const rows = useComputed(() => state.rows.value ?? [])
  const has_come = state.rows.value !== undefined
  return (
    <div class="overview">
      <header class="view-head">
        <ViewTitle window="Overview" />
        <Uptime health={state.health} />
      </header>
      <HealthNotes health={state.health} />
      {!has_come && <p class="begin">Reading…</p>}
      <HealthTiles health={state.health} />
      {has_come && rows.value.length === 0 && <Empty />}
      {rows.value.length > 0 && (
        <div class="columns">
          <Processes rows={rows} />
          <Failed failed={state.failed} />
        </div>
      )}
    </div>
  )
}

const commands = [
  ['Import a process, as the editor exports it:', 'conveyor process import FILE.json'],
  ['Let a user use it:', 'conveyor process share CONV_ID USER'],
  ['Make a task:', `conveyor task create CONV_ID --ref first --data '{"amount": 7}'`],
] as const

function Empty() {
  return (
    <section class="empty-engine panel" aria-labelledby="empty">
      <h2 id="empty">Nothing is here yet</h2>
      <ol>
        {commands.map(([text, command]) => (
          <li key={command}>
            {text}
            <p class="command">
              <code>{command}</code> <CopyButton text={command} what="the command" />
            </p>
          </li>
        ))}
      </ol>
    </section>
  )
}
