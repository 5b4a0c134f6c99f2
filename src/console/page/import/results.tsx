/**
 * What an import would do, process by process, with warnings and what is still missing; or the
 * mistakes of a refused file, as a list and above the graph that marks their nodes.
 */

import type { ImportResult, PutResult, WaitsFor } from '../../../engine/api/process-api.ts'
import type { Mistake } from '../../server/messages.ts'
import { Button } from '../parts/button.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { shownText } from '../parts/texts.ts'
import { StatusBadge } from '../parts/values.tsx'
import type { ProcessState } from '../process/state.ts'

const words: Readonly<Record<PutResult['state'], string>> = {
  created: 'is new',
  updated: 'gets a new version',
  unchanged: 'stays as it is',
}

const missing: readonly (readonly [keyof WaitsFor, string])[] = [
  ['handlers', 'handlers that programs register'],
  ['variables', 'variables without a value'],
  ['aliases', 'aliases that are not there'],
  ['processes', 'processes that are not there'],
]

function Warning({ text }: { readonly text: string }) {
  return (
    <li>
      <StatusBadge status="soon" word="warning" /> <bdi>{shownText(text)}</bdi>
    </li>
  )
}

export function WarningList({ warnings }: { readonly warnings: readonly Mistake[] }) {
  return (
    <ul>
      {warnings.map(({ conv_id, text }, at) => (
        <Warning key={at} text={conv_id === undefined ? text : `process ${conv_id}: ${text}`} />
      ))}
    </ul>
  )
}

export function ImportResults({ result }: { readonly result: ImportResult }) {
  const { processes, aliases, variables, skipped } = result
  return (
    <div class="import-results">
      <ul>
        {processes.map(({ conv_id, version, state, warnings, waits_for }) => (
          <li key={conv_id}>
            Process <code>{conv_id}</code> {words[state]}, version {version}.
            <ul>
              {warnings.map((warning) => (
                <Warning key={warning} text={warning} />
              ))}
              {missing.map(
                ([kind, what]) =>
                  waits_for[kind].length > 0 && (
                    <li key={kind}>
                      It waits for {what}: <Name of={waits_for[kind].join(', ')} />
                    </li>
                  ),
              )}
            </ul>
          </li>
        ))}
        {aliases.map(({ name, conv_id, state }) => (
          <li key={name}>
            Alias <code>@{name}</code> of <code>{conv_id}</code>{' '}
            {state === 'unchanged' ? 'stays as it is' : 'is set'}.
          </li>
        ))}
        {variables.map(({ name, state }) => (
          <li key={name}>
            Variable <code>@{name}</code>{' '}
            {state === 'not_stored'
              ? 'is a secret, which no file gives'
              : state === 'unchanged'
                ? 'stays as it is'
                : 'is set'}
            .
          </li>
        ))}
        {skipped.map((name) => (
          <li key={name}>
            <Name of={name} /> is skipped: it holds nothing of an export.
          </li>
        ))}
      </ul>
    </div>
  )
}

interface MistakeListProps {
  readonly mistakes: readonly Mistake[]
  readonly onOpen: ((node_id: string) => void) | undefined
}

export function MistakeList({ mistakes, onOpen }: MistakeListProps) {
  return (
    <>
      <p class="fault" role="alert">
        {mistakes.length === 1 ? 'One mistake' : `${mistakes.length} mistakes`}; nothing is stored.
      </p>
      <ul class="mistakes">
        {mistakes.map(({ text, node_id, node_title }, at) => (
          <li key={at}>
            {node_id !== undefined && onOpen && (
              <button type="button" class="link" onClick={() => onOpen(node_id)}>
                <Name of={node_title || node_id} />
              </button>
            )}{' '}
            <bdi>{shownText(text)}</bdi>
          </li>
        ))}
      </ul>
    </>
  )
}

export function Mistakes({ state }: { readonly state: ProcessState }) {
  const { mistakes, in_sight } = state
  if (mistakes.value.length === 0) return null
  return (
    <section class="panel mistakes-panel" aria-label="Mistakes of the file">
      <MistakeList
        mistakes={mistakes.value}
        onOpen={(node_id) => {
          in_sight.value = undefined
          in_sight.value = node_id
        }}
      />
      <Button act={() => set(mistakes, [])}>Close</Button>
    </section>
  )
}
