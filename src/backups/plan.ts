/**
 * Finds how a target restores a position: the newest snapshot before it, and the parts from there.
 * Never answers with another position than the one that was asked for, unless a time lies between
 * two that follow each other. Pure.
 */
import { type Fault, fault } from '../core/faults.ts'
import { type History, lastShipped, type Run, runsOf } from './history.ts'

export type Goal =
  | { readonly to: 'latest' }
  | { readonly to: 'time'; readonly at_ms: number }
  | { readonly to: 'position'; readonly seq: number }

export interface Plan {
  readonly run: Run
  readonly to_seq: number
  /** When the target had this position, by the clock of the server. */
  readonly at_ms: number
}

interface Point {
  readonly run: Run
  readonly seq: number
  readonly at_ms: number
}

/** Throws `not_possible` with a sentence that names what the target has. */
export function planRestore(history: History, goal: Goal, says: string, now_ms: number): Plan {
  const runs = runsOf(history)
  const first = runs[0]
  const shipped = lastShipped(history)
  if (shipped === undefined) throw fault('not_possible', `${says} has no backup`)
  if (first === undefined) {
    throw fault('not_possible', `${says} has no complete snapshot yet; wait for the first one`)
  }
  // The last run that has a position has the fewest parts.
  const points = runs.flatMap(pointsOf)
  const planOf = ({ run, seq, at_ms }: Point): Plan => ({ run, to_seq: seq, at_ms })
  const last = points.reduce((one, other) => (other.seq >= one.seq ? other : one))
  if (goal.to === 'latest') {
    if (last.seq < shipped) throw gap(says, last, shipped)
    return planOf(last)
  }
  if (goal.to === 'position') {
    const { seq } = goal
    if (seq < first.snapshot.seq) {
      const has = `${says} begins with position ${first.snapshot.seq}`
      throw fault('not_possible', `${has}, at ${time(first.snapshot.at_ms)}: name a later one`)
    }
    if (seq > Math.max(last.seq, shipped)) {
      throw fault('not_possible', `${says} ends with position ${last.seq}; --latest restores it`)
    }
    const run = runs.findLast(({ snapshot, last_seq }) => snapshot.seq <= seq && seq <= last_seq)
    if (run !== undefined) {
      const part = run.parts.find(({ until_seq }) => until_seq >= seq)
      const at_ms = seq === run.snapshot.seq ? run.snapshot.at_ms : part?.at_ms
      return { run, to_seq: seq, at_ms: at_ms ?? run.snapshot.at_ms }
    }
    const before = points.filter((point) => point.seq < seq)
    const after = Math.min(...points.filter((point) => point.seq > seq).map((point) => point.seq))
    throw gap(says, before.at(-1) ?? last, Number.isFinite(after) ? after : shipped)
  }
  const { at_ms } = goal
  if (at_ms > now_ms) {
    throw fault('not_possible', `${time(at_ms)} is in the future; --latest restores what is there`)
  }
  const earlier = points.filter((point) => point.at_ms <= at_ms)
  if (earlier.length === 0) {
    const begins = Math.min(...points.map((point) => point.at_ms))
    throw fault('not_possible', `${says} begins at ${time(begins)}; name a later time`)
  }
  const found = earlier.reduce((one, other) => (other.seq >= one.seq ? other : one))
  const next = Math.min(...points.filter(({ seq }) => seq > found.seq).map(({ seq }) => seq))
  const ends_here = runs.every(
    ({ snapshot, last_seq }) => snapshot.seq > found.seq || last_seq <= found.seq,
  )
  if (ends_here && (Number.isFinite(next) || found.seq < shipped)) {
    throw gap(says, found, Number.isFinite(next) ? next : shipped)
  }
  return planOf(found)
}

function pointsOf(run: Run): Point[] {
  const { snapshot, parts } = run
  return [
    { run, seq: snapshot.seq, at_ms: snapshot.at_ms },
    ...parts.map(({ until_seq, at_ms }) => ({ run, seq: until_seq, at_ms })),
  ]
}

function gap(says: string, before: Pick<Point, 'seq' | 'at_ms'>, after_seq: number): Fault {
  const has = `${says} cannot restore what is between position ${before.seq}`
  const is = `(${time(before.at_ms)}) and ${after_seq}: parts are missing there`
  const helps = `--to-position ${before.seq} restores what is before`
  return fault('not_possible', `${has} ${is}; ${helps}`)
}

export function time(ms: number): string {
  return new Date(ms).toISOString()
}
