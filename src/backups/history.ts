/**
 * What a backup target has, read from its listing and the beginnings of its tenures: which
 * positions a restore can reach, and from which snapshot. Positions decide; times are labels.
 *
 * A tenure says at which position it began, and what earlier tenures have after that does not
 * count: a process that went on writing after another took over adds nothing to the history.
 */
import { parsePlain } from '../codec/json.ts'
import { fault } from '../core/faults.ts'
import {
  beginName,
  type FramesName,
  framesOf,
  type SnapshotName,
  snapshotOf,
  tenureOf,
} from './names.ts'
import type { BackupTarget } from './target.ts'

export const backup_format = 1

/** The first object of a tenure. */
export interface TenureBegin {
  readonly format: number
  /** Id of the commit log, in hex. */
  readonly log: string
  /** Random; the data file has it too while this tenure is the last. */
  readonly token: string
  /** Its first frame follows this position. */
  readonly seq: number
}

export interface Tenure {
  readonly number: number
  readonly begin: TenureBegin
  /** Its frames up to the beginning of the next tenure, in order. */
  readonly frames: readonly FramesName[]
  readonly snapshots: readonly SnapshotName[]
}

export interface History {
  readonly tenures: readonly Tenure[]
  /** Of all tenures, in order; a part may be cut by the beginning of the next tenure. */
  readonly frames: readonly (FramesName & { readonly until_seq: number })[]
  readonly snapshots: readonly SnapshotName[]
}

/** Throws `not_a_database`, `newer_format` or the error of the target. */
export async function readHistory(target: BackupTarget): Promise<History> {
  const objects = await target.list('')
  const numbers = [...new Set(objects.map(({ name }) => tenureOf(name)))]
    .filter((number) => number !== undefined)
    .sort((one, other) => one - other)
  const begun = new Map<number, TenureBegin>()
  for (const number of numbers) {
    const begin = await readBegin(target, number)
    // A snapshot or frames without it are left by a removal that was interrupted.
    if (begin !== undefined) begun.set(number, begin)
  }
  const logs = new Set([...begun.values()].map(({ log }) => log))
  if (logs.size > 1) throw fault('not_possible', `${target.says} has parts of ${logs.size} files`)
  const tenures: Tenure[] = []
  for (const [number, begin] of begun) {
    const own = objects.filter(({ name }) => tenureOf(name) === number)
    const frames = own.flatMap(({ name, bytes }) => framesOf(name, bytes) ?? [])
    const snapshots = own.flatMap(({ name }) => snapshotOf(name) ?? [])
    frames.sort((one, other) => one.first_seq - other.first_seq)
    tenures.push({ number, begin, frames, snapshots })
  }
  return historyOf(tenures)
}

function historyOf(all: readonly Tenure[]): History {
  const tenures: Tenure[] = []
  const frames: (FramesName & { until_seq: number })[] = []
  for (const [n, tenure] of all.entries()) {
    const until_seq = Math.min(...all.slice(n + 1).map(({ begin }) => begin.seq))
    const kept = tenure.frames.filter(({ first_seq }) => first_seq <= until_seq)
    const snapshots = tenure.snapshots.filter(({ seq }) => seq <= until_seq)
    tenures.push({ ...tenure, frames: kept, snapshots })
    for (const part of kept) {
      frames.push({ ...part, until_seq: Math.min(part.last_seq, until_seq) })
    }
  }
  const snapshots = tenures.flatMap((tenure) => tenure.snapshots)
  return { tenures, frames, snapshots: snapshots.sort((one, other) => one.seq - other.seq) }
}

async function readBegin(target: BackupTarget, number: number): Promise<TenureBegin | undefined> {
  const bytes = await target.read(beginName(number))
  if (bytes === undefined) return undefined
  const begin = beginOf(bytes)
  if (begin === undefined) {
    throw fault('not_a_database', `${beginName(number)} in ${target.says} is damaged`)
  }
  if (begin.format > backup_format) {
    const says = `${target.says} was written by a later version; use that one`
    throw fault('newer_format', says)
  }
  return begin
}

function beginOf(bytes: Buffer): TenureBegin | undefined {
  try {
    const begin = parsePlain(bytes.toString('utf8')) as TenureBegin
    const { format, log, token, seq } = begin
    const is_whole =
      Number.isInteger(format) &&
      Number.isInteger(seq) &&
      /^[0-9a-f]{16}$/.test(log) &&
      typeof token === 'string'
    return is_whole ? begin : undefined
  } catch {
    return undefined
  }
}

/** The last position of the last tenure; undefined for an empty target. */
export function lastShipped({ tenures }: History): number | undefined {
  const last = tenures.at(-1)
  return last && Math.max(last.begin.seq, ...last.frames.map(({ last_seq }) => last_seq))
}

/** A snapshot and the parts that follow it without a gap. */
export interface Run {
  readonly snapshot: SnapshotName
  readonly parts: History['frames']
  readonly last_seq: number
}

/** One per snapshot, in order. */
export function runsOf({ snapshots, frames }: History): Run[] {
  return snapshots.map((snapshot) => {
    const parts: History['frames'][number][] = []
    let last_seq = snapshot.seq
    for (const part of frames) {
      if (part.until_seq <= last_seq) continue
      if (part.first_seq > last_seq + 1) break
      parts.push(part)
      last_seq = part.until_seq
    }
    return { snapshot, parts, last_seq }
  })
}
