/**
 * What an operator does to one task: each act has a dialog that says what it will do. A refused act
 * is thrown, with its code and its sentence. Also a call of the task as a command to copy.
 */
import { useSignal } from '@preact/signals'
import type { ActionOutcome, NamedTask, Settled, ShownTask } from '../../server/messages.ts'
import { nodeOptions, useNodes } from '../known-processes.ts'
import { CopyButton } from '../parts/button.tsx'
import { Confirm, Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { set } from '../parts/set.ts'
import { shownText } from '../parts/texts.ts'
import { say, sayFault } from '../parts/toasts.tsx'
import { call, session } from '../session.ts'
import { commandsOf } from './commands.ts'
import { exactText, parseObject } from './exact-json.ts'

interface ActionProps {
  readonly task: ShownTask
  readonly onClose: () => void
}

const named = ({ ref, obj_id }: ShownTask): string => ref ?? obj_id

const place = ({ node_title, node_id }: ShownTask): string => node_title || node_id

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
        const outcome = await accepted(call('retry', { ...idsOf(task), ...to }))
        sayBecame(outcome.settled)
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

/** Says what became of a retried task; a new failure is bad news, and stays to be read. */
function sayBecame({ became, task }: Settled = { became: 'running' }): void {
  const at = task === undefined ? '' : ` in “${shownText(task.node_title || task.node_id)}”`
  const { tag, description } = task?.status_details ?? task?.wait?.last_error ?? {}
  const why = shownText(description || tag || 'no reason is kept')
  if (became === 'failed') sayFault(`it failed again${at}: ${why}`)
  else if (became === 'ended') say(`The task has ended${at}.`)
  else if (became === 'running') say(`The task still runs${at}.`)
  else if (tag === undefined) say(`The task waits${at}.`)
  else sayFault(`it waits${at} for another attempt; the last one failed: ${why}`)
}

/** The outcome; a refused act is thrown. */
async function accepted<Outcome extends ActionOutcome>(acting: Promise<Outcome>): Promise<Outcome> {
  const outcome = await acting
  const { proc, description = proc } = outcome
  if (proc !== 'ok') throw Object.assign(new Error(description), { code: proc })
  return outcome
}

export async function done(acting: Promise<ActionOutcome>): Promise<void> {
  await accepted(acting)
}

export function idsOf({ conv_id, obj_id }: NamedTask): NamedTask {
  return { conv_id, obj_id }
}

export function CopyDialog({ task, onClose }: { task: ShownTask; onClose: () => void }) {
  const { conv_id, obj_id, wait, node_id } = task
  const kind = useSignal('show')
  const typed = useSignal('{}')
  const read = parseObject(typed.value)
  const is_modify = kind.value === 'modify'
  const bound = wait?.for === 'callback' ? { node_id, is_sync: true } : {}
  const data_text = 'value' in read ? exactText(read.value) : undefined
  const { value } = session
  const servers = typeof value === 'object' ? value.servers : {}
  const shown = is_modify && data_text !== undefined ? { data_text, ...bound } : {}
  const commands =
    is_modify && data_text === undefined ? [] : commandsOf({ conv_id, obj_id, ...shown }, servers)
  return (
    <Dialog title="Copy a call" onClose={onClose} is_wide>
      <Field
        label="Call"
        value={kind}
        options={[
          ['show', 'show the task'],
          ['modify', wait?.for === 'callback' ? 'send a callback' : 'change its data'],
        ]}
      />
      {is_modify && (
        <Field
          label="Data, as JSON"
          value={typed}
          lines={4}
          problem={'mistake' in read ? read.mistake : undefined}
        />
      )}
      {commands.map(({ name, text, needs }) => (
        <section key={name} class="copied-call" aria-label={name}>
          <header>
            <h3>{name}</h3>
            <CopyButton text={text} what={`the call with ${name}`} />
          </header>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys */}
          <pre tabIndex={0}>{text}</pre>
          <p class="quiet-text">Needs {needs}</p>
        </section>
      ))}
    </Dialog>
  )
}
