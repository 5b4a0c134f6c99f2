/** A label with its input, a hint below it, and the problem of what was typed. */
import type { Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface FieldProps {
  readonly label: string
  /** What is typed; a plain string is changed by `onChange`. */
  readonly value: Signal<string> | string
  readonly hint?: ComponentChildren
  readonly problem?: string | undefined
  readonly type?: 'text' | 'password' | 'search' | 'number' | 'datetime-local'
  /** One of these, by value and what is shown. */
  readonly options?: readonly (readonly [value: string, text: string])[]
  readonly lines?: number
  readonly placeholder?: string | undefined
  readonly autocomplete?: string
  readonly is_required?: boolean
  readonly onChange?: (value: string) => void
}

export function Field(props: FieldProps) {
  const { label, value, hint, problem, type = 'text', options, lines } = props
  const id = useId()
  const change = ({ currentTarget }: { currentTarget: { value: string } }) => {
    if (typeof value !== 'string') value.value = currentTarget.value
    props.onChange?.(currentTarget.value)
  }
  const shared = {
    id,
    value: typeof value === 'string' ? value : value.value,
    required: props.is_required ?? false,
    'aria-invalid': problem !== undefined,
    'aria-describedby': `${id}-hint`,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {options !== undefined ? (
        <select {...shared} onChange={change}>
          {options.map(([one, text]) => (
            <option key={one} value={one}>
              {text}
            </option>
          ))}
        </select>
      ) : lines !== undefined ? (
        <textarea {...shared} rows={lines} spellcheck={false} onInput={change} />
      ) : (
        <input
          {...shared}
          // One of them, as the types of inputs want it.
          type={type as 'text'}
          placeholder={props.placeholder}
          autocomplete={props.autocomplete ?? 'off'}
          spellcheck={false}
          onInput={change}
        />
      )}
      <div class="hint" id={`${id}-hint`}>
        {problem === undefined ? hint : <span class="problem">{problem}</span>}
      </div>
    </div>
  )
}
