/** The frame around each view: where one is, what is searched for, who is signed in. */
import { place } from './place.ts'
import { session } from './session.ts'
import { Overview } from './views/overview.tsx'
import { ProcessView } from './views/process.tsx'
import { SignInView } from './views/sign-in.tsx'
import { TaskView } from './views/task.tsx'
import { TasksView } from './views/tasks.tsx'

export function App() {
  if (session.value === 'unknown') return <p class="wait">…</p>
  if (session.value === 'none') return <SignInView />
  const at = place.value
  return (
    <main>
      {at.name === 'overview' && <Overview />}
      {at.name === 'process' && <ProcessView key={at.conv_id} conv_id={at.conv_id} />}
      {at.name === 'tasks' && <TasksView />}
      {at.name === 'task' && <TaskView key={at.obj_id} obj_id={at.obj_id} />}
      {at.name === 'unknown' && <p>There is no such page.</p>}
    </main>
  )
}
