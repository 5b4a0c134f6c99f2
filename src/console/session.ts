/**
 * The session and the calls of its server. A call without a session, or with one that has ended,
 * shows the sign-in in place of the view, which goes on where it was after that.
 */
import { signal } from '@preact/signals'
import type {
  CallName,
  ConsoleCalls,
  Refusal,
  Right,
  Session,
  SignIn,
} from '../server/console/messages.ts'
import { base } from './place.ts'

/** `unknown` until the server was asked. */
export const session = signal<Session | 'none' | 'unknown'>('unknown')

/** A refusal of the server, or a connection that broke: `unreachable`. */
export interface CallFault extends Error, Pick<Refusal, 'mistakes'> {
  readonly code: string
}

export function isCallFault(error: unknown): error is CallFault {
  return error instanceof Error && 'code' in error
}

/** Rejects with a CallFault. */
export async function call<Name extends CallName>(
  name: Name,
  input: ConsoleCalls[Name]['in'],
): Promise<ConsoleCalls[Name]['out']> {
  return (await post(`api/${name}`, input)) as ConsoleCalls[Name]['out']
}

export async function findSession(): Promise<void> {
  try {
    session.value = (await request('session', { method: 'GET' })) as Session
  } catch {
    session.value = 'none'
  }
}

/** Rejects with a CallFault. */
export async function beginSession(by: SignIn): Promise<void> {
  session.value = (await post('api/sign_in', by)) as Session
}

export async function endSession(): Promise<void> {
  await post('api/sign_out', {}).catch(() => {})
  session.value = 'none'
}

export function may(right: Right): boolean {
  const { value } = session
  if (value === 'none' || value === 'unknown') return false
  const order: readonly Right[] = ['look', 'operate', 'administer']
  return order.indexOf(value.right) >= order.indexOf(right)
}

function post(path: string, input: unknown): Promise<unknown> {
  const { value } = session
  const token = value === 'none' || value === 'unknown' ? '' : value.token
  return request(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Conveyor-Token': token },
    body: JSON.stringify(input),
  })
}

async function request(path: string, init: RequestInit): Promise<unknown> {
  let response: Response
  try {
    response = await fetch(`${base}/${path}`, init)
  } catch (cause) {
    throw faultOf('unreachable', 'the server does not answer', { cause })
  }
  const value = await response.json().catch(() => ({}))
  if (response.ok) return value
  const { error = 'unreachable', description = response.statusText, mistakes } = value as Refusal
  if (response.status === 401) session.value = 'none'
  throw faultOf(error, description, mistakes === undefined ? {} : { mistakes })
}

function faultOf(code: string, text: string, more: object): CallFault {
  return Object.assign(new Error(text), { code, ...more })
}
