/**
 * Tasks as CSV: those that the search finds as a file, and a file whose rows become tasks of the
 * process. A file is sent as it lies on the disk, so that it may be of any length.
 */
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { SentFilter } from '../../../task-operations/searches.ts'
import type { CsvOutcome } from '../../server/messages.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { countText, tasksText } from '../parts/texts.ts'
import { FaultText } from '../parts/toasts.tsx'
import { csvAddress, sendCsv } from '../session.ts'

interface CsvExportProps {
  /** Absent where a task was found by its id. */
  readonly filter: SentFilter | undefined
  readonly newest_first: boolean
}

export function CsvExport({ filter, newest_first }: CsvExportProps) {
  if (filter === undefined) return null
  const act = async () => {
    const link = document.createElement('a')
    link.href = await csvAddress({ ...filter, newest_first })
    link.download = 'tasks.csv'
    link.click()
  }
  return (
    <Button kind="quiet" act={act}>
      All that it finds as CSV
    </Button>
  )
}

interface CsvImportProps {
  readonly conv_id: string
  readonly onDone: () => unknown
}

export function CsvImport({ conv_id, onDone }: CsvImportProps) {
  const input = useRef<HTMLInputElement>(null)
  const file = useSignal<File | undefined>(undefined)
  return (
    <>
      <Button kind="quiet" act={() => input.current?.click()}>
        Create tasks from CSV…
      </Button>
      <input
        ref={input}
        type="file"
        accept=".csv,text/csv"
        hidden
        onChange={({ currentTarget }) => {
          file.value = currentTarget.files?.[0]
          // The same file can be chosen again once it was mended.
          currentTarget.value = ''
        }}
      />
      {file.value && (
        <CsvDialog
          file={file.value}
          conv_id={conv_id}
          onClose={(has_created) => {
            file.value = undefined
            if (has_created) onDone()
          }}
        />
      )}
    </>
  )
}

interface CsvDialogProps {
  readonly file: File
  readonly conv_id: string
  readonly onClose: (has_created: boolean) => void
}

const dividers = [
  [',', 'comma'],
  [';', 'semicolon'],
  ['|', 'bar'],
  ['\t', 'tab'],
] as const

function CsvDialog({ file, conv_id, onClose }: CsvDialogProps) {
  const ref_column = useSignal('')
  const divider = useSignal(',')
  const numbers = useSignal('')
  const outcome = useSignal<CsvOutcome | undefined>(undefined)
  const fault = useSignal<unknown>(undefined)
  const close = () => onClose((outcome.value?.created ?? 0) > 0)

  async function send(): Promise<void> {
    fault.value = undefined
    const query = new URLSearchParams({ conv_id, divider: divider.value })
    if (ref_column.value !== '') query.set('ref_column', ref_column.value)
    for (const name of numbers.value.split(',')) {
      if (name.trim() !== '') query.append('convert', `${name.trim()}:number`)
    }
    try {
      outcome.value = await sendCsv(query, file)
    } catch (error) {
      fault.value = error
    }
  }

  return (
    <Dialog title="Create tasks from CSV" onClose={close}>
      <p>
        <bdi>{file.name}</bdi>: a task of process {conv_id} for each row after the names.
      </p>
      {outcome.value === undefined && (
        <>
          <Field
            label="Column that is the ref"
            value={ref_column}
            hint="With one, the same file may be sent again: a row whose task lives makes no second"
          />
          <Field label="Columns of numbers" value={numbers} hint="Names with commas between them" />
          <Field label="Between cells" value={divider} options={dividers} />
        </>
      )}
      <div aria-live="polite">
        <FaultText fault={fault.value} />
        {outcome.value && <Outcome outcome={outcome.value} />}
      </div>
      <footer>
        {outcome.value === undefined ? (
          <Button act={send} kind="main">
            Create
          </Button>
        ) : (
          <Button act={close} kind="main">
            Done
          </Button>
        )}
      </footer>
    </Dialog>
  )
}

function Outcome({ outcome }: { readonly outcome: CsvOutcome }) {
  const { created, refused, mistakes, stopped } = outcome
  return (
    <>
      <p>
        {tasksText(created)} created, {countText(refused)} refused.
      </p>
      {stopped !== undefined && <p>It has stopped: {stopped}.</p>}
      {mistakes.length > 0 && (
        <ul>
          {mistakes.map(({ line, says }) => (
            <li key={line}>
              Line {line}: {says}
            </li>
          ))}
        </ul>
      )}
      {refused > mistakes.length && <p>These are the first {countText(mistakes.length)}.</p>}
    </>
  )
}
