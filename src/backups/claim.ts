/**
 * Begins a tenure in a backup target. The data file and the last tenure share a random token, so
 * only the file that wrote last continues: a copy of it, an older state and another file are
 * refused. The file has the new token before the target has, and keeps the last one, so that a kill
 * between the two changes nothing.
 */
import { parsePlain } from '../codec/json.ts'
import type { Chance } from '../core/clock.ts'
import { type Fault, fault, isFault } from '../core/faults.ts'
import { newChangeBuffer } from '../store/changes/change-buffer.ts'
import type { Frame } from '../store/commit-log/frame.ts'
import { backup_mark_key } from '../store/commit-log/manifest.ts'
import type { CommitLogTree } from '../store/commit-log/tree.ts'
import {
  backup_format,
  type History,
  lastShipped,
  readHistory,
  type TenureBegin,
} from './history.ts'
import { beginName, tenureName } from './names.ts'
import { readFrames } from './read-parts.ts'
import type { BackupTarget } from './target.ts'

export interface ClaimPort {
  readonly tree: Pick<CommitLogTree, 'get' | 'commit' | 'seq'>
  readonly target: BackupTarget
  readonly chance: Chance
  /** Id of the commit log, in hex. */
  readonly log: string
  /** The frame of this position, if it is in memory. */
  frameAt(seq: number): Pick<Frame, 'crc'> | undefined
  /** Whether memory has all frames after this position. */
  hasAllAfter(seq: number): boolean
}

export interface Claim {
  readonly tenure: number
  /** Frames after this position are shipped. */
  readonly seq: number
  /** What the target had before. */
  readonly history: History
  /** False if only a snapshot leads to the frames of this tenure. */
  readonly is_continued: boolean
}

const token_bytes = 16

/** Throws `not_possible` if another file or copy has the target, or the target's error. */
export async function claim(port: ClaimPort): Promise<Claim> {
  const { tree, target, chance, log } = port
  const history = await readHistory(target)
  const last = history.tenures.at(-1)
  const shipped = lastShipped(history)
  const tokens = tokensIn(tree)
  const known = last && tokens.includes(last.begin.token) ? last.begin.token : undefined
  if (last !== undefined && shipped !== undefined) {
    if (last.begin.log !== log) throw otherFile(target)
    if (tokens.length > 0 && known === undefined) throw otherCopy(target)
    if (shipped > tree.seq()) throw olderCopy(target, shipped, tree.seq())
  }
  const end = shipped === undefined ? 'unknown' : await compareEnds(port, history, shipped)
  if (end === 'other') throw otherCopy(target)
  const continues =
    known !== undefined && shipped !== undefined && end !== 'damaged' && port.hasAllAfter(shipped)
  const token = chance.bytes(token_bytes).toString('hex')
  const changes = newChangeBuffer()
  const kept = known === undefined ? [token] : [token, known]
  changes.put(backup_mark_key, Buffer.from(JSON.stringify(kept)))
  const seq = continues ? shipped : tree.seq()
  await tree.commit(changes)
  const tenure = (last?.number ?? 0) + 1
  const begin: TenureBegin = { format: backup_format, log, token, seq }
  if (!(await target.create(beginName(tenure), Buffer.from(JSON.stringify(begin))))) {
    throw Object.assign(new Error(`${tenureName(tenure)} was begun meanwhile`), { code: 'begun' })
  }
  return { tenure, seq, history, is_continued: continues }
}

/** Whether the last frame in the target is the one of this file, as far as memory can say. */
async function compareEnds(
  port: ClaimPort,
  history: History,
  shipped: number,
): Promise<'same' | 'other' | 'damaged' | 'unknown'> {
  const own = port.frameAt(shipped)
  const part = history.frames.at(-1)
  if (own === undefined || part?.last_seq !== shipped) return 'unknown'
  try {
    const frames = await readFrames(port, part)
    return frames.at(-1)?.crc === own.crc ? 'same' : 'other'
  } catch (error) {
    if (isFault(error)) return 'damaged'
    throw error
  }
}

function tokensIn(tree: ClaimPort['tree']): readonly string[] {
  const bytes = tree.get(backup_mark_key)
  return bytes === undefined ? [] : (parsePlain(bytes.toString('utf8')) as string[])
}

const helps = 'name an empty folder'

function otherFile({ says }: BackupTarget): Fault {
  return fault('not_possible', `${says} has the backup of another data file; ${helps}`)
}

function otherCopy({ says }: BackupTarget): Fault {
  const copy = 'another copy of this data file has written to'
  return fault('not_possible', `${copy} ${says}; stop one of the two, or ${helps}`)
}

function olderCopy({ says }: BackupTarget, shipped: number, seq: number): Fault {
  const has = `${says} has position ${shipped}, and this data file only ${seq}`
  return fault('not_possible', `${has}: it is an older copy; restore the backup, or ${helps}`)
}
