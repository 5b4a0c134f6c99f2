/**
 * The dialog of a bulk action: its input, the number of tasks, the confirmation, the progress, and
 * the outcome.
 */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { BulkAction, BulkJob } from '../../../engine/api/search-api.ts'
import type { Bulk } from '../../server/messages.ts'
import { nodeOptions, useNodes } from '../known-processes.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { countText, tasksText } from '../parts/texts.ts'
import { FaultText, sayFault } from '../parts/toasts.tsx'
import { call } from '../session.ts'
import { exactText, parseObject } from '../task/exact-json.ts'
import {
  type BulkWork,
  becameText,
  effects,
  newBulkWork,
  outcomes,
  refusalText,
  verbs,
} from './bulk-work.ts'

interface BulkDialogProps {
  readonly bulk: Bulk
  readonly which: string
  readonly onClose: (has_changed: boolean) => void
}

export function BulkDialog({ bulk, which, onClose }: BulkDialogProps) {
  const whole = useSignal<Bulk | undefined>(needs(bulk.action) ? undefined : bulk)
  const work = useMemo(() => newBulkWork(call), [])
  const count = (counted: Bulk) => {
    whole.value = counted
    return work.count(counted)
  }
  useEffect(() => {
    if (whole.value !== undefined) void work.count(whole.value)
    return work.stop
  }, [])
  const { step, job } = work.state.value
  const close = () => onClose(job !== undefined)
  return (
    <Dialog title={`${verbs[bulk.action]} tasks`} onClose={close}>
      <p class="quiet-text">{which}</p>
      {whole.value === undefined ? (
        <Needed bulk={bulk} count={count} />
      ) : step === 'counting' || step === 'counted' ? (
        <Counted bulk={whole.value} work={work} />
      ) : (
        <Worked action={bulk.action} work={work} />
      )}
    </Dialog>
  )
}

export function ResumeDialog({ job, onClose }: { job: BulkJob; onClose: () => void }) {
  const work = useMemo(() => newBulkWork(call, job), [])
  useEffect(() => work.stop, [])
  return (
    <Dialog title={`${verbs[job.action]} tasks`} onClose={onClose}>
      <Worked action={job.action} work={work} />
    </Dialog>
  )
}

const needs = (action: BulkAction): boolean => action === 'move' || action === 'modify'

function Needed({ bulk, count }: { bulk: Bulk; count: (bulk: Bulk) => Promise<void> }) {
  const node_id = useSignal('')
  const typed = useSignal('{}')
  const is_move = bulk.action === 'move'
  const nodes = useNodes(is_move ? String(bulk.filter.conv_id ?? '') : '', sayFault)
  const data = parseObject(typed.value)
  const mistake = 'mistake' in data ? data.mistake : undefined
  const act = async () => {
    if (is_move) await count({ ...bulk, to_node_id: node_id.value })
    else if ('value' in data) await count({ ...bulk, data_text: exactText(data.value) })
  }
  return (
    <>
      {is_move ? (
        <Field
          label="To node"
          value={node_id}
          options={[['', 'choose a node'], ...nodeOptions(nodes)]}
        />
      ) : (
        <Field
          label="Data to add, as JSON"
          value={typed}
          lines={8}
          problem={mistake}
          hint="Its fields replace those of the same name, the others stay."
        />
      )}
      <footer>
        <Button
          kind="main"
          act={act}
          why_not={is_move ? node_id.value === '' && 'Choose a node first' : mistake}
        >
          Count them
        </Button>
      </footer>
    </>
  )
}

interface StepProps {
  readonly work: BulkWork
}

function Counted({ bulk, work }: StepProps & { readonly bulk: Bulk }) {
  const { step, counted = 0, fault } = work.state.value
  const { action } = bulk
  const number = tasksText(counted)
  const is_counting = step === 'counting'
  return (
    <>
      <p class="bulk-count" aria-live="polite">
        {is_counting ? `Counting: ${number} so far …` : number}
      </p>
      {!is_counting && <p>{effects[action]}</p>}
      <FaultText fault={fault} />
      <footer>
        {is_counting && <Button act={work.stop}>Stop counting</Button>}
        <Button
          kind={action === 'cancel' ? 'danger' : 'main'}
          act={() => work.run(bulk)}
          why_not={
            is_counting ? 'They are being counted' : counted === 0 ? 'There is no such task' : false
          }
        >
          {verbs[action]} {number}
        </Button>
      </footer>
    </>
  )
}

function Worked({ action, work }: StepProps & { readonly action: BulkAction }) {
  const { step, counted, job, fault, became } = work.state.value
  const { changed = 0, skipped = 0, matched = 0, refused = {}, id = '' } = job ?? {}
  const codes = Object.entries(refused)
  const failed = codes.reduce((sum, [, count]) => sum + count, 0)
  return (
    <>
      {step !== 'done' && (
        <progress
          aria-label="Progress"
          {...(counted === undefined ? {} : { max: counted, value: Math.min(matched, counted) })}
        />
      )}
      <p class="bulk-count" aria-live="polite">
        {step === 'done' ? 'Done: ' : step === 'stopped' ? 'Stopped: ' : 'Working: '}
        {countText(changed)} {outcomes[action]}
        {failed > 0 && `, ${countText(failed)} refused`}
        {skipped > 0 && `, ${countText(skipped)} left out, as they had changed`}
        {counted !== undefined && step !== 'done' && `, of ${countText(counted)}`}.
      </p>
      {became !== undefined && (
        <p class={became.failed > 0 ? 'fault' : ''}>Of these {becameText(became)}.</p>
      )}
      {codes.length > 0 && (
        <table class="refusals" aria-label="Refused">
          <tbody>
            {codes.map(([code, count]) => (
              <tr key={code}>
                <td class="number">{countText(count)}</td>
                <td>
                  {refusalText(code)} <code>{code}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {step === 'stopped' && (
        <p class="quiet-text">What is done stays. The rest is offered with the tasks for a day.</p>
      )}
      <FaultText fault={fault} />
      <footer>
        {step === 'running' && <Button act={work.stop}>Stop</Button>}
        {step === 'stopped' && id !== '' && (
          <Button kind={action === 'cancel' ? 'danger' : 'main'} act={() => work.resume(id)}>
            Go on
          </Button>
        )}
      </footer>
    </>
  )
}
