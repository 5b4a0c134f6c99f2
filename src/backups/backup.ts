/**
 * Continuous backup of an open data file: ships the frames of its commit log to a target behind the
 * commits. No commit and no answer waits for any of it. What the target does not take waits in
 * memory; beyond `waiting_bytes_max` it is dropped, and a snapshot leads past the gap. A snapshot
 * follows once the frames after the last one exceed the state, so a restore reads at most twice the
 * state. Each tenure begins with `claim`; the process that began the last one writes alone.
 */
import { type Chance, type Clock, keepAlive, pause, steadyClock, within } from '../core/clock.ts'
import type { Emit } from '../core/events.ts'
import { isFault } from '../core/faults.ts'
import { threadStart } from '../core/thread-start.ts'
import type { CommitLogTree } from '../store/commit-log/tree.ts'
import { chunk_default_bytes } from '../store/snapshots/chunk.ts'
import { type SnapshotThread, startSnapshotThread } from '../store/snapshots/thread.ts'
import { type Claim, claim } from './claim.ts'
import { beginName, framesName } from './names.ts'
import { openTarget } from './open-target.ts'
import { type BackupOptions, backup_defaults } from './options.ts'
import type { BackupSnapshotJob, WrittenBackupSnapshot } from './snapshot-script.ts'
import type { BackupTarget } from './target.ts'
import { newWaitingFrames } from './waiting-frames.ts'

export interface Backup {
  state(): BackupState
  /** Ships what waits, for at most `close_ms_max`. Before the close of the tree; never rejects. */
  close(): Promise<void>
}

export interface BackupState {
  /** The target has all frames up to it; undefined before the tenure. */
  readonly seq: number | undefined
  /** For how long the oldest frame has waited; 0 if none waits. */
  readonly lag_ms: number
  readonly waiting_bytes: number
  readonly is_away: boolean
  /** Why it has ended for good. */
  readonly refused: string | undefined
}

export interface BackupPort {
  readonly tree: CommitLogTree
  readonly path: string
  /** Names the target; see open-target. */
  readonly to: string
  readonly clock: Clock
  readonly chance: Chance
  readonly emit: Emit
  readonly options?: BackupOptions
  /** Replaces that of `to`, but not in the thread of snapshots. */
  readonly target?: BackupTarget
}

const retry_growth_max = 30
const reads_per_lag = 10
/** Faults of a target that only an operator can mend. */
const lasting: readonly string[] = ['not_possible', 'not_a_database', 'newer_format']

/**
 * Throws `not_possible` if `to` names no target, or in a bundle without its threads. Returns before
 * the target is asked anything.
 */
export function startBackup(port: BackupPort): Backup {
  const { tree, path, to, clock, chance, emit } = port
  const options = { ...backup_defaults, ...port.options }
  const script = threadStart(import.meta.url, 'snapshot-script')
  const target = port.target ?? openTarget(to, chance)
  let refused: string | undefined
  const waiting = newWaitingFrames(options.waiting_bytes_max)
  const reader = tree.readFrames((frames) => {
    if (refused === undefined) waiting.add(frames, clock.now_ms())
  })
  const log = reader.id.toString('hex')
  let tenure: number | undefined
  let shipped_seq: number | undefined
  /** A snapshot has to come before what is shipped can be restored. */
  let has_gap = true
  /** Of frames after the last snapshot. */
  let after_bytes = 0
  let snapshot: SnapshotThread<WrittenBackupSnapshot> | undefined
  let no_snapshot_until_ms = Number.NEGATIVE_INFINITY
  let [overflows, unlogged] = [0, 0]
  let away_since_ms: number | undefined
  let read_ms = steadyClock.now_ms()
  let is_closing = false
  let close = (): void => {}
  const closed = new Promise<void>((resolve) => {
    close = resolve
  })

  function read(): void {
    read_ms = steadyClock.now_ms()
    reader.read()
    if (overflows === waiting.overflows() && unlogged === reader.unlogged()) return
    if (overflows !== waiting.overflows()) emit('backup_gap', { target: target.says })
    overflows = waiting.overflows()
    unlogged = reader.unlogged()
    has_gap = true
  }

  async function begin(): Promise<void> {
    const unlogged_before = reader.unlogged()
    const hasAllAfter = (seq: number): boolean => {
      const first = waiting.first()
      const follows = first === undefined ? tree.seq() === seq : first.first_seq <= seq + 1
      return follows && waiting.overflows() === 0 && unlogged_before === 0
    }
    const { frameAt } = waiting
    read()
    const begun: Claim = await claim({ tree, target, chance, log, frameAt, hasAllAfter })
    waiting.dropTo(begun.seq)
    const { snapshots, frames } = begun.history
    const newest = snapshots.at(-1)
    has_gap = !begun.is_continued || newest === undefined || waiting.overflows() > 0
    for (const part of frames) if (part.last_seq > (newest?.seq ?? 0)) after_bytes += part.bytes
    shipped_seq = begun.seq
    tenure = begun.tenure
    emit('backup_target', { target: target.says, seq: begun.seq, is_continued: begun.is_continued })
  }

  /** False if another process has begun a tenure. */
  async function ship(): Promise<boolean> {
    for (let part = waiting.first(); part !== undefined; part = waiting.first()) {
      const number = tenure as number
      if (await target.has(beginName(number + 1))) return false
      await target.create(framesName(number, part), part.bytes)
      // An overflow may have dropped it meanwhile.
      if (waiting.first() === part) waiting.shift()
      after_bytes += part.bytes.length
      shipped_seq = part.last_seq
      back()
    }
    return true
  }

  function back(): void {
    if (away_since_ms === undefined) return
    const ms = Math.round(steadyClock.now_ms() - away_since_ms)
    away_since_ms = undefined
    emit('backup_target_back', { target: target.says, ms })
  }

  function away(reason: string): void {
    if (away_since_ms !== undefined) return
    away_since_ms = steadyClock.now_ms()
    emit('backup_target_away', { target: target.says, reason })
  }

  /** A target that hangs is reported, and waited for. */
  async function answered<T>(work: Promise<T>): Promise<T> {
    const answer = work.then((value) => ({ value }))
    const first = await within(steadyClock, options.lag_ms * 10, answer)
    if (first === 'late') away('it does not answer')
    return (await answer).value
  }

  function beginSnapshot(): void {
    const state_bytes = tree.numbers?.().used_bytes ?? 0
    const is_due = after_bytes > Math.max(options.snapshot_bytes_min, state_bytes)
    if ((!has_gap && !is_due) || snapshot !== undefined || is_closing) return
    if (steadyClock.now_ms() < no_snapshot_until_ms) return
    const began_ms = steadyClock.now_ms()
    const before = { bytes: after_bytes, has_gap }
    after_bytes = 0
    has_gap = false
    const job: BackupSnapshotJob = {
      ...{ path, target: to, tenure: tenure as number, log },
      ...{ chunk_bytes: chunk_default_bytes, bytes_per_s_max: options.bytes_per_s_max },
    }
    const thread = startSnapshotThread<WrittenBackupSnapshot>(script, job, tree.atRest)
    snapshot = thread
    const done = ({ seq, bytes, chunks }: WrittenBackupSnapshot): void => {
      const ms = Math.round(steadyClock.now_ms() - began_ms)
      emit('backup_snapshot', { target: target.says, seq, bytes, chunks, ms })
    }
    const failed = (error: unknown): void => {
      after_bytes += before.bytes
      has_gap ||= before.has_gap
      no_snapshot_until_ms = steadyClock.now_ms() + options.retry_ms * retry_growth_max
      const reason = error instanceof Error ? error.message : String(error)
      if (!is_closing) emit('backup_snapshot_failed', { target: target.says, reason })
    }
    void thread.written
      .then(done, failed)
      .then(() => thread.stop())
      .finally(() => {
        snapshot = undefined
      })
  }

  async function step(): Promise<void> {
    read()
    if (tenure === undefined) await answered(begin())
    if (!(await answered(ship()))) {
      const other = 'another process writes to the target: two have copies of this data file'
      refused = `${other}; stop one of them, or name an empty folder`
      emit('backup_refused', { target: target.says, reason: refused })
      return
    }
    back()
    beginSnapshot()
  }

  /** Until frames are due. */
  async function idle(): Promise<void> {
    while (!is_closing) {
      await pause(steadyClock, options.lag_ms / reads_per_lag, closed)
      if (reader.unread_bytes() >= options.part_bytes) return
      if (steadyClock.now_ms() - read_ms >= options.lag_ms) return
    }
  }

  async function run(): Promise<void> {
    let retry_ms = options.retry_ms
    for (let is_last = false; refused === undefined && !is_last; ) {
      // What is read once the close has begun is the rest.
      is_last = is_closing
      try {
        await step()
        retry_ms = options.retry_ms
        if (refused === undefined) await idle()
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (isFault(error) && lasting.includes(error.code)) {
          refused = reason
          emit('backup_refused', { target: target.says, reason })
        } else {
          away(reason)
          read()
          await pause(steadyClock, retry_ms, closed)
          retry_ms = Math.min(2 * retry_ms, options.retry_ms * retry_growth_max)
        }
      }
    }
    await snapshot?.stop()
  }
  const ended = run()

  return {
    state() {
      const first_ms = waiting.first()?.at_ms
      return {
        seq: shipped_seq,
        lag_ms: first_ms === undefined ? 0 : Math.max(0, clock.now_ms() - first_ms),
        waiting_bytes: waiting.bytes(),
        is_away: away_since_ms !== undefined,
        refused,
      }
    },
    async close() {
      is_closing = true
      close()
      read()
      const let_end = keepAlive()
      const is_shipped = await within(steadyClock, options.close_ms_max, ended)
      if (is_shipped === 'late') await snapshot?.stop()
      let_end()
    },
  }
}
