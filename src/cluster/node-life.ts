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
import { answerMsMax, connectionFor, type NodeSettings } from './node-settings.ts'
import type { StatusKeeper } from './node-status.ts'
import { type Claimant, readOwnerRow } from './owner-row.ts'
import { postgresCommitLog } from './postgres-log.ts'
import { checkedCluster } from './schema.ts'
import { loadSnapshot } from './snapshot-load.ts'
import { newSnapshots, type Snapshots } from './snapshots.ts'
import { beginTenure, type Tenure } from './tenure.ts'

export interface NodeLife {
  /**
   * Resolves once this node owns the data; the close of its tree ends the life. `behind` where the
   * log does not reach back to this node any more: the life has ended, and the next one joins anew.
   */
  readonly owned: Promise<Tree | 'behind'>
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
  let snapshots: Snapshots | undefined
  let ending: Promise<void> | undefined
  let has_left = false
  let leave = (): void => {}
  const left = new Promise<void>((resolve) => {
    leave = () => {
      has_left = true
      resolve()
    }
  })

  async function live(): Promise<Tree | 'behind'> {
    const endWait = keepAlive()
    try {
      status.set({ role: 'joining' })
      const found = await untilThere(join)
      const joined = found.is_behind ? await load(found.file) : found.file
      copy = openNodeCopy(opening, joined, commitLog())
      for (;;) {
        const following = followingOf(copy)
        const followed = await follow(following)
        if (followed.end === 'left') throw waitEnded()
        if (followed.end === 'behind') {
          await end()
          return 'behind'
        }
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
  async function join(): Promise<{ readonly file: NodeFile; readonly is_behind: boolean }> {
    await work.connect()
    const cluster = await checkedCluster(work)
    const row = await readOwnerRow(work, partition)
    if (row === undefined) throw noPartition(partition)
    const of = { cluster_id: cluster.id, partition, log_id: row.log_id }
    const file = openNodeFile(opening.tree, opening.path, of, opening.bytes)
    if (file.mark.is_loading) return { file, is_behind: true }
    const place = await placeInLog(work, partition, file.manifest, opening.path)
    return { file, is_behind: place === 'behind' }
  }

  /** Takes the newest snapshot in place of what the data file has. */
  async function load(file: NodeFile): Promise<NodeFile> {
    const { tell, tree, path } = opening
    const loaded = await loadSnapshot({
      ...{ connection: work, clock, partition, tree, file, tell, node, left },
      hasLeft: () => has_left,
      async onBegin({ seq }) {
        status.set({ seq })
      },
      onLoaded: (loading) => status.set({ loading }),
      onAway: status.onAway,
      onBack: status.onBack,
    })
    status.set({ loading: undefined })
    const { manifest } = loaded
    const place = await untilThere(() => placeInLog(work, partition, manifest, path))
    if (place === 'behind') throw noSnapshot()
    return loaded
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
    snapshots = newSnapshots({
      ...{ tree, clock, tell: opening.tell, options: settings.snapshot },
      job: {
        ...{ path: opening.path, node, partition, epoch: taken.epoch },
        ...{ url: settings.target.url, unsafe: settings.target.unsafe },
        answer_ms_max: answerMsMax(settings),
      },
      connect: () => connectionFor(settings, 'snapshot'),
    })
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
        // Without it another node takes over after the lease.
        await tenure?.release().catch((error: unknown) => {
          if (!isAway(error)) throw error
        })
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
      const ended = snapshots?.close()
      try {
        await copy?.tree.close()
      } finally {
        await ended
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

function noSnapshot(): Fault {
  const says = 'the commit log in the database does not reach back to this node'
  return fault('not_possible', `${says}, and there is no snapshot before it: restore the database`)
}

function noPartition(partition: number): Fault {
  const init = `run \`npx conveyor cluster init --partition ${partition}\``
  return fault('not_possible', `the cluster has no partition ${partition}: ${init}`)
}
