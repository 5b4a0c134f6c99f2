/**
 * The operator's page: begins the session and shows the view of the place. Where a session has
 * ended, the sign-in covers the view, so nothing typed there is lost; a sign-in by another name
 * starts over. What the page shows of tasks is text everywhere, never markup.
 */
import { render } from 'preact'
import { AwayNote, Header } from './frame/header.tsx'
import { SignInView } from './frame/sign-in.tsx'
import { Overview } from './overview/overview.tsx'
import { useModal } from './parts/dialog.tsx'
import { ViewTitle } from './parts/link.tsx'
import { Toasts } from './parts/toasts.tsx'
import { place } from './place.ts'
import { ProcessView } from './process/process.tsx'
import { findSession, has_ended, session, takeLink } from './session.ts'
import { TaskView } from './task/task.tsx'
import { TasksView } from './tasks/tasks.tsx'

function App() {
  const { value } = session
  return (
    <>
      {value === 'unknown' && <p class="begin">Asking the server…</p>}
      {value === 'none' && (
        <main>
          <SignInView />
        </main>
      )}
      {typeof value === 'object' && <Page key={value.name} />}
      {has_ended.value && <SignInAgain />}
      <Toasts />
    </>
  )
}

function Page() {
  const at = place.value
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector('h1')?.focus()}>
        To the view
      </button>
      <Header />
      <AwayNote />
      <main>
        {at.name === 'overview' && <Overview />}
        {at.name === 'process' && <ProcessView key={at.conv_id} conv_id={at.conv_id} />}
        {at.name === 'tasks' && <TasksView />}
        {at.name === 'task' && <TaskView key={at.obj_id} obj_id={at.obj_id} />}
        {at.name === 'unknown' && (
          <ViewTitle window="No such page">There is no such page</ViewTitle>
        )}
      </main>
    </>
  )
}

/** Above everything, dialogs of the view too. */
function SignInAgain() {
  const dialog = useModal()
  return (
    <dialog
      ref={dialog}
      class="sign-in-again"
      aria-label="Sign in"
      onCancel={(event) => event.preventDefault()}
    >
      <SignInView />
    </dialog>
  )
}

const again_ms = 2_000

async function begin(): Promise<void> {
  await takeLink()
  if (session.value === 'unknown') await findSession().catch(() => setTimeout(begin, again_ms))
}

addEventListener('hashchange', () => void takeLink())
render(<App />, document.getElementById('page') as HTMLElement)
void begin()
