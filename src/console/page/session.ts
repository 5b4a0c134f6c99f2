/**
 * The session and the calls to its server. When a session has ended, such as by a restart of the
 * server, the sign-in covers the view, which keeps its state; refused calls are made again once the
 * same name has signed in.
 */
import { effect, signal } from '@preact/signals'
import {
  type CallName,
  type ConsoleCalls,
  type CsvOutcome,
  type Refusal,
  type Right,
  rights,
  type Session,
  type SignIn,
  token_header,
} from '../server/messages.ts'
import { base } from './place.ts'

/** `unknown` until the server was asked. One that has ended stays here until another begins. */
export const session = signal<Session | 'none' | 'unknown'>('unknown')
export const has_ended = signal(false)
/** Whether the server is of another version than this page, which it served before a restart. */
export const is_outdated = signal(false)
/** Why the link that the page was opened with has not signed in. */
export const link_fault = signal<unknown>(undefined)
export const is_reachable = signal(true)

/** A refusal of the server, or a connection that broke: `unreachable`. */
export interface CallFault extends Error, Pick<Refusal, 'mistakes' | 'warnings'> {
  readonly code: string
}

const answer_ms_max = 60_000
const csv_ms_max = 12 * 60 * 60_000

export function isCallFault(error: unknown): error is CallFault {
  return error instanceof Error && 'code' in error
}

/** The line that does this where the server is, in the words by which its program was started. */
export function commandLine(verb: string): string {
  const { value } = session
  const line = typeof value === 'object' ? value.command_line : 'conveyor VERB'
  return line.replace('VERB', () => verb)
}

/** Rejects with a CallFault. `ms_max`: how long an answer may take. */
export async function call<Name extends CallName>(
  name: Name,
  input: ConsoleCalls[Name]['in'],
  ms_max = answer_ms_max,
): Promise<ConsoleCalls[Name]['out']> {
  const caller = nameOf(session.value)
  try {
    return (await post(name, input, ms_max)) as ConsoleCalls[Name]['out']
  } catch (fault) {
    if (!has_ended.value) throw fault
    await begun()
    // What one has begun is not done in the name of another.
    if (nameOf(session.value) !== caller) throw fault
    return (await post(name, input, ms_max)) as ConsoleCalls[Name]['out']
  }
}

/** The address of all tasks that a search finds, as CSV; it does not show the search. */
export async function csvAddress(search: ConsoleCalls['tasks']['in']): Promise<string> {
  const headers = { ...tokenHeader(), 'Content-Type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify(search) }
  const { id } = (await request('csv', init, answer_ms_max)) as { readonly id: number }
  return `${base}/csv?id=${id}`
}

/** Sends a CSV file, as long as that takes. Rejects with a CallFault; it is never sent twice. */
export async function sendCsv(query: URLSearchParams, file: File): Promise<CsvOutcome> {
  const init = { method: 'POST', headers: { ...tokenHeader(), 'Content-Type': 'text/csv' } }
  return (await request(`csv?${query}`, { ...init, body: file }, csv_ms_max)) as CsvOutcome
}

/** The session of this browser, such as one that another tab has begun. */
export async function findSession(): Promise<void> {
  try {
    begin((await request('session', { method: 'GET' }, answer_ms_max)) as Session)
  } catch (fault) {
    if (session.value === 'unknown') session.value = 'none'
    if (isCallFault(fault) && fault.code === 'unreachable') throw fault
  }
}

/** A one-time link has its token behind the `#`, which no server and no log sees. */
export async function takeLink(): Promise<void> {
  const [, link] = /^#link=(.+)$/.exec(location.hash) ?? []
  if (link === undefined) return
  history.replaceState(history.state, '', location.pathname + location.search)
  link_fault.value = undefined
  await beginSession({ link }).catch((fault) => {
    link_fault.value = fault
  })
}

export async function beginSession(by: SignIn): Promise<void> {
  begin((await post('sign_in', by, answer_ms_max)) as Session)
}

export async function endSession(): Promise<void> {
  await post('sign_out', {}, answer_ms_max)
  forget()
}

/** The next session sees nothing of this one. */
export function forget(): void {
  session.value = 'none'
  has_ended.value = false
}

export function may(right: Right): boolean {
  const { value } = session
  return typeof value === 'object' && rights.indexOf(value.right) >= rights.indexOf(right)
}

function begin(begun: Session): void {
  const { value } = session
  if (typeof value === 'object' && value.version !== begun.version) is_outdated.value = true
  session.value = begun
  has_ended.value = false
}

const nameOf = (value: typeof session.value): string =>
  typeof value === 'object' ? value.name : ''

/** Resolves once a session has begun. */
function begun(): Promise<void> {
  return new Promise((resolve) => {
    const stop = effect(() => {
      if (!has_ended.value && typeof session.value === 'object') queueMicrotask(done)
    })
    const done = () => {
      stop()
      resolve()
    }
  })
}

function tokenHeader(): Readonly<Record<string, string>> {
  const { value } = session
  return { [token_header]: typeof value === 'object' ? value.token : '' }
}

function post(name: CallName, input: unknown, ms_max: number): Promise<unknown> {
  const init = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...tokenHeader() },
    body: JSON.stringify(input),
  }
  return request(`api/${name}`, init, ms_max)
}

async function request(path: string, init: RequestInit, ms_max: number): Promise<unknown> {
  let response: Response
  let value: unknown
  try {
    response = await fetch(`${base}/${path}`, { ...init, signal: AbortSignal.timeout(ms_max) })
    value = await response.json()
    is_reachable.value = true
  } catch (cause) {
    is_reachable.value = false
    throw faultOf('unreachable', 'the server does not answer', { cause })
  }
  if (response.ok) return value
  const { error = 'unknown', description = response.statusText, ...more } = value as Refusal
  if (response.status === 401 && path !== 'api/sign_in') {
    if (typeof session.value === 'object') has_ended.value = true
    else session.value = 'none'
  }
  throw faultOf(error, description, more)
}

function faultOf(code: string, text: string, more: object): CallFault {
  return Object.assign(new Error(text), { code, ...more })
}
