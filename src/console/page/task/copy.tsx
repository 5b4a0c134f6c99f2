/** A call of this task as a command to copy: its show, or a modify with data. */
import { useSignal } from '@preact/signals'
import type { ShownTask } from '../../server/messages.ts'
import { CopyButton } from '../parts/copy-button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { session } from '../session.ts'
import { commandsOf } from './commands.ts'
import { exactText, parseObject } from './exact-json.ts'

interface CopyDialogProps {
  readonly task: ShownTask
  readonly onClose: () => void
}

export function CopyDialog({ task, onClose }: CopyDialogProps) {
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
