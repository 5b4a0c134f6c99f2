/** What happened to a task, the last first: when, why, in which node, by whom, for how long. */

import { useComputed, useSignal } from '@preact/signals'
import type { ShownTask } from '../../server/messages.ts'
import { Button } from '../parts/button.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { countText, exactText } from '../parts/texts.ts'
import { now_ms } from '../parts/values.tsx'
import { type Happening, happenings, stayText } from './words.ts'

const shown_at_first = 20

export function TaskHistory({ task: { history = [], status } }: { readonly task: ShownTask }) {
  const is_whole = useSignal(false)
  const all = happenings(history, status).reverse()
  const shown = is_whole.value ? all : all.slice(0, shown_at_first)
  const hidden = all.length - shown.length
  return (
    <section class="task-history panel" aria-labelledby="history-title">
      <h2 id="history-title">History</h2>
      {all.length === 0 && <p class="quiet-text">None is kept of this task.</p>}
      <ol>
        {shown.map((one, at) => (
          <Entry key={all.length - at} happening={one} />
        ))}
      </ol>
      {hidden > 0 && (
        <Button kind="quiet" act={() => set(is_whole, true)}>
          {countText(hidden)} earlier …
        </Button>
      )}
    </section>
  )
}

function Entry({ happening }: { readonly happening: Happening }) {
  const { at_ms, why, says, node_title, node_id, by, tag, stayed_ms } = happening
  const look = why === 'fail' ? 'bad' : happening.has_moved ? 'moved' : ''
  return (
    <li class={look}>
      <time dateTime={new Date(at_ms).toISOString()}>{exactText(at_ms)}</time>
      <div>
        <strong>
          <Name of={node_title || node_id} />
        </strong>{' '}
        <span class="quiet-text">
          {says}
          {by !== undefined && (
            <>
              {' by '}
              <Name of={by} />
            </>
          )}
        </span>
        {tag !== undefined && <code class="tag">{tag}</code>}
      </div>
      <div class="stay">
        {happening.is_end && 'the end'}
        {stayed_ms !== undefined && stayText(stayed_ms)}
        {happening.is_present && <Staying since_ms={at_ms} />}
      </div>
    </li>
  )
}

function Staying({ since_ms }: { readonly since_ms: number }) {
  return <>for {useComputed(() => stayText(Math.max(0, now_ms.value - since_ms)))}</>
}
