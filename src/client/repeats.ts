/**
 * The two tables that decide what is sent again: the calls, and the faults after which another try
 * may succeed. A call that was certainly not applied is always sent again after such a fault; one
 * whose outcome is unknown only if a repeat cannot harm, or if the server knows it (sent-call).
 *
 * The README beside this file shows both tables, and a test compares them.
 */
import type { ClientFault, ClientFaultCode } from './faults.ts'
import type { SentOp } from './sent-op.ts'

/**
 * Whether doing it twice has the effect of once, at a server without replays. A create with a ref
 * answers the first task as long as that lives (wire 1.2); without one it makes another task. A
 * modify releases the wait, so its repeat is refused or releases the next wait, also with `is_sync`
 * or `node_id`. A cancel or retry would answer for what the first has done.
 */
export const repeats = {
  show: 'always',
  task: 'always',
  result: 'always',
  list: 'always',
  count: 'always',
  changes: 'always',
  create: 'with_ref',
  modify: 'never',
  cancel: 'never',
  retry: 'never',
  stream: 'never',
} as const

/**
 * What a client with several addresses does about the one that answered with this fault: `leave`:
 * its calls wait until an owner is found; `doubt`: it goes on there and asks the others; `stay`.
 */
export const transient_faults = {
  unreachable: 'leave',
  shutting_down: 'leave',
  store_failed: 'leave',
  overloaded: 'doubt',
  rate_limited: 'stay',
} as const satisfies Partial<Record<ClientFaultCode, 'leave' | 'doubt' | 'stay'>>

export function isHarmlessCall(name: keyof typeof repeats): boolean {
  return repeats[name] === 'always'
}

export function isHarmless({ type, ref }: SentOp): boolean {
  return isHarmlessCall(type) || (repeats[type] === 'with_ref' && ref !== undefined)
}

/** What follows a fault for its address; undefined where no other try would succeed. */
export function afterFault(code: ClientFaultCode): 'leave' | 'doubt' | 'stay' | undefined {
  return (transient_faults as Partial<Record<ClientFaultCode, 'leave' | 'doubt' | 'stay'>>)[code]
}

export function mayRepeat({ code, outcome }: ClientFault, is_harmless: boolean): boolean {
  return afterFault(code) !== undefined && (is_harmless || outcome === 'not_applied')
}
