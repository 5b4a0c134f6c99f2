/**
 * The operator's page: begins the session and shows the view of the place. What it shows of tasks
 * is text everywhere, never markup.
 */
import { render } from 'preact'
import { App } from './app.tsx'
import { findSession, session, takeLink } from './session.ts'

/** How long to wait where the server does not answer at the start. */
const again_ms = 2_000

async function begin(): Promise<void> {
  await takeLink()
  if (session.value === 'unknown') await findSession().catch(() => setTimeout(begin, again_ms))
}

addEventListener('hashchange', () => void takeLink())
render(<App />, document.getElementById('page') as HTMLElement)
void begin()
