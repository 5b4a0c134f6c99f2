/**
 * One task, followed live: where it is and why, its history, its data, and what an operator may do
 * to it. What the reader types stays when the task goes on, ends or disappears; the page says so
 * beside it.
 */

import { useSignal } from '@preact/signals'
import type { ShownTask } from '../../server/messages.ts'
import { useFrames } from '../live.ts'
import { Button, CopyButton } from '../parts/button.tsx'
import { Link, ProcessLink, TaskLink, ViewTitle, Words } from '../parts/link.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { status_words } from '../parts/texts.ts'
import { FaultText } from '../parts/toasts.tsx'
import { StatusBadge, Time } from '../parts/values.tsx'
import { isCallFault, may } from '../session.ts'
import { CallbackDialog, CancelDialog, CopyDialog, MoveDialog, RetryDialog } from './actions.tsx'
import { TaskData } from './data.tsx'
import { TaskHistory } from './history.tsx'
import { PathGraph } from './path-graph.tsx'
import { whyOf } from './words.ts'

export function TaskView({ obj_id }: { readonly obj_id: string }) {
  const task = useSignal<ShownTask | undefined>(undefined)
  const fault = useSignal<unknown>(undefined)
  const first = useSignal<ShownTask | undefined>(undefined)
  useFrames(
    { view: 'task', obj_id },
    (frame) => {
      if (frame.view !== 'task') return
      fault.value = undefined
      first.value ??= frame.task
      task.value = frame.task
    },
    (refused) => set(fault, refused),
  )
  const { value: shown } = task
  const is_gone = isCallFault(fault.value) && fault.value.code === 'not_found'
  if (shown === undefined) {
    return (
      <div class="task-view">
        <ViewTitle window="Task">Task</ViewTitle>
        {is_gone ? <Missing obj_id={obj_id} /> : <FaultText fault={fault.value} />}
        {fault.value === undefined && <p class="quiet-text">Asking for the task…</p>}
      </div>
    )
  }
  return (
    <div class="task-view">
      <Head task={shown} />
      <Ended task={shown} before={first.value ?? shown} is_gone={is_gone} />
      <Why task={shown} is_gone={is_gone} />
      <section class="task-path" aria-label="Its path">
        <PathGraph
          conv_id={shown.conv_id}
          history={shown.history ?? no_history}
          node_id={shown.node_id}
        />
      </section>
      <div class="task-columns">
        <TaskData task={shown} why_not={whyNotChange(shown, is_gone)} />
        <TaskHistory task={shown} />
      </div>
    </div>
  )
}

const no_history: readonly [] = []

function Missing({ obj_id }: { readonly obj_id: string }) {
  return (
    <p>
      There is no task <code>{obj_id}</code>. It may have ended in a node that keeps none.{' '}
      <Link to={{ name: 'tasks' }}>Search tasks</Link>
    </p>
  )
}

function Head({ task }: { readonly task: ShownTask }) {
  const { ref, obj_id, conv_id, process_title, status, node_title, node_id } = task
  return (
    <header class="task-head">
      <ViewTitle window="Task">
        <Name of={ref ?? obj_id} />
      </ViewTitle>
      <StatusBadge status={status} />
      <p>
        in{' '}
        <strong>
          <Name of={node_title || node_id} />
        </strong>{' '}
        of <ProcessLink conv_id={conv_id} title={process_title} />
      </p>
      <p class="quiet-text">
        <code>{obj_id}</code>
        <CopyButton text={obj_id} what="the id" />
        created <Time ms={task.create_time_ms} />
        {task.user_id !== null && (
          <>
            {' by '}
            <Name of={task.user_id} />
          </>
        )}
        , changed <Time ms={task.change_time_ms} />
        {task.trace_id !== undefined && (
          <>
            , trace <code>{task.trace_id}</code>
          </>
        )}
      </p>
    </header>
  )
}

const isOver = ({ status }: ShownTask): boolean => status === 'processed' || status === 'canceled'

function whyNotChange(task: ShownTask, is_gone: boolean): string | undefined {
  if (!may('operate')) return 'Your right is to look only'
  if (is_gone) return 'The task is there no more'
  return isOver(task) ? 'The task has ended' : undefined
}

interface EndedProps {
  readonly task: ShownTask
  readonly before: ShownTask
  readonly is_gone: boolean
}

function Ended({ task, before, is_gone }: EndedProps) {
  const has_ended = isOver(task) && !isOver(before)
  const text = is_gone
    ? 'The task is there no more, as it has ended in a node that keeps none. This is how it was.'
    : has_ended
      ? `The task has ended while you looked: it is ${status_words[task.status]}.`
      : ''
  return (
    <p class="task-ended" role="status">
      {text}
    </p>
  )
}

const dialogs = {
  callback: CallbackDialog,
  retry: RetryDialog,
  move: MoveDialog,
  cancel: CancelDialog,
  copy: CopyDialog,
} as const
type Opened = keyof typeof dialogs

function Why({ task, is_gone }: { readonly task: ShownTask; readonly is_gone: boolean }) {
  const opened = useSignal<Opened | undefined>(undefined)
  const [answer = [], ...more] = whyOf(task)
  const { status, wait, called, caller } = task
  const look =
    status === 'failed' || wait?.has_handler === false ? 'bad' : isOver(task) ? '' : 'wait'
  const why_not = whyNotChange(task, is_gone)
  const Opened = opened.value && dialogs[opened.value]
  const button = (what: Opened, text: string, kind: 'plain' | 'main' | 'danger' = 'plain') => (
    <Button kind={kind} act={() => set(opened, what)} why_not={what !== 'copy' && why_not}>
      {text} …
    </Button>
  )
  return (
    <section class={`task-reason panel ${look}`} aria-label="Why it is here">
      {!is_gone && (
        <>
          <p class="answer">
            <Words of={answer} />
          </p>
          {more.map((sentence, at) => (
            <p key={at}>
              <Words of={sentence} />
            </p>
          ))}
        </>
      )}
      {called !== undefined && (
        <p>
          It has called <TaskLink obj_id={called.obj_id} /> of{' '}
          <ProcessLink conv_id={called.conv_id} title={called.title} />.
        </p>
      )}
      {caller !== undefined && (
        <p>
          It was called by <TaskLink obj_id={caller.obj_id} /> of{' '}
          <ProcessLink conv_id={caller.conv_id} title={caller.title} />.
        </p>
      )}
      <div class="task-buttons">
        {may('operate') && !isOver(task) && (
          <>
            {status === 'failed' && button('retry', 'Retry', 'main')}
            {wait?.for === 'callback' && button('callback', 'Send a callback', 'main')}
            {button('move', 'Move')}
            {button('cancel', 'Cancel', 'danger')}
          </>
        )}
        {button('copy', 'Copy a call')}
      </div>
      {Opened && <Opened task={task} onClose={() => set(opened, undefined)} />}
    </section>
  )
}
