/**
 * The data of a task: to read as a tree or as JSON, to search, copy and change. While it is being
 * changed the task may go on; what the reader has typed stays, and the page shows what differs.
 */

import { useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import type { ShownTask } from '../../server/messages.ts'
import { Button, CopyButton } from '../parts/button.tsx'
import { Confirm } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { set } from '../parts/set.ts'
import { shownText } from '../parts/texts.ts'
import { say } from '../parts/toasts.tsx'
import { call } from '../session.ts'
import { done, idsOf } from './actions.tsx'
import {
  type Changes,
  changesOf,
  differing,
  listed,
  type Path,
  withValueAt,
} from './data-changes.ts'
import { DataTree } from './data-tree.tsx'
import { type Exact, type ExactObject, indentedText, parseObject } from './exact-json.ts'

interface TaskDataProps {
  readonly task: ShownTask
  /** Absent where it cannot be changed, with the reason. */
  readonly why_not: string | undefined
}

interface Draft {
  /** The data as it was when the reader began. */
  readonly before: ExactObject
  readonly after: ExactObject
}

const searched_chars_min = 400
const empty: ExactObject = new Map()

export function TaskData({ task, why_not }: TaskDataProps) {
  const { data_text } = task
  const now = useMemo(() => dataOf(data_text), [data_text])
  const draft = useSignal<Draft | undefined>(undefined)
  const form = useSignal<'tree' | 'json'>('tree')
  const search = useSignal('')
  /** What is typed as JSON, where that has a mistake or is not taken over yet. */
  const typed = useSignal('')
  const is_sending = useSignal(false)
  const box = useRef<HTMLDivElement>(null)
  const { value: own } = draft
  const data = own?.after ?? now
  const as_json = form.value === 'json'
  const read = own !== undefined && as_json ? parseObject(typed.value) : { value: data }
  const changes = own && 'value' in read ? changesOf(own.before, read.value, now) : undefined
  const begin = () => {
    draft.value = { before: now, after: now }
    typed.value = indentedText(now)
    search.value = ''
  }
  const end = () => set(draft, undefined)
  const put = (path: Path, value: Exact | undefined) => {
    if (own === undefined) return
    draft.value = { ...own, after: withValueAt(own.after, path, value) as ExactObject }
  }
  const turn = (to: 'tree' | 'json') => {
    if (own !== undefined && 'value' in read) {
      draft.value = { ...own, after: read.value }
      typed.value = indentedText(read.value)
    }
    form.value = to
  }
  const mistake = 'mistake' in read ? read.mistake : undefined
  return (
    <section class="task-data panel" aria-labelledby="data-title">
      <header>
        <h2 id="data-title">Data</h2>
        <Button
          kind="quiet"
          is_pressed={!as_json}
          act={() => turn('tree')}
          why_not={mistake && 'Fix the JSON first'}
        >
          Tree
        </Button>
        <Button kind="quiet" is_pressed={as_json} act={() => turn('json')}>
          JSON
        </Button>
        <CopyButton text={indentedText(data)} what="of the data">
          Copy JSON
        </CopyButton>
        {own === undefined && (
          <Button act={begin} why_not={why_not}>
            Change …
          </Button>
        )}
      </header>
      {!as_json && own === undefined && data_text.length > searched_chars_min && (
        <Field label="Search in the data" type="search" value={search} />
      )}
      {as_json && own !== undefined ? (
        <div ref={box}>
          <Field label="Data as JSON" value={typed} lines={16} problem={mistake} />
          {'at' in read && (
            <Button
              kind="quiet"
              act={() => showAt(box.current?.querySelector('textarea'), read.at)}
            >
              Show me where
            </Button>
          )}
        </div>
      ) : as_json ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys
        <pre class="json" tabIndex={0}>
          <bdi>{shownText(indentedText(data))}</bdi>
        </pre>
      ) : (
        <DataTree
          data={data}
          search={search.value}
          edit={own && { put, changed: new Set(changes?.names) }}
        />
      )}
      {own !== undefined && (
        <div class="changes">
          <Meanwhile before={own.before} now={now} changes={changes} />
          {changes?.problems.map((problem) => (
            <p key={problem} class="fault">
              {problem}
            </p>
          ))}
          <div class="changes-bar">
            <span role="status">
              {changes === undefined
                ? 'The JSON has a mistake.'
                : changes.names.length === 0
                  ? 'Nothing is changed yet.'
                  : `Changed: ${listed(changes.names)}`}
            </span>
            <Button act={end}>Discard</Button>
            <Button
              kind="main"
              act={() => set(is_sending, true)}
              why_not={whyNotSend(changes) ?? why_not}
            >
              Send changes …
            </Button>
          </div>
        </div>
      )}
      {is_sending.value && changes !== undefined && (
        <Confirm
          title="Send changes"
          verb={
            changes.names.length === 1 ? 'Update 1 field' : `Update ${changes.names.length} fields`
          }
          act={async () => {
            await done(call('modify', { ...idsOf(task), data_text: changes.text }))
            say('The data was changed.')
            end()
          }}
          onClose={() => set(is_sending, false)}
        >
          <p>{sendText(task)}</p>
          {changes.overwrites.length > 0 && (
            <p class="fault">
              This overwrites what was changed meanwhile: {listed(changes.overwrites)}.
            </p>
          )}
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys */}
          <pre class="json" tabIndex={0}>
            <bdi>{shownText(indented(changes.text))}</bdi>
          </pre>
        </Confirm>
      )}
    </section>
  )
}

function showAt(area: HTMLTextAreaElement | null | undefined, at: number): void {
  area?.blur()
  area?.setSelectionRange(at, at + 1)
  area?.focus()
}

function dataOf(text: string): ExactObject {
  const read = parseObject(text)
  return 'value' in read ? read.value : empty
}

export const indented = (text: string): string => indentedText(dataOf(text))

function sendText({ status, wait, node_title, node_id }: ShownTask): string {
  if (wait?.for === 'callback') {
    return `It waits for a callback in ${node_title ?? node_id}: this data is one, so it goes on.`
  }
  if (status === 'failed') return 'The data is merged. The task stays failed until it is retried.'
  return 'The data is merged. The task goes on waiting for what it waits for.'
}

function whyNotSend(changes: Changes | undefined): string | undefined {
  if (changes === undefined) return 'Fix the JSON first'
  if (changes.problems.length > 0) return changes.problems[0]
  return changes.names.length === 0 ? 'Nothing is changed yet' : undefined
}

interface MeanwhileProps {
  readonly before: ExactObject
  readonly now: ExactObject
  readonly changes: Changes | undefined
}

function Meanwhile({ before, now, changes }: MeanwhileProps) {
  const names = useMemo(() => differing(before, now), [before, now])
  if (names.length === 0) return null
  const overwrites = changes?.overwrites ?? []
  return (
    <p class="meanwhile" role="status">
      The task has got other data meanwhile: {listed(names)}.
      {overwrites.length > 0
        ? ` You have changed ${listed(overwrites)} too: sending overwrites that.`
        : ' What you send leaves that as it is.'}
    </p>
  )
}
