/**
 * Imports a file that was chosen, or dropped anywhere on the view: everything is checked and shown
 * first, and nothing is stored before the reader confirms it.
 */

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Mistake } from '../../server/messages.ts'
import { Button } from '../parts/button.tsx'
import { set } from '../parts/set.ts'
import type { ProcessState } from '../process/state.ts'
import { ImportDialog } from './dialog.tsx'

interface ImportProps {
  /** Of the process that is looked at, whose graph can show mistakes; absent on the overview. */
  readonly state?: ProcessState
}

export function Import({ state }: ImportProps) {
  const input = useRef<HTMLInputElement>(null)
  const file = useSignal<File | undefined>(undefined)
  const is_over = useDrop((dropped) => set(file, dropped))
  return (
    <>
      <Button act={() => input.current?.click()} title="A .json or .zip file, also dropped here">
        Import…
      </Button>
      <input
        ref={input}
        type="file"
        accept=".json,.zip,application/json,application/zip"
        hidden
        onChange={({ currentTarget }) => {
          file.value = currentTarget.files?.[0]
          // The same file can be chosen again once it was fixed.
          currentTarget.value = ''
        }}
      />
      {is_over.value && <div class="drop-here">Drop the file to see what its import would do</div>}
      {file.value && (
        <ImportDialog
          file={file.value}
          conv_id={state?.conv_id}
          onMistakes={
            state &&
            ((mistakes: readonly Mistake[], node_id?: string) => {
              state.mistakes.value = mistakes
              state.in_sight.value = undefined
              state.in_sight.value = node_id
            })
          }
          onStored={() => {
            if (state === undefined) return
            state.mistakes.value = []
            void state.show({})
          }}
          onClose={() => set(file, undefined)}
        />
      )}
    </>
  )
}

/** A file that is dropped on the window; other drags, such as of text, stay what they are. */
function useDrop(onFile: (file: File) => void) {
  const is_over = useSignal(false)
  useEffect(() => {
    const ends = new AbortController()
    const { signal } = ends
    const hasFile = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true
    const over = (event: DragEvent) => {
      if (!hasFile(event)) return
      event.preventDefault()
      is_over.value = true
    }
    const leave = ({ relatedTarget }: DragEvent) => {
      if (relatedTarget === null) is_over.value = false
    }
    const drop = (event: DragEvent) => {
      if (!hasFile(event)) return
      // Else the browser would leave the page and show the file.
      event.preventDefault()
      is_over.value = false
      const file = event.dataTransfer?.files[0]
      if (file !== undefined) onFile(file)
    }
    addEventListener('dragover', over, { signal })
    addEventListener('dragleave', leave, { signal })
    addEventListener('drop', drop, { signal })
    return () => ends.abort()
  }, [])
  return is_over
}
