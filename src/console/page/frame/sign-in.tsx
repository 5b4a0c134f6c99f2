/**
 * The sign-in: by a one-time link, or as a user with a right for the page. It also covers the view
 * when a session has ended.
 */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Command, SubmitButton } from '../parts/button.tsx'
import { Field } from '../parts/field.tsx'
import { ViewTitle } from '../parts/link.tsx'
import { FaultText } from '../parts/toasts.tsx'
import {
  beginSession,
  commandLine,
  findSession,
  forget,
  has_ended,
  link_fault,
  session,
} from '../session.ts'

export function SignInView() {
  const user = useSignal('')
  const secret = useSignal('')
  const is_running = useSignal(false)
  const fault = useSignal<unknown>(undefined)
  const before = typeof session.value === 'object' ? session.value.name : ''

  // A link opened in another tab signs in this one too.
  useEffect(() => {
    const look = () => document.hidden || findSession().catch(() => {})
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])

  const submit = async (event: Event) => {
    event.preventDefault()
    if (is_running.value) return
    is_running.value = true
    fault.value = undefined
    link_fault.value = undefined
    try {
      await beginSession({ user: user.value.trim(), secret: secret.value })
    } catch (error) {
      fault.value = error
      secret.value = ''
    }
    is_running.value = false
  }

  return (
    <div class="sign-in">
      <ViewTitle window="Sign in">Sign in to Conveyor</ViewTitle>
      {has_ended.value && (
        <p>
          Your session has ended: after an hour without a call, after 12 hours, or because the
          server was restarted. Sign in {before === 'link' ? 'by a link' : `as ${before}`} again and
          go on where you were; what you typed is still there. Another user starts over.
        </p>
      )}
      {link_fault.value !== undefined && (
        <div class="problem-box">
          <FaultText fault={link_fault.value} />
          <p>A link works once, for 10 minutes. Get another as described below.</p>
        </div>
      )}
      <section aria-labelledby="by-link">
        <h2 id="by-link">By a one-time link</h2>
        <p>At the server, run this and open the address that it prints:</p>
        <Command line={commandLine('console link')} />
      </section>
      <form onSubmit={submit} aria-labelledby="by-user">
        <h2 id="by-user">As a user</h2>
        <Field label="User" value={user} autocomplete="username" is_required />
        <Field
          label="Secret"
          type="password"
          value={secret}
          autocomplete="current-password"
          is_required
        />
        <FaultText fault={fault.value} />
        <SubmitButton is_running={is_running.value}>Sign in</SubmitButton>
        <p class="hint">
          A user needs a right for this page, <code>look</code>, <code>operate</code> or{' '}
          <code>administer</code>: <code>{commandLine('user console USER look')}</code>
        </p>
      </form>
      {has_ended.value && (
        <button type="button" class="button quiet" onClick={forget}>
          Discard what was open and start over
        </button>
      )}
    </div>
  )
}
