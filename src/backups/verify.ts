/**
 * Reads every snapshot and every part of a target once, checks them, and removes what is older than
 * a snapshot once all that stays is whole.
 */
import { type Fault, fault, isFault } from '../core/faults.ts'
import type { History } from './history.ts'
import { runsOf } from './history.ts'
import { beginName, framesOf, type SnapshotName, tenureName } from './names.ts'
import { chunksOf, readFrames, type Source } from './read-parts.ts'

export interface Verified {
  readonly bytes: number
  readonly snapshots: number
  readonly parts: number
  /** A sentence per damage, and for an end that no snapshot leads to. */
  readonly problems: readonly string[]
  /** A sentence per gap that a snapshot follows: the target was away, or parts are lost. */
  readonly gaps: readonly string[]
}

/** From the snapshot `from` on, or all. */
export async function verifyAll(
  source: Source,
  history: History,
  from?: SnapshotName,
): Promise<Verified> {
  const problems: string[] = []
  let bytes = 0
  const first_seq = from?.seq ?? 0
  const snapshots = history.snapshots.filter(({ seq }) => seq >= first_seq)
  const frames = history.frames.filter(({ until_seq }) => until_seq > first_seq)
  const note = (error: unknown): void => {
    if (!isFault(error)) throw error
    problems.push(error.message)
  }
  for (const snapshot of snapshots) {
    try {
      for await (const [chunk] of chunksOf(source, snapshot)) bytes += chunk?.bytes.length ?? 0
    } catch (error) {
      note(error)
    }
  }
  for (const part of frames) {
    await readFrames(source, part).catch(note)
    bytes += part.bytes
  }
  const gaps: string[] = []
  for (const { seq, next_seq, is_closed } of gapsOf(history)) {
    if (seq < first_seq) continue
    const says = `parts are missing between position ${seq} and ${next_seq}`
    ;(is_closed ? gaps : problems).push(says)
  }
  return { bytes, snapshots: snapshots.length, parts: frames.length, problems, gaps }
}

export interface Gap {
  /** The last position before it, and the first after it that can be restored. */
  readonly seq: number
  readonly next_seq: number
  /** Whether a snapshot follows. */
  readonly is_closed: boolean
}

/** Gaps after which frames or a snapshot follow. */
export function gapsOf(history: History): Gap[] {
  const gaps: Gap[] = []
  const runs = runsOf(history)
  const last_seq = Math.max(0, ...history.frames.map(({ until_seq }) => until_seq))
  let reach = runs[0]?.last_seq ?? 0
  for (const { snapshot, last_seq: ends } of runs) {
    if (snapshot.seq > reach) {
      gaps.push({ seq: reach, next_seq: snapshot.seq, is_closed: true })
    }
    reach = Math.max(reach, ends)
  }
  if (last_seq > reach) gaps.push({ seq: reach, next_seq: last_seq, is_closed: false })
  return gaps
}

export interface Keep {
  /** Every moment after it stays. */
  readonly since_ms: number
  /** So many snapshots stay at least. */
  readonly snapshots: number
}

/** The oldest snapshot that stays; undefined if nothing may go. */
export function keptFrom({ snapshots }: History, keep: Keep): SnapshotName | undefined {
  const by_time = snapshots.findLastIndex(({ at_ms }) => at_ms <= keep.since_ms)
  const by_count = snapshots.length - Math.max(1, keep.snapshots)
  const at = Math.min(by_time, by_count)
  return at <= 0 ? undefined : snapshots[at]
}

/**
 * Removes what no restore from `kept` on needs. Rejects with `not_possible`, without a change, if a
 * part that stays is damaged or missing. An interrupted removal is finished by the next one.
 */
export async function prune(
  source: Source,
  history: History,
  kept: SnapshotName,
): Promise<{ readonly removed: number; readonly bytes: number }> {
  const { problems } = await verifyAll(source, history, kept)
  const [problem] = problems
  if (problem !== undefined) throw notWhole(problem)
  const { target } = source
  let [removed, bytes] = [0, 0]
  const remove = async (object: { readonly name: string; readonly bytes: number }) => {
    await target.remove(object.name)
    removed++
    bytes += object.bytes
  }
  for (const tenure of history.tenures) {
    const prefix = `${tenureName(tenure.number)}/`
    const begin = beginName(tenure.number)
    const objects = (await target.list(prefix)).filter(({ name }) => name !== begin)
    const old = objects.filter(({ name }) => isBefore(name, kept.seq))
    // A snapshot without its end is none, so that goes first.
    old.sort(
      (one, other) => Number(other.name.endsWith('/end')) - Number(one.name.endsWith('/end')),
    )
    for (const object of old) await remove(object)
    const is_last = tenure === history.tenures.at(-1)
    if (!is_last && old.length === objects.length) await remove({ name: begin, bytes: 0 })
  }
  return { removed, bytes }
}

function isBefore(name: string, seq: number): boolean {
  const frames = framesOf(name, 0)
  if (frames !== undefined) return frames.last_seq <= seq
  const [, of_snapshot] = /\/snapshot-([0-9]{16})-/.exec(name) ?? []
  return of_snapshot !== undefined && Number(of_snapshot) < seq
}

function notWhole(problem: string): Fault {
  return fault('not_possible', `nothing was removed, because what stays is not whole: ${problem}`)
}
