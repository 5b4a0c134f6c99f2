/**
 * Replays: a request's answer is kept in its own transaction, so a repeat gets the same answer
 * without being applied, also after a crash (wire 1.6). A repeat of a request in flight queues
 * behind it.
 *
 * A record is stored under its request's time, if near ours, so that the file grows at its end and
 * shrinks at its beginning; others under their period of arrival, and looked up in all periods.
 * Each caller (user, certificate, embedder) has its own records, bounded by replay-room. Shows
 * among other ops are read again. Rights are not checked again.
 */
import {
  type Key,
  keysOfType,
  metaKey,
  replayKey,
  replayOfKey,
  replaysIn,
  replaysOf,
} from '../../codec/keys.ts'
import { isOp } from '../../codec/op.ts'
import { type DecodedReplay, decodeReplay, encodeReplay } from '../../codec/replay-record.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Caller, Op, OpResult } from '../../core/model.ts'
import type { Tx, View } from '../../store/store.ts'
import type { ReplayMode } from '../api/engine-api.ts'
import { loadTask } from '../tasks/task-store.ts'
import { viewTask } from '../tasks/task-view.ts'
import type { Work } from '../transactions/background.ts'
import type { Parts } from '../transactions/parts.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { newReplayRemoval, timesOf } from './replay-removal.ts'
import { type KeptRecord, readReplayRoom } from './replay-room.ts'
import { nameOf, type RequestName } from './request-name.ts'

export const replay_modes: readonly ReplayMode[] = ['answer', 'reject', 'off']

/** New results, those of a repeat, or a refusal. */
export type Outcome = OpResult[] | Repeat | Fault

export interface Repeat {
  readonly is_repeat: true
  readonly results: OpResult[]
}

type Ops = readonly (Op | OpResult)[]
export type ApplyOps = (tx: Transaction, ops: Ops, caller: Caller) => OpResult[]

export interface Replays {
  readonly mode: ReplayMode
  /** Undefined for a request whose repeat is applied again. Throws `format_error`. */
  nameOf(ops: Ops, caller: Caller, is_change?: boolean): RequestName | undefined
  /** Applies ops unless they were applied under this name. */
  applyOnce(tx: Transaction, name: RequestName, ops: Ops, caller: Caller, apply: ApplyOps): Outcome
  /** Counts a durable record. */
  onKept(record: KeptRecord): void
  bytes(): number
  /** Servers accept timestamps this far from now; 0: any. */
  onWindow(window_s: number): void
  readonly work: Work
}

const not_kept = 'request_key is not served: this server keeps no replays'
const too_many_kept = 'too much is kept to answer repeats of your requests (replay_bytes_max)'
/** Room is freed by time alone, in hours for keys. */
const retry_full_s = 60

export async function openReplays(
  { store, clock, limits, emit, wake }: Parts,
  mode: ReplayMode = 'answer',
): Promise<Replays> {
  if (!replay_modes.includes(mode)) {
    throw new RangeError(`replay: ${String(mode)} is none of ${replay_modes.join(', ')}`)
  }
  let window_s = limits.window_ms / 1_000
  const room = await store.view((view) => readReplayRoom(view, limits.replay_bytes_max))
  /** Callers refused for their bytes since the last removal. */
  const full_callers = new Set<string>()
  /** Beginnings of periods with records, newest first. */
  const periods = await store.view(readPeriods)
  const any = { ...keysOfType('replay'), limit: 1 }
  const has_records = await store.view((view) => view.scan(any).length > 0)
  let times = timesOf(window_s)
  const removal = newReplayRemoval({
    ...{ store, clock, times: () => times, periods, wake, has_records },
    onRemoved(kind, end_s) {
      room.removed(kind, end_s)
      full_callers.clear()
    },
  })

  /** `at_key` is the key under the request's own time. */
  function find(view: View, name: RequestName, at_key: Key | undefined): Buffer | undefined {
    const found = at_key === undefined ? undefined : view.get(at_key)
    if (found !== undefined) return found
    const { in_kind } = kindsOf(name)
    for (const period_s of periods[in_kind]) {
      const found = view.get(replayKey(in_kind, period_s, name.caller, name.id))
      if (found !== undefined) return found
    }
    return undefined
  }

  /** The period in which a request is kept whose time is unknown or far from ours. */
  function periodOf(name: RequestName, now_s: number): number {
    const { in_kind, of } = kindsOf(name)
    const period_s = now_s - (now_s % times[of].period_s)
    const known = periods[in_kind]
    if (!known.includes(period_s)) known.unshift(period_s)
    return period_s
  }

  /** Why a new request is refused, if it is. */
  function refusal(name: RequestName): Fault | undefined {
    const { caller = '' } = name
    if (!room.isFullFor(caller)) return undefined
    if (!full_callers.has(caller)) {
      full_callers.add(caller)
      emit('replays_full', { caller: name.caller, bytes: room.bytesOf(caller), of: room.bytes() })
    }
    return fault('rate_limited', too_many_kept, { retry_after_s: retry_full_s })
  }

  function repeated(
    tx: Transaction,
    record: DecodedReplay,
    { digest }: RequestName,
    ops: Ops,
    caller: Caller,
    apply: ApplyOps,
  ): Outcome {
    if (digest !== undefined && digest !== record.digest) return fault('request_key_reused')
    if (mode === 'reject') return fault('repeated_request')
    const results = record.results(ops).map((result, at) => {
      const op = ops[at] as Op | OpResult
      if (result === undefined) return apply(tx, [op], caller)[0] as OpResult
      return isOp(op) && op.type === 'create' && op.identity ? withTask(tx, result) : result
    })
    return { is_repeat: true, results }
  }

  return {
    mode,
    nameOf(ops, caller, is_change) {
      if (mode !== 'off') return nameOf(ops, caller, is_change)
      if (caller.request_key !== undefined) throw fault('format_error', not_kept)
      return undefined
    },
    applyOnce(tx, name, ops, caller, apply) {
      const at_key = atKeyOf(name)
      const found = find(tx.store, name, at_key)
      if (found !== undefined) {
        const record = decodeReplay(found, !name.is_signed)
        if (record !== 'damaged') return repeated(tx, record, name, ops, caller, apply)
        return fault('repeated_request', 'this request was applied before; its answer is damaged')
      }
      const refused = refusal(name)
      if (refused !== undefined) return refused
      const results = apply(tx, ops, caller)
      const { at_kind, in_kind, of } = kindsOf(name)
      const now_s = Math.floor(tx.now_ms / 1_000)
      const own_s = name.time_s ?? Number.NEGATIVE_INFINITY
      const is_near = at_key !== undefined && Math.abs(own_s - now_s) <= times[of].near_s
      const time_s = is_near ? own_s : periodOf(name, now_s)
      const key = is_near ? at_key : replayKey(in_kind, time_s, name.caller, name.id)
      const record = encodeReplay(ops, results, name.digest)
      removal.begin()
      tx.store.put(key, record)
      const bytes = key.length + record.length
      const kind = is_near ? at_kind : in_kind
      name.kept = { kind, time_s, caller: name.caller ?? '', bytes }
      const counts = room.toSave()
      if (counts !== undefined) tx.store.put(...counts)
      return results
    },
    onKept: room.add,
    bytes: room.bytes,
    onWindow(server_s) {
      if (window_s !== 0) window_s = server_s === 0 ? 0 : Math.max(window_s, server_s)
      times = timesOf(window_s)
    },
    work: removal,
  }
}

/** The first second that does not fit into a key. */
const times_end_s = 2 ** 32

export interface Periods {
  readonly signed_in: number[]
  readonly keyed_in: number[]
}

const signed_kinds = { of: 'signed', at_kind: 'signed_at', in_kind: 'signed_in' } as const
const keyed_kinds = { of: 'keyed', at_kind: 'keyed_at', in_kind: 'keyed_in' } as const

function kindsOf({ is_signed }: RequestName): typeof signed_kinds | typeof keyed_kinds {
  return is_signed ? signed_kinds : keyed_kinds
}

function atKeyOf(name: RequestName): Key | undefined {
  const { caller, id, time_s } = name
  if (time_s === undefined || time_s >= times_end_s) return undefined
  return replayKey(kindsOf(name).at_kind, time_s, caller, id)
}

function readPeriods(view: View): Periods {
  const periods: Periods = { signed_in: [], keyed_in: [] }
  for (const kind of ['signed_in', 'keyed_in'] as const) {
    let { from, to } = replaysOf(kind)
    for (;;) {
      const [last] = view.scan({ from, to, limit: 1, reverse: true })
      if (last === undefined) break
      const { time_s } = replayOfKey(last.key)
      periods[kind].push(time_s)
      to = replaysIn(kind, 0, time_s).to
    }
  }
  return periods
}

/** The task of an earlier create, as its repeat gets it while the task lives. */
function withTask(tx: Transaction, result: OpResult): OpResult {
  if (result.obj_id === undefined || result.proc !== 'ok') return result
  const draft = loadTask(tx.store, result.obj_id)
  if (draft === undefined || draft === 'damaged') return { ...result, is_gone: true }
  return { ...result, task: viewTask(draft.task) }
}

export interface SharedRecords {
  readonly until_ms: number
  store(tx: Pick<Tx, 'put'>): void
}

const mark_key = metaKey('replays_shared')
const kept_ms = 3 * 86_400_000

export function readSharedRecords(view: View, now_ms: number): SharedRecords {
  const mark = view.get(mark_key)
  if (mark !== undefined) return { until_ms: Number(mark.toString()), store() {} }
  const kinds = ['keyed_at', 'keyed_in'] as const
  const has_any = kinds.some((kind) => view.scan({ ...replaysOf(kind), limit: 1 }).length > 0)
  const until_ms = has_any ? now_ms + kept_ms : 0
  let is_stored = false
  return {
    until_ms,
    store(tx) {
      if (is_stored) return
      is_stored = true
      tx.put(mark_key, Buffer.from(String(until_ms)))
    },
  }
}
