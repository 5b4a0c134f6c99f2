/**
 * The head of the page: the views, the search, the connection, and who is signed in. The colours,
 * light, dark or as the system has them, are kept in this browser.
 */

import { effect, signal, useSignal } from '@preact/signals'
import { connection } from '../live.ts'
import { Button, Menu } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { keys, useKeys } from '../parts/keys.ts'
import { Link } from '../parts/link.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { place } from '../place.ts'
import { endSession, is_outdated, session } from '../session.ts'
import { Find } from './find.tsx'

export function Header() {
  const { name } = place.value
  return (
    <header class="top">
      <Link to={{ name: 'overview' }} class="name">
        <Mark /> Conveyor
      </Link>
      <nav aria-label="Views">
        <Link to={{ name: 'overview' }} is_current={name === 'overview'}>
          Overview
        </Link>
        <Link to={{ name: 'tasks' }} is_current={name === 'tasks'}>
          Tasks
        </Link>
      </nav>
      <Find />
      <Connection />
      <Who />
    </header>
  )
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true" class="mark">
      <circle cx="8" cy="16" r="3" />
      <circle cx="24" cy="9" r="3" />
      <circle cx="24" cy="23" r="3" />
      <path d="M11 16h4l6-6M15 16l6 6" />
    </svg>
  )
}

const connections = {
  live: ['Live', 'The server sends each change as it happens.'],
  asking: ['Asking', 'Events do not come through, so the page asks every 2 seconds.'],
  ready: ['Connected', 'This view shows what was there when it was opened or asked for.'],
  away: ['No answer', 'The server does not answer. The page tries again every 2 seconds.'],
} as const

function Connection() {
  const { value } = connection
  const [word, means] = connections[value]
  return (
    <p class={`connection ${value}`} role="status" title={means}>
      {word}
    </p>
  )
}

/** Below the header, where the view cannot be as new as it should. */
export function AwayNote() {
  if (is_outdated.value && connection.value !== 'away') {
    return (
      <p class="away-note" role="alert">
        The server is of another version than this page.{' '}
        <Button act={() => location.reload()}>Load the page again</Button>
      </p>
    )
  }
  if (connection.value !== 'away') return null
  return (
    <p class="away-note" role="alert">
      The server does not answer. What you see is from before; the page tries again every 2 seconds
      and goes on by itself.
    </p>
  )
}

const may_do = {
  look: 'may look',
  operate: 'may look and fix tasks',
  administer: 'may do everything',
} as const

function Who() {
  const { value } = session
  const shows_keys = useSignal(false)
  const showKeys = () => set(shows_keys, true)
  useKeys([{ key: '?', does: 'show the keyboard shortcuts', act: showKeys }])
  if (typeof value !== 'object') return null
  const { name, right, version } = value
  return (
    <div class="who">
      {right === 'look' && <span class="badge quiet">read only</span>}
      <Menu
        label={
          <>
            <Name of={name} />
            <span class="right">{right}</span>
            <span aria-hidden="true">▾</span>
          </>
        }
      >
        <p>
          Signed in {name === 'link' ? 'by a link' : 'as '}
          {name !== 'link' && <Name of={name} />}; {may_do[right]}.
        </p>
        <fieldset class="themes">
          <legend>Colours</legend>
          {themes.map((one) => (
            <label key={one}>
              <input
                type="radio"
                name="theme"
                checked={theme.value === one}
                onChange={() => set(theme, one)}
              />
              {one}
            </label>
          ))}
        </fieldset>
        <Button kind="quiet" act={showKeys}>
          Keyboard shortcuts
        </Button>
        <Button kind="quiet" act={endSession}>
          Sign out
        </Button>
        <p class="quiet-text">Conveyor {version}</p>
      </Menu>
      {shows_keys.value && <Keys onClose={() => set(shows_keys, false)} />}
    </div>
  )
}

function Keys({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="keys">
        {keys.value.map(({ key, does }) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Escape</kbd>
          </dt>
          <dd>close what is open</dd>
        </div>
      </dl>
    </Dialog>
  )
}

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const kept_as = 'conveyor-theme'

export const theme = signal<Theme>(kept())

function kept(): Theme {
  try {
    const text = localStorage.getItem(kept_as)
    return themes.find((one) => one === text) ?? 'system'
  } catch {
    // A browser may refuse pages to keep anything.
    return 'system'
  }
}

effect(() => {
  const { value } = theme
  if (value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = value
  try {
    localStorage.setItem(kept_as, value)
  } catch {
    // It holds until the page is closed.
  }
})
