/**
 * A modal dialog of the browser: it traps the focus, Escape closes it, and the focus returns to
 * where it was. It is open as long as its component is mounted.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { Button } from './button.tsx'
import { FaultText } from './toasts.tsx'

interface DialogProps {
  readonly title: string
  /** Called on Escape or by its button; the owner then removes it. */
  readonly onClose: () => void
  readonly is_wide?: boolean
  readonly children: ComponentChildren
}

export function Dialog({ title, onClose, is_wide = false, children }: DialogProps) {
  const dialog = useModal()
  const id = useId()
  return (
    <dialog
      ref={dialog}
      class={is_wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="close" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </div>
      {children}
    </dialog>
  )
}

/** A hook: for a dialog that is open, over all else, as long as its component is there. */
export function useModal(): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const { current } = dialog
    current?.showModal()
    return () => current?.close()
  }, [])
  return dialog
}

interface ConfirmProps {
  readonly title: string
  /** What the button says that does it: a verb, such as `Cancel 12 tasks`. */
  readonly verb: string
  /** Refused: the dialog stays and says why. Done: it closes. */
  readonly act: () => unknown
  readonly onClose: () => void
  readonly is_danger?: boolean
  readonly why_not?: string | false | undefined
  readonly children?: ComponentChildren
}

export function Confirm(props: ConfirmProps) {
  const { title, verb, act, onClose, is_danger = false, why_not, children } = props
  const fault = useSignal<unknown>(undefined)
  const run = async () => {
    fault.value = undefined
    try {
      await act()
      onClose()
    } catch (error) {
      fault.value = error
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="dialog-text">{children}</div>
      <FaultText fault={fault.value} />
      <footer>
        <Button act={run} kind={is_danger ? 'danger' : 'main'} why_not={why_not}>
          {verb}
        </Button>
      </footer>
    </Dialog>
  )
}
