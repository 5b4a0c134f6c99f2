/**
 * Judges a history of ops against what is there once all faults have healed.
 *
 * The list that a task has in the end puts its writes in a row, and each read right behind the last
 * value it saw. The history is right where no two ops stand the other way round in this row than one
 * after the other in time: then the row is a serial execution that explains every answer (and as
 * this holds for each task, it holds for all of them together).
 */
import type { Op } from './history.ts'

/** By ref, the values of each task that has it. */
export type FinalState = ReadonlyMap<string, readonly (readonly string[])[]>

export const wrongs = {
  lost: 'acknowledged or seen, and not there',
  doubled: 'there more than once',
  refused_but_there: 'refused, and there nevertheless',
  foreign: 'there, and sent by nobody',
  stale: 'a read without what was acknowledged before it began',
  back: 'a read that shows less than one that had ended before it began',
  disordered: 'in an order that no serial execution explains',
} as const

export type Wrong = keyof typeof wrongs

export interface Verdict {
  readonly acknowledged: number
  readonly unknown: number
  readonly refused: number
  readonly reads: number
  /** A sentence for each. */
  readonly wrong: Readonly<Record<Wrong, readonly string[]>>
}

export function check(ops: readonly Op[], final: FinalState): Verdict {
  const wrong: Record<Wrong, string[]> = {
    ...{ lost: [], doubled: [], refused_but_there: [], foreign: [] },
    ...{ stale: [], back: [], disordered: [] },
  }
  const by_ref = new Map<string, Op[]>([...final.keys()].map((ref) => [ref, []]))
  for (const op of ops) {
    const group = by_ref.get(op.ref)
    if (group === undefined) by_ref.set(op.ref, [op])
    else group.push(op)
  }
  for (const [ref, own] of by_ref) {
    const emit = (what: Wrong, text: string): void => void wrong[what].push(`${ref}: ${text}`)
    const lists = final.get(ref) ?? []
    if (lists.length > 1) emit('doubled', `${lists.length} tasks`)
    checkRef(own, lists[0] ?? [], emit)
  }
  const writes = ops.filter(({ kind }) => kind !== 'read')
  const count = (outcome: Op['outcome']): number =>
    writes.filter((op) => op.outcome === outcome).length
  return {
    acknowledged: count('ok'),
    unknown: count('unknown'),
    refused: count('refused'),
    reads: ops.filter(({ kind, outcome }) => kind === 'read' && outcome === 'ok').length,
    wrong,
  }
}

export function isRight({ wrong }: Verdict): boolean {
  return Object.values(wrong).every((sentences) => sentences.length === 0)
}

type Emit = (what: Wrong, text: string) => void

/** `place` is where in the row an op stands: a write at its own, a read behind the last it saw. */
interface Placed {
  readonly op: Op
  readonly place: number
}

function checkRef(ops: readonly Op[], list: readonly string[], emit: Emit): void {
  const places = new Map(list.map((value, at) => [value, at]))
  if (places.size < list.length) emit('doubled', `values of ${list.join(' ')}`)
  const writes = ops.filter(({ kind }) => kind !== 'read')
  const writers = new Map(writes.map((op) => [op.value, op]))
  for (const value of places.keys()) if (!writers.has(value)) emit('foreign', value)
  const row: Placed[] = []
  for (const op of writes) {
    const place = places.get(op.value ?? '')
    if (place === undefined) {
      if (op.outcome === 'ok') emit('lost', `${op.value}`)
      continue
    }
    if (op.outcome === 'refused') emit('refused_but_there', `${op.value}`)
    if (op.kind === 'create' && place > 0) emit('disordered', `${op.value} is created at ${place}`)
    row.push({ op, place })
  }
  for (const op of ops) {
    const { seen } = op
    if (op.outcome === 'unknown' || seen === undefined) continue
    const missing = seen.filter((value) => !places.has(value))
    if (missing.length > 0) emit('lost', `a read saw ${missing.join(' ')}`)
    else if (seen.some((value, at) => value !== list[at])) {
      emit('disordered', `a read saw ${seen.join(' ')} of ${list.join(' ')}`)
    } else row.push({ op: { ...op, kind: 'read' }, place: seen.length - 0.5 })
  }
  checkOrder(row, emit)
}

/** Each op against the one that ended first of those that stand behind it in the row. */
function checkOrder(row: readonly Placed[], emit: Emit): void {
  const sorted = row.toSorted((one, other) => other.place - one.place)
  let first: Placed | undefined
  for (let at = 0; at < sorted.length; ) {
    const { place } = sorted[at] as Placed
    const equal = sorted.slice(at).findIndex((other) => other.place !== place)
    const group = sorted.slice(at, equal === -1 ? sorted.length : at + equal)
    for (const { op } of group) {
      if (first !== undefined && first.op.ended_ms < op.began_ms) {
        emit(wrongOf(op, first.op), `${say(op)} began after ${say(first.op)} had ended`)
      }
    }
    for (const placed of group) {
      if (first === undefined || placed.op.ended_ms < first.op.ended_ms) first = placed
    }
    at += group.length
  }
}

function wrongOf({ kind }: Op, before: Op): Wrong {
  if (kind !== 'read') return 'disordered'
  return before.kind === 'read' ? 'back' : 'stale'
}

function say({ kind, value, seen }: Op): string {
  return kind === 'read' ? `a read of ${seen?.at(-1) ?? 'nothing'}` : `${kind} ${value}`
}
