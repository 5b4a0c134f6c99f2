/** The first view: how the server is, what has failed, and what happens in each process. */
import { useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { Import } from '../import/import.tsx'
import { useFrames } from '../live.ts'
import { Command } from '../parts/button.tsx'
import { ViewTitle } from '../parts/link.tsx'
import { commandLine, may } from '../session.ts'
import { Failed } from './failed.tsx'
import { HealthNotes, HealthTiles, Uptime } from './health.tsx'
import { Processes } from './processes.tsx'
import { newOverviewState } from './state.ts'

export function Overview() {
  const state = useMemo(newOverviewState, [])
  useFrames({ view: 'overview' }, (frame, is_whole) => {
    if (frame.view === 'overview') state.take(frame.overview, is_whole)
  })
  const rows = useComputed(() => state.rows.value ?? [])
  const has_no_task = useComputed(
    () => rows.value.length > 0 && rows.value.every(({ tasks }) => tasks.value === 0),
  )
  const has_come = state.rows.value !== undefined
  return (
    <div class="overview">
      <header class="view-head">
        <ViewTitle window="Overview" />
        <HealthNotes health={state.health} />
        <Uptime health={state.health} />
        {may('administer') && <Import />}
      </header>
      {!has_come && <p class="begin">Reading…</p>}
      <HealthTiles health={state.health} />
      {has_come && rows.value.length === 0 && <Begin commands={from_nothing} />}
      {rows.value.length > 0 && (
        <div class="columns">
          <Processes rows={rows} />
          <Failed failed={state.failed} />
        </div>
      )}
      {has_no_task.value && <Begin commands={from_process(rows.value[0]?.conv_id ?? '')} />}
    </div>
  )
}

type Commands = readonly (readonly [text: string, verb: string])[]

const from_nothing: Commands = [
  ['Import a process, as the editor exports it:', 'process import FILE.json'],
  ['Make a task in it:', `task create CONV_ID --ref first --data '{"amount": 7}'`],
]

function from_process(conv_id: string): Commands {
  return [
    ['Make a task:', `task create ${conv_id} --ref first --data '{"amount": 7}'`],
    ['Let a user make tasks:', `process share ${conv_id} USER`],
  ]
}

function Begin({ commands }: { readonly commands: Commands }) {
  const is_empty = commands === from_nothing
  return (
    <section class="begin-here panel" aria-labelledby="begin-here">
      <h2 id="begin-here">{is_empty ? 'No process is here yet' : 'No task is here yet'}</h2>
      {is_empty && may('administer') && <p>Drop a file of a process here, or do it by hand:</p>}
      <ol>
        {commands.map(([text, verb]) => (
          <li key={verb}>
            {text}
            <Command line={commandLine(verb)} />
          </li>
        ))}
      </ol>
    </section>
  )
}
