/**
 * Edits one value of data in place, or adds a member: as a text, or as JSON for everything else,
 * whose numbers keep their digits. Enter sets it, Escape cancels.
 */
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Button } from '../parts/button.tsx'
import { Field } from '../parts/field.tsx'
import { type Exact, type ExactObject, indentedText, parseExact } from './exact-json.ts'

interface ValueEditorProps {
  readonly value: Exact
  /** Of another member: those that are there already. */
  readonly taken?: ExactObject | undefined
  readonly onPut: (name: string, value: Exact) => void
  readonly onClose: () => void
}

export function ValueEditor({ value, taken, onPut, onClose }: ValueEditorProps) {
  const kind = useSignal(typeof value === 'string' ? 'text' : 'json')
  const name = useSignal('')
  const typed = useSignal(typeof value === 'string' ? value : indentedText(value))
  const box = useRef<HTMLFieldSetElement>(null)
  useLayoutEffect(() => box.current?.querySelector<HTMLElement>('input, textarea')?.focus(), [])
  const read = kind.value === 'text' ? { value: typed.value } : parseExact(typed.value)
  const mistake = 'mistake' in read ? read.mistake : undefined
  const name_mistake =
    taken?.has(name.value) === true ? 'There is a member of this name.' : undefined
  const put = () => {
    if ('value' in read && name_mistake === undefined) onPut(name.value, read.value)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onClose()
    else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) put()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <fieldset class="value-editor" ref={box}>
      <legend class="unseen">{taken === undefined ? 'Change the value' : 'Another member'}</legend>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the fields */}
      <div class="value-fields" onKeyDown={onKeyDown}>
        {taken !== undefined && <Field label="Name" value={name} problem={name_mistake} />}
        <Field
          label="As"
          value={kind}
          options={[
            ['text', 'text'],
            ['json', 'number, true, null or JSON'],
          ]}
        />
        <Field
          label="Value"
          value={typed}
          lines={Math.min(8, typed.value.split('\n', 9).length)}
          problem={mistake}
        />
      </div>
      <Button kind="main" act={put} why_not={mistake ?? name_mistake}>
        Set
      </Button>
      <Button kind="quiet" act={onClose}>
        Leave it
      </Button>
    </fieldset>
  )
}
