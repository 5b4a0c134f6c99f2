/**
 * The tree of an owner: answers only while the lease holds, fails once the ownership is lost, and
 * gives it up once it can no longer commit.
 */
import type { Clock } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { CommitLog } from '../../store/commit-log/commit-log.ts'
import type { CommitLogTree } from '../../store/commit-log/tree.ts'
import type { Tree } from '../../store/tree.ts'
import type { Lease } from '../ownership/lease.ts'
import { isOwnershipLost } from '../ownership/owner-row.ts'
import type { StatusKeeper } from './status.ts'
import { commitLogError } from './status.ts'

export interface OwnedTreeOptions {
  readonly lease: Lease
  readonly commit_log: Pick<CommitLog, 'close'>
  readonly clock: Clock
  readonly status: StatusKeeper
  readonly node: string
  /** The database has lost commits; `log_set_back` was emitted. */
  isSetBack(): boolean
  /** A commit is unanswered and blocks the others. */
  isInDoubt(): boolean
  close(): Promise<void>
}

/** A close checks this often whether the database is back. */
const give_up_ms = 1_000

export function ownedTree(tree: CommitLogTree, options: OwnedTreeOptions): Tree {
  const { lease, commit_log, clock, status, node } = options
  let cancelEnd: (() => void) | undefined
  return {
    ...tree,
    unavailable: () => (lease.isValid() ? undefined : noLease(lease.lost())),
    commitLogError: () => commitLogError(status.current()),
    emitBroken(cause) {
      if (options.isSetBack()) return
      const error = cause instanceof Error ? cause.message : String(cause)
      if (isOwnershipLost(cause)) status.emit('ownership_lost', { node, epoch: lease.epoch })
      else status.emit('commit_log_failed', { node, error })
    },
    onBroken(callback) {
      lease.onLost((reason) => {
        status.set({ role: 'ended' })
        callback(reason)
      })
      tree.onBroken?.((cause) => {
        void lease.release()
        status.set({ role: 'ended' })
        callback(cause)
      })
    },
    endWithin(ms) {
      const giveUp = (): void => {
        if (status.current().away_since_ms !== undefined) return void commit_log.close()
        cancelEnd = clock.wake_at(clock.now_ms() + give_up_ms, giveUp)
      }
      cancelEnd ??= clock.wake_at(clock.now_ms() + ms, giveUp)
    },
    async backup(path) {
      if (!options.isInDoubt()) return tree.backup(path)
      const says = 'the database does not answer, and a commit waits for it'
      const helps = 'stop this node, and take the `npx conveyor backup FILE` of its data file then'
      throw fault('overloaded', `${says}: ${helps}`)
    },
    close: () => options.close().finally(() => cancelEnd?.()),
  }
}

/** A retry finds this owner or the next. */
function noLease(lost: Fault | undefined): Fault {
  const says = lost?.message ?? 'the database does not answer, so this node cannot either'
  return fault('overloaded', `${says}: try again`)
}
