/**
 * The search of the header: tasks by ref, by id or by the beginning of a ref. The server is asked
 * once typing pauses; answers to earlier texts are dropped.
 */

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { TaskRow } from '../../server/messages.ts'
import { useKeys } from '../parts/keys.ts'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { FaultText } from '../parts/toasts.tsx'
import { StatusBadge, Time } from '../parts/values.tsx'
import { go } from '../place.ts'
import { call } from '../session.ts'

const pause_ms = 150

type Found = { readonly text: string } & (
  | { readonly rows: readonly TaskRow[] }
  | { readonly fault: unknown }
)

export function Find() {
  const input = useRef<HTMLInputElement>(null)
  const text = useSignal('')
  const found = useSignal<Found | undefined>(undefined)
  const chosen = useSignal(0)
  const is_open = useSignal(false)
  useKeys([{ key: '/', does: 'find a task', act: () => input.current?.focus() }])

  const asked = text.value.trim()
  useEffect(() => {
    found.value = undefined
    chosen.value = 0
    if (asked === '') return
    const answer = (value: Found) => {
      if (text.value.trim() === value.text) found.value = value
    }
    const ask = () =>
      call('find', { text: asked }).then(
        ({ rows }) => answer({ text: asked, rows }),
        (fault) => answer({ text: asked, fault }),
      )
    const timer = setTimeout(ask, pause_ms)
    return () => clearTimeout(timer)
  }, [asked])

  const rows = found.value !== undefined && 'rows' in found.value ? found.value.rows : []
  const open = ({ obj_id }: TaskRow) => {
    text.value = ''
    is_open.value = false
    go({ name: 'task', obj_id })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    const row = rows[chosen.value]
    if (step !== 0 && rows.length > 0) {
      chosen.value = (chosen.value + step + rows.length) % rows.length
    } else if (event.key === 'Enter' && row !== undefined) open(row)
    else if (event.key === 'Escape') text.value = ''
    else return
    event.preventDefault()
  }
  const is_shown = is_open.value && asked !== ''
  return (
    // biome-ignore lint/a11y/useSemanticElements: browsers of a year ago do not know <search>
    <div class="find" role="search">
      <input
        ref={input}
        type="search"
        // biome-ignore lint/a11y/noRedundantRoles: without a list of the browser it is a searchbox
        role="combobox"
        list={undefined}
        aria-label="Find a task by ref or id"
        aria-expanded={is_shown && rows.length > 0}
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant={is_shown && rows.length > 0 ? `found-${chosen.value}` : undefined}
        placeholder="Find a task: ref or id   ( / )"
        autocomplete="off"
        spellcheck={false}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value
          is_open.value = true
        }}
        onFocus={() => set(is_open, true)}
        onBlur={() => set(is_open, false)}
        onKeyDown={onKeyDown}
      />
      <div class="found" hidden={!is_shown}>
        <div id="found" role="listbox" aria-label="Tasks found">
          {rows.map((row, at) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: its keys are those of the input
            <div
              key={row.obj_id}
              id={`found-${at}`}
              role="option"
              tabIndex={-1}
              aria-selected={at === chosen.value}
              // The input keeps the focus, so that the list stays open for the click.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => open(row)}
            >
              <Name of={row.ref || row.obj_id} class="ref" />
              <StatusBadge status={row.status} />
              <span class="where">
                <Name of={row.node_title ?? row.node_id} />, <Time ms={row.change_time_ms} />
              </span>
            </div>
          ))}
        </div>
        <div class="of-found" aria-live="polite">
          {found.value === undefined ? (
            'Looking…'
          ) : 'fault' in found.value ? (
            <FaultText fault={found.value.fault} />
          ) : rows.length === 0 ? (
            'No task has this ref or id.'
          ) : (
            <span class="unseen">{rows.length} found</span>
          )}
        </div>
      </div>
    </div>
  )
}
