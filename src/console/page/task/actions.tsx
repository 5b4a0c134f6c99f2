/** What an operator may do to a live task: each act in a dialog that says what will happen. */

import { useSignal } from '@preact/signals'
import type { ShownTask } from '../../server/messages.ts'
import { nodeOptions, useNodes } from '../known-processes.ts'
import { Confirm } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { set } from '../parts/set.ts'
import { say, sayFault } from '../parts/toasts.tsx'
import { call } from '../session.ts'
import { done, idsOf } from './acts.ts'
import { exactText, parseObject } from './exact-json.ts'

interface ActionProps {
  readonly task: ShownTask
  readonly onClose: () => void
}

function named({ ref, obj_id }: ShownTask): string {
  return ref ?? obj_id
}

function place({ node_title, node_id }: ShownTask): string {
  return node_title || node_id
}

export function CallbackDialog({ task, onClose }: ActionProps) {
  const typed = useSignal('{}')
  const is_bound = useSignal(true)
  // It is for the wait that the reader sees, also where the task goes on while he types.
  const node_id = useSignal(task.node_id).peek()
  const read = parseObject(typed.value)
  const mistake = 'mistake' in read ? read.mistake : undefined
  return (
    <Confirm
      title={`Send a callback to ${named(task)}`}
      verb="Send"
      why_not={mistake}
      act={async () => {
        if (!('value' in read)) return
        const bound = is_bound.value ? { node_id, is_sync: true } : {}
        const data_text = exactText(read.value)
        await done(call('modify', { ...idsOf(task), data_text, ...bound }))
        say('The callback was sent.')
      }}
      onClose={onClose}
    >
      <Field
        label="Data, as JSON"
        value={typed}
        lines={8}
        problem={mistake}
        hint="It is merged into the data of the task, which goes on with it."
      />
      <label class="check">
        <input
          type="checkbox"
          checked={is_bound.value}
          onChange={() => set(is_bound, !is_bound.value)}
        />
        Only while it waits for it in this node, so that a late one resumes no later wait
      </label>
      {task.node_id !== node_id && (
        <p class="fault">The task has gone on meanwhile: it is in {place(task)} now.</p>
      )}
    </Confirm>
  )
}

export function RetryDialog({ task, onClose }: ActionProps) {
  const node_id = useSignal('')
  const nodes = useNodes(task.conv_id, sayFault)
  return (
    <Confirm
      title={`Retry ${named(task)}`}
      verb="Retry"
      act={async () => {
        const to = node_id.value === '' ? {} : { node_id: node_id.value }
        await done(call('retry', { ...idsOf(task), ...to }))
        say('The task runs again.')
      }}
      onClose={onClose}
    >
      <p>It runs again with its data as it is now.</p>
      <Field
        label="From node"
        value={node_id}
        options={[['', `${place(task)}, where it failed`], ...nodeOptions(nodes)]}
      />
    </Confirm>
  )
}

export function MoveDialog({ task, onClose }: ActionProps) {
  const node_id = useSignal('')
  const nodes = useNodes(task.conv_id, sayFault)
  return (
    <Confirm
      title={`Move ${named(task)}`}
      verb="Move"
      why_not={node_id.value === '' && 'Choose a node first'}
      act={async () => {
        await done(call('move', { ...idsOf(task), node_id: node_id.value }))
        say('The task was moved.')
      }}
      onClose={onClose}
    >
      <p>It leaves {place(task)} and goes on in the other node. What it waits for is given up.</p>
      <Field
        label="To node"
        value={node_id}
        options={[['', 'choose a node'], ...nodeOptions(nodes)]}
      />
    </Confirm>
  )
}

export function CancelDialog({ task, onClose }: ActionProps) {
  return (
    <Confirm
      title={`Cancel ${named(task)}`}
      verb="Cancel the task"
      is_danger
      act={async () => {
        await done(call('cancel', idsOf(task)))
        say('The task was canceled.')
      }}
      onClose={onClose}
    >
      <p>
        It ends in {place(task)} as canceled and cannot go on any more. Its timer is off
        {task.ref === null ? '.' : ', and its ref is free again.'}
      </p>
    </Confirm>
  )
}
