/**
 * The operator's page: begins the session and shows the view of the place. What it shows of tasks
 * is text everywhere, never markup.
 */
import { render } from 'preact'
import { App } from './app.tsx'
import { beginSession, findSession } from './session.ts'

/** A one-time link has its token behind the `#`, which no server and no log sees. */
async function begin(): Promise<void> {
  const [, link] = /^#link=(.+)$/.exec(location.hash) ?? []
  if (link !== undefined) history.replaceState(null, '', location.pathname)
  await (link === undefined ? findSession() : beginSession({ link }).catch(findSession))
}

render(<App />, document.getElementById('page') as HTMLElement)
void begin()
