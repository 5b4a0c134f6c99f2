/**
 * Failed tasks, the newest first, grouped by process, node and tag. Each group links to its tasks
 * and to the newest of them.
 */

import { type ReadonlySignal, useSignal } from '@preact/signals'
import type { FailedGroup, FailedTasks } from '../../overview/messages.ts'
import { Button } from '../parts/button.tsx'
import { Link } from '../parts/link.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { countText } from '../parts/texts.ts'
import { Count, Time } from '../parts/values.tsx'

const first_groups = 8

export function Failed({ failed }: { readonly failed: ReadonlySignal<FailedTasks | undefined> }) {
  const { total = 0, grouped = 0, groups = [] } = failed.value ?? {}
  const shows_all = useSignal(false)
  const shown = shows_all.value ? groups : groups.slice(0, first_groups)
  return (
    <section class="failed panel" aria-labelledby="failed">
      <header>
        <h2 id="failed">
          Failed tasks <Count of={total} is_bad />
        </h2>
        {total > 0 && (
          <Link to={{ name: 'tasks' }} given={{ status: 'failed' }}>
            all of them
          </Link>
        )}
      </header>
      {failed.value !== undefined && groups.length === 0 && <p class="empty">None.</p>}
      <ul>
        {shown.map((group) => (
          <Group key={`${group.conv_id} ${group.node_id} ${group.tag}`} group={group} />
        ))}
      </ul>
      {groups.length > shown.length && (
        <Button kind="quiet" act={() => set(shows_all, true)}>
          Show {countText(groups.length - shown.length)} more
        </Button>
      )}
      {total > grouped && (
        <p class="rest">The newest {countText(grouped)} are shown by where and why they failed.</p>
      )}
    </section>
  )
}

function Group({ group }: { readonly group: FailedGroup }) {
  const { conv_id, node_id, title, node_title, tag, tasks, newest_ms, newest_obj_id } = group
  return (
    <li>
      <Link to={{ name: 'tasks' }} given={{ conv_id, node_id, status: 'failed' }} class="where">
        <Name of={node_title || node_id} class="failed-node" />
        <Name of={title || conv_id} class="failed-process" />
      </Link>
      <Count of={tasks} label="tasks" is_bad />
      <code>{tag}</code>
      <Link to={{ name: 'task', obj_id: newest_obj_id }} class="newest">
        newest <Time ms={newest_ms} />
      </Link>
    </li>
  )
}
