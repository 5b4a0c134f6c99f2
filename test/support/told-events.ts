/**
 * The events that the engines of this process tell while something runs, by the channel of
 * core/events, so that whatever opens an engine can be watched.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { EventFields, EventName } from '../../src/core/event-table.ts'

export type EventLine = { readonly event: EventName } & EventFields

export async function withEvents<T>(work: () => Promise<T>): Promise<readonly [T, EventLine[]]> {
  const events: EventLine[] = []
  const keep = (told: unknown): void => void events.push(told as EventLine)
  subscribe('conveyor:event', keep)
  try {
    return [await work(), events]
  } finally {
    unsubscribe('conveyor:event', keep)
  }
}

/** The codes of the refusals among events. */
export function refusalsOf(events: readonly EventLine[]): unknown[] {
  return events
    .filter(({ event }) => event === 'request_refused' || event === 'op_refused')
    .map(({ code }) => code)
}
