/**
 * What the parts of one hold (hung-harness.ts) share: its plan and bounds, the program and its callers,
 * what is counted, and how long something may take on a machine with other work.
 */

import type { Edit } from '../store-child.ts'
import type { DiskServer, Holds } from './harness.ts'
import { type HungCallers, protocols, type SentRequest } from './hung-callers.ts'
import type { Limits, LogLine } from './serve.ts'

/** `close`: the data file hangs, and nothing waits for it before the program is to end. */
export const kinds = [
  ...(['log', 'data', 'both', 'slow log', 'slow data', 'close', 'library'] as const),
]

export const ends = [
  ...(['release', 'kill', 'SIGTERM', 'SIGTERM twice', 'SIGTERM, then release'] as const),
]

/** What a program holds at most. */
export interface Bounds {
  readonly queue_ops_max: number
  readonly queue_bytes_max: number
  readonly unverified_bytes_max: number
  readonly checkpoint_bytes: number
  readonly ready_ms_max: number
  readonly slow_commit_ms: number
  readonly drain_ms_max: number
}

export interface Plan {
  readonly kind: (typeof kinds)[number]
  readonly end: (typeof ends)[number]
  readonly hold_ms: number
  /** What a sync of a slow disk takes. */
  readonly slow_ms: number
  readonly bounds: Bounds
  /** So many bytes are sent at least beyond those that wait. */
  readonly flood_bytes: number
  /** For a control: nothing is judged but its memory. */
  readonly is_of_memory?: true
}

export interface Program {
  readonly edits: readonly Edit[]
  /** Beyond the bounds by which it is judged. */
  readonly limits: Limits
}

export const sound: Program = { edits: [], limits: {} }

export interface HungCounts {
  answered: number
  overloaded: number
  waiting_ops_max: number
  not_ready_ms_max: number
  line_ms_max: number
  rss_mb_max: number
  rss_of_bound_max: number
}

export const newHungCounts = (): HungCounts => ({
  ...{ answered: 0, overloaded: 0, waiting_ops_max: 0, not_ready_ms_max: 0 },
  ...{ line_ms_max: 0, rss_mb_max: 0, rss_of_bound_max: 0 },
})

export interface Hold {
  readonly plan: Plan
  readonly server: DiskServer
  readonly holds: Holds
  readonly callers: HungCallers
  readonly counts: HungCounts
  /** In the time of day. */
  began_at: number
}

/** The program makes a commit for a probe once in so long. */
export const probe_every_ms = 1_000

export const answered = ({ answer }: SentRequest): boolean => answer !== undefined

export const isOk = ({ answer }: SentRequest): boolean => answer?.code === 'ok'

export const waiting = ({ sent }: HungCallers): readonly SentRequest[] =>
  sent.filter(({ answer }) => answer === undefined)

/** Sends one request of so many tasks over each protocol. */
export const sendBoth = (callers: HungCallers, tasks: number, text_bytes: number): SentRequest[] =>
  protocols.map((protocol) => callers.send(protocol, tasks, text_bytes))

/** What an operator is to read of this kind of hold. */
export const eventsOf = ({ kind }: Plan): readonly ('slow_commit' | 'slow_checkpoint')[] => [
  ...(kind === 'data' ? [] : (['slow_commit'] as const)),
  ...(kind === 'log' ? [] : (['slow_checkpoint'] as const)),
]

export async function killed({ child, ended }: DiskServer): Promise<void> {
  child.kill('SIGKILL')
  await ended
}

export const opsOf = (requests: readonly SentRequest[]): number =>
  requests.reduce((sum, { refs }) => sum + refs.length, 0)

export const bytesOf = (requests: readonly SentRequest[]): number =>
  requests.reduce((sum, { data_bytes }) => sum + data_bytes, 0)

/** The lines of an event from a time of day on. */
export function linesOf(
  { server }: Hold,
  event: string,
  from_at: number,
  is_under_way: boolean,
): readonly LogLine[] {
  return server
    .lines()
    .filter((line) => line.event === event && (line.is_under_way ?? false) === is_under_way)
    .filter(({ time }) => Date.parse(time) >= Math.floor(from_at))
}
