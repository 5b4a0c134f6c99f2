/**
 * One life of a node: it joins the cluster, follows the owner as a standby, takes the ownership
 * over when the rules allow it, and owns the data until the close or until another node has it.
 *
 *     join → follow ⇄ takeOver → own → end
 *
 * An owner answers only while it has its lease, and commits only while the row has its epoch. Once
 * another node has taken over, the store has failed for good; whoever holds the engine closes it,
 * and may open it again, as a standby: that is another life.
 */
import { readFileSync } from 'node:fs'
import { keepAlive, pause } from '../core/clock.ts'
import { type Fault, fault } from '../core/faults.ts'
import { version } from '../core/version.ts'
import type { CommitLogOpening } from '../store/commit-log/source.ts'
import type { CommitLogTree } from '../store/commit-log/tree.ts'
import type { Tree } from '../store/tree.ts'
import { isAway } from './connection.ts'
import { catchUp, type Following, follow, type Taken } from './follow.ts'
import { type NodeCopy, openNodeCopy } from './node-copy.ts'
import { type NodeFile, openNodeFile, placeInLog } from './node-file.ts'
import { connectionFor, type NodeSettings } from './node-settings.ts'
import type { StatusKeeper } from './node-status.ts'
import { type Claimant, readOwnerRow } from './owner-row.ts'
import { postgresCommitLog } from './postgres-log.ts'
import { checkedCluster } from './schema.ts'
import { beginTenure, type Tenure } from './tenure.ts'

export interface NodeLife {
  /** Resolves once this node owns the data. The close of its tree ends the life. */
  readonly owned: Promise<Tree>
  /** Ends the wait for the ownership: `owned` rejects with `shutting_down`. */
  leave(): void
  /** What this node has; undefined before it has joined, and after its end. */
  tree(): CommitLogTree | undefined
  hasLease(): boolean
}

export interface LifeOptions {
  readonly settings: NodeSettings
  readonly opening: CommitLogOpening
  readonly status: StatusKeeper
  /** An operator wants another node to be the owner. */
  onHandOver(): void
  /** Nothing of this life is open any more. */
  onEnd(): void
}

const retry_ms = 250

export function beginLife(options: LifeOptions): NodeLife {
  const { settings, opening, status, onHandOver } = options
  const { clock, partition, node, address, lease_ms } = settings
  const work = connectionFor(settings, 'log')
  const watch = connectionFor(settings, 'lease')
  let copy: NodeCopy | undefined
  let tenure: Tenure | undefined
  let ending: Promise<void> | undefined
  let has_left = false
  let leave = (): void => {}
  const left = new Promise<void>((resolve) => {
    leave = () => {
      has_left = true
      resolve()
    }
  })

  async function live(): Promise<Tree> {
    const endWait = keepAlive()
    try {
      status.set({ role: 'joining' })
      const joined = await untilThere(join)
      copy = openNodeCopy(opening, joined, commitLog())
      for (;;) {
        const following = followingOf(copy)
        const followed = await follow(following)
        if (followed.end === 'left') throw waitEnded()
        if (followed.end === 'behind') throw tooFarBehind()
        const owned = await takeOver(copy, following, followed)
        if (owned !== undefined) return owned
      }
    } catch (error) {
      await end()
      throw error
    } finally {
      endWait()
    }
  }

  /** Finds the cluster, and the place of the data file in its log. */
  async function join(): Promise<NodeFile> {
    await work.connect()
    const cluster = await checkedCluster(work)
    const row = await readOwnerRow(work, partition)
    if (row === undefined) throw noPartition(partition)
    const of = { cluster_id: cluster.id, partition, log_id: row.log_id }
    const file = openNodeFile(opening.tree, opening.path, of, opening.bytes)
    const place = await placeInLog(work, partition, file.manifest, opening.path)
    if (place === 'behind') throw tooFarBehind()
    return file
  }

  /** Asks again while the database is away; what else is wrong rejects. */
  async function untilThere<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const found = await ask()
        status.onBack()
        return found
      } catch (error) {
        if (!isAway(error)) throw error
        status.onAway(error)
      }
      await pause(clock, retry_ms, left)
      if (has_left) throw waitEnded()
    }
  }

  function followingOf({ tree, take, file }: NodeCopy): Following {
    const { file_id } = file.mark
    const boot_id = bootId()
    const claimant: Claimant = { partition, node, address, lease_ms, version, file_id, boot_id }
    return {
      ...{ connection: work, clock, claimant, left, take },
      hasLeft: () => has_left,
      seq: tree.seq,
      async checkOwnable() {
        opening.claim(tree)
        await opening.checkKey(tree)
      },
      onSeen(seen, now_ms, is_behind) {
        const owner = seen.released ? undefined : { node: seen.node, address: seen.address }
        const caught_up_ms = is_behind ? status.current().caught_up_ms : now_ms
        status.set({ role: 'standby', epoch: seen.epoch, owner, caught_up_ms })
      },
      onAway: status.onAway,
      onBack: status.onBack,
    }
  }

  /** Undefined where another node has taken over meanwhile: this one is a standby again. */
  async function takeOver(
    { tree }: NodeCopy,
    following: Following,
    taken: Taken,
  ): Promise<Tree | undefined> {
    const begun = beginTenure({ settings, connection: watch, taken, status, onHandOver })
    tenure = begun
    await catchUp(following)
    if (begun.lost() !== undefined) return undefined
    status.set({ epoch: taken.epoch, owner: { node, address } })
    const changes = opening.claim(tree)
    if (changes !== undefined) await tree.commit(changes)
    status.set({ role: 'owner' })
    return {
      ...tree,
      unavailable: begun.unavailable,
      onBroken(callback) {
        begun.onLost((reason) => {
          status.set({ role: 'ended' })
          callback(reason)
        })
        tree.onBroken?.((cause) => {
          begun.close()
          status.set({ role: 'ended' })
          callback(cause)
        })
      },
      close: end,
    }
  }

  function commitLog() {
    return postgresCommitLog({
      ...{ connection: work, clock, partition },
      epoch: () => tenure?.epoch ?? 0,
      async release() {
        await tenure?.release()
        status.set({ role: 'ended' })
      },
      onMerged() {},
      onAppended(sent_ms) {
        status.set({ append_ms: clock.now_ms() - sent_ms })
        status.onBack()
      },
      onAway: status.onAway,
    })
  }

  function end(): Promise<void> {
    ending ??= (async () => {
      try {
        await copy?.tree.close()
      } finally {
        tenure?.close()
        status.set({ role: 'ended', seq: copy?.tree.seq() ?? status.current().seq })
        copy = undefined
        await Promise.all([work.close(), watch.close()])
        options.onEnd()
      }
    })()
    return ending
  }

  return {
    owned: live(),
    leave,
    tree: () => copy?.tree,
    hasLease: () => tenure !== undefined && tenure.unavailable() === undefined,
  }
}

/** Of the running system; empty where it does not say. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}

function waitEnded(): Fault {
  return fault('shutting_down', 'the wait for the data has ended')
}

function tooFarBehind(): Fault {
  return fault('not_possible', 'the log begins after this file')
}

function noPartition(partition: number): Fault {
  const init = `run \`npx conveyor cluster init --partition ${partition}\``
  return fault('not_possible', `the cluster has no partition ${partition}: ${init}`)
}
