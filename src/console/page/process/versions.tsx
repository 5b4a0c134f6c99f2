/**
 * Two versions of a process side by side: what was added, removed and changed is marked in both
 * graphs by a colour and a sign, with the lines that differ below.
 */

import { useSignal } from '@preact/signals'
import { useEffect, useId } from 'preact/hooks'
import type { NodeChange, ProcessPage, VersionChanges } from '../../server/messages.ts'
import { Graph } from '../graph/graph.tsx'
import type { Mark } from '../graph/node.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { FaultText } from '../parts/toasts.tsx'
import { call } from '../session.ts'

interface VersionsProps {
  readonly page: ProcessPage
  readonly onClose: () => void
}

export function Versions({ page: { row, version, versions }, onClose }: VersionsProps) {
  const older = versions.filter((one) => one < version)
  const from = useSignal(Math.max(...older, versions.at(-1) ?? 1))
  const to = useSignal(version === from.peek() ? row.version : version)
  const changes = useSignal<VersionChanges | undefined>(undefined)
  const fault = useSignal<unknown>(undefined)
  useEffect(() => {
    let is_overtaken = false
    const { conv_id } = row
    call('versions', { conv_id, from: from.value, to: to.value }).then(
      (answer) => {
        if (is_overtaken) return
        changes.value = answer
        fault.value = undefined
      },
      (error) => {
        if (!is_overtaken) fault.value = error
      },
    )
    return () => {
      is_overtaken = true
    }
  }, [from.value, to.value])
  return (
    <Dialog title="Two versions" onClose={onClose} is_wide>
      <div class="versions">
        <div class="versions-bar">
          <VersionChoice
            label="From"
            versions={versions}
            value={from.value}
            onChange={(one) => set(from, one)}
          />
          <VersionChoice
            label="To"
            versions={versions}
            value={to.value}
            onChange={(one) => set(to, one)}
          />
        </div>
        <FaultText fault={fault.value} />
        {changes.value === undefined && fault.value === undefined && <p>Comparing…</p>}
        {changes.value && <Changes changes={changes.value} from={from.value} to={to.value} />}
      </div>
    </Dialog>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly versions: readonly number[]
  readonly value: number
  readonly onChange: (version: number) => void
  /** The version in use, if that is marked. */
  readonly used?: number
}

export function VersionChoice({ label, versions, value, onChange, used }: ChoiceProps) {
  const id = useId()
  return (
    <>
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={({ currentTarget }) => onChange(Number(currentTarget.value))}
      >
        {versions.map((one) => (
          <option key={one} value={one}>
            {one === used ? `${one}, in use` : one}
          </option>
        ))}
      </select>
    </>
  )
}

/** A node that was only moved in the editor is listed below, and not marked. */
const marks: Readonly<Record<NodeChange['change'], Mark | undefined>> = {
  added: { kind: 'added', sign: '+', says: 'added' },
  removed: { kind: 'removed', sign: '−', says: 'removed' },
  changed: { kind: 'changed', sign: '≠', says: 'changed' },
  moved_only: undefined,
}

function Changes({ changes, from, to }: { changes: VersionChanges; from: number; to: number }) {
  const id = useId()
  const { nodes, lines } = changes
  const marked = new Map(
    nodes.flatMap(({ node_id, change }) => {
      const mark = marks[change]
      return mark === undefined ? [] : [[node_id, mark]]
    }),
  )
  const show = (node_id: string) => {
    const at = nodes.findIndex((node) => node.node_id === node_id)
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: 'nearest' })
    document.getElementById(`${id}-${at}`)?.focus()
  }
  return (
    <>
      <p role="status">{summaryOf(changes)}</p>
      <div class="versions-graphs">
        {(['from', 'to'] as const).map((side) => {
          const name = `Version ${side === 'from' ? from : to}`
          return (
            <figure key={side}>
              <figcaption>{name}</figcaption>
              <Graph name={name} drawing={changes[side]} marks={marked} onOpen={show} />
            </figure>
          )
        })}
      </div>
      {nodes.map(({ node_id, title, change, lines: own }, at) => (
        <section key={node_id} id={`${id}-${at}`} tabIndex={-1} class={`change ${change}`}>
          <h3>
            {marks[change] && <span class="change-sign">{marks[change].sign}</span>}{' '}
            <Name of={title || node_id} />{' '}
            <span class="quiet-text">{change === 'moved_only' ? 'only moved' : change}</span>
          </h3>
          <Lines lines={own} />
        </section>
      ))}
      {lines.length > 0 && (
        <section class="change changed">
          <h3>Beside the nodes</h3>
          <Lines lines={lines} />
        </section>
      )}
    </>
  )
}

function Lines({ lines }: { readonly lines: readonly string[] }) {
  if (lines.length === 0) return null
  return (
    <pre class="changed-lines">
      {lines.map((line, at) =>
        line.startsWith('+') ? (
          <ins key={at}>{line}</ins>
        ) : line.startsWith('-') ? (
          <del key={at}>{line}</del>
        ) : (
          <span key={at}>{line}</span>
        ),
      )}
    </pre>
  )
}

function summaryOf({ nodes, lines }: VersionChanges): string {
  const words = (['added', 'removed', 'changed', 'moved_only'] as const).flatMap((change) => {
    const count = nodes.filter((node) => node.change === change).length
    return count === 0 ? [] : [`${count} ${change === 'moved_only' ? 'only moved' : change}`]
  })
  const more = lines.length > 0 ? ['other lines differ'] : []
  return words.length + more.length === 0
    ? 'These versions do not differ.'
    : `Nodes: ${[...words, ...more].join(', ')}.`
}
