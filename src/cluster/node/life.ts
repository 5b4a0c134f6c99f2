/**
 * One life of a node: it joins, follows the owner as a standby, takes over when the rules allow it,
 * and owns the data until the close or a takeover by another node.
 *
 *     join → follow ⇄ takeOver → own → end
 *
 * An owner answers only while it has its lease, and commits only while the row has its epoch. After
 * a takeover the store has failed for good; its holder closes the engine and may open it again, as
 * a standby, in another life.
 */
import { keysOfType } from '../../codec/keys.ts'
import { keepAlive, within } from '../../core/clock.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { version } from '../../core/version.ts'
import { nodeSeq } from '../../store/commit-log/node-mark.ts'
import type { CommitLogOpening } from '../../store/commit-log/source.ts'
import type { CommitLogTree } from '../../store/commit-log/tree.ts'
import type { Tree } from '../../store/tree.ts'
import { type Connection, isAway } from '../database/connection.ts'
import { type Waiting, waitEnded } from '../database/waiting.ts'
import { catchUp, type Following, follow, type Taken } from '../ownership/follow.ts'
import { type Lease, newLease } from '../ownership/lease.ts'
import {
  type Claimant,
  isOwnershipLost,
  ownershipLost,
  readOwnerRow,
} from '../ownership/owner-row.ts'
import { postgresCommitLog } from '../ownership/postgres-log.ts'
import { newSnapshots, type Snapshots } from '../snapshots/snapshots.ts'
import { eligibilityOf } from './eligibility.ts'
import { identityOf, type NodeCopy, type NodeFile, newPlaceFinder, openNodeCopy } from './file.ts'
import { join } from './join.ts'
import { ownedTree } from './owned-tree.ts'
import { type Registration, register } from './rows.ts'
import { answerMsMax, connectionFor, type NodeSettings, renewalMsMax } from './settings.ts'
import { notOwnerText, notReadyText, type StatusKeeper } from './status.ts'

export interface NodeLife {
  /**
   * Resolves once this node owns the data; closing its tree ends the life. `rejoin` if the node
   * must join again: the log no longer reaches back to it, or the ownership was lost before its
   * first use.
   */
  readonly owned: Promise<Tree | 'rejoin'>
  /** Stops waiting for the ownership: `owned` rejects with `shutting_down`. */
  leave(): void
  /** Undefined before the data file has joined and after the end. */
  data(): NodeData | undefined
  hasLease(): boolean
  append_ms(): number
  snapshots(): ReturnType<Snapshots['state']> | undefined
}

export interface NodeData {
  readonly tree: Pick<Tree, 'get' | 'range' | 'backup'>
  /** Position of the last frame. */
  readonly seq: number
}

export interface LifeOptions {
  readonly settings: NodeSettings
  readonly opening: CommitLogOpening
  readonly status: StatusKeeper
  /** An operator requests a hand-over. */
  onHandOver(): void
  onEnd(): void
}

const start_id_bytes = 8
/** Key types with a key per task or commit. */
const read_at_opening = ['change', 'due', 'outbox', 'queue', 'ended', 'replay'] as const
const warm_every_ms = 250
/** The longest that a hand-over waits for the merge. */
const merge_ms_max = 20_000

export function beginLife(options: LifeOptions): NodeLife {
  const { settings, opening, status, onHandOver } = options
  const { clock, partition, node, address, lease_ms } = settings
  const placeInLog = newPlaceFinder(settings)
  const work = connectionFor(settings, 'log', checkPlace)
  const watch = connectionFor(settings, 'lease', checkPlace, renewalMsMax(settings))
  let copy: NodeCopy | undefined
  let lease: Lease | undefined
  let snapshots: Snapshots | undefined
  let ending: Promise<void> | undefined
  let is_read = false
  let registration: Registration | undefined
  let taken_name: Fault | undefined
  let is_set_back = false
  let is_in_doubt = false
  let append_ms = 0
  let warmed_ms = Number.NEGATIVE_INFINITY
  let has_left = false
  let leave = (): void => {}
  const left = new Promise<void>((resolve) => {
    leave = () => {
      has_left = true
      resolve()
    }
  })
  const { onAway, onBack } = status
  const waiting: Waiting = { clock, left, hasLeft: () => has_left, onAway, onBack }
  const commit_log = postgresCommitLog({
    ...{ connection: work, clock, partition },
    epoch: () => lease?.epoch ?? 0,
    async release() {
      await lease?.release()
      status.set({ role: 'ended' })
    },
    onMerged: (seq) => registration?.report(seq),
    onAppended(sent_ms) {
      is_in_doubt = false
      append_ms = clock.now_ms() - sent_ms
      status.onBack()
    },
    onAway(reason) {
      is_in_doubt = true
      status.onAway(reason)
    },
  })

  async function live(): Promise<Tree | 'rejoin'> {
    const endWait = keepAlive()
    try {
      status.set({ role: 'joining' })
      const file = await join({
        ...{ ...waiting, settings, opening, status, connection: work, register: registered },
        placeInLog,
      })
      copy = openNodeCopy(opening, file, commit_log)
      for (;;) {
        const following = followingOf(copy)
        const followed = await follow(following)
        if (followed === 'behind') break
        const owned = await takeOver(copy, following, followed)
        if (owned !== undefined) return owned
      }
    } catch (error) {
      if (!isOwnershipLost(error)) {
        await end()
        // Treated like any other file that does not fit its log.
        const has_failed = isFault(error) && error.code === 'store_failed'
        throw taken_name ?? (has_failed ? fault('not_possible', error.message) : error)
      }
    } finally {
      endWait()
    }
    await end()
    if (has_left) throw taken_name ?? waitEnded()
    return 'rejoin'
  }

  /** Checkpoints while the node still answers, so that it becomes a standby sooner. */
  async function prepareHandOver(): Promise<void> {
    const merged = copy?.tree.atRest(async () => {}).catch(() => {})
    await within(clock, merge_ms_max, Promise.resolve(merged))
    onHandOver()
  }

  async function registered(file: NodeFile, seq: number): Promise<Registration> {
    const { file_id, boot_id } = identityOf(opening.path, file.mark.file_id)
    registration = await register({
      ...{ ...waiting, connection: watch, partition, node, address, seq },
      reached: () => status.current().seq,
      holder: boot_id === '' ? '' : `${file_id}/${boot_id}`,
      start_id: opening.bytes(start_id_bytes).toString('hex'),
      unfit: () => notReadyText(status.current()) ?? '',
      onTaken(reason) {
        taken_name = reason
        leave()
        lease?.lose(fault('store_failed', reason.message))
        void lease?.release()
      },
    })
    return registration
  }

  /** Refuses a database that lacks frames of this node. */
  async function checkPlace(found: Pick<Connection, 'query'>): Promise<void> {
    if (copy === undefined) return
    // A log that was set back may give another node the same epoch.
    const row = lease && (await readOwnerRow(found, partition))
    const { file_id } = identityOf(opening.path, copy.file.mark.file_id)
    if (row !== undefined && row.epoch === lease?.epoch && row.file_id !== file_id) {
      throw ownershipLost()
    }
    try {
      await placeInLog(found, partition, copy.last(), opening.path)
    } catch (error) {
      if (!isFault(error) || isAway(error)) throw error
      const { role } = status.current()
      if (!is_set_back) opening.emit('log_set_back', { node, role, error: error.message })
      is_set_back = true
      throw fault('store_failed', error.message)
    }
  }

  function followingOf({ tree, take, file }: NodeCopy): Following {
    const identity = identityOf(opening.path, file.mark.file_id)
    const claimant: Claimant = { partition, node, address, lease_ms, version, ...identity }
    return {
      ...{ ...waiting, connection: work, claimant },
      onAway(reason) {
        onAway(reason)
        // If the database is lost for good, the data file is complete.
        void tree.atRest(async () => {}).catch(() => {})
      },
      async take(frames) {
        await take(frames)
        keepWarm(tree)
        if (is_read) await opening.reads?.taken(frames)
      },
      seq: tree.seq,
      log_id: file.manifest.id,
      isEligible: eligibilityOf({ opening, tree, clock, status, node }),
      async onSeen(seen, asked_ms, head_seq) {
        const is_behind = head_seq > tree.seq()
        const owner = seen.released ? undefined : { node: seen.node, address: seen.address }
        const before = status.current()
        const caught_up_ms = is_behind ? before.caught_up_ms : asked_ms
        status.set({ role: 'standby', epoch: seen.epoch, owner, caught_up_ms, head_seq })
        const is_ready = notReadyText(status.current()) === undefined
        if (is_ready !== (notReadyText(before) === undefined)) registration?.beat()
        if (!is_behind && !is_read) await beginReads(tree)
      },
    }
  }

  /** Sorts and reads in advance what an opening reads, so that a takeover is quick. */
  function keepWarm(tree: CommitLogTree): void {
    if (clock.now_ms() < warmed_ms + warm_every_ms) return
    for (const type of read_at_opening) {
      const { from, to } = keysOfType(type)
      for (const _ of tree.range(from, to, false)) break
    }
    warmed_ms = clock.now_ms()
  }

  async function beginReads(tree: CommitLogTree): Promise<void> {
    is_read = true
    await opening.reads?.begin({
      ...{ tree, seq: tree.seq },
      age_ms: () => clock.now_ms() - (status.current().caught_up_ms ?? 0),
      says: () => notOwnerText(status.current()),
    })
  }

  async function endReads(): Promise<void> {
    if (is_read) await opening.reads?.end()
    is_read = false
  }

  /** Undefined if another node was faster: this one stays a standby. */
  async function takeOver(
    { tree }: NodeCopy,
    following: Following,
    taken: Taken,
  ): Promise<Tree | undefined> {
    const begun = newLease({
      ...{ connection: watch, clock, partition, lease_ms, onAway, onBack },
      onHandOver: () => void prepareHandOver(),
      ...{ epoch: taken.epoch, taken_ms: taken.taken_ms },
      onSlow(ms) {
        status.emit('lease_tight', { node, ms: Math.round(ms), lease_ms })
      },
    })
    lease = begun
    await Promise.all([endReads(), catchUp(following)])
    if (!(await begun.untilValid(waiting))) {
      await begun.release()
      lease = undefined
      return undefined
    }
    status.set({ epoch: taken.epoch, owner: { node, address } })
    const changes = opening.claim(tree)
    if (changes !== undefined) await tree.commit(changes)
    status.set({ role: 'owner' })
    registration?.beat()
    snapshots = newSnapshots({
      ...{ tree, clock, emit: opening.emit, options: settings.snapshot },
      job: {
        ...{ path: opening.path, node, partition, epoch: taken.epoch },
        ...{ url: settings.database.url, unsafe: settings.database.unsafe },
        answer_ms_max: answerMsMax(settings),
      },
      connect: () => connectionFor(settings, 'snapshot'),
    })
    return ownedTree(tree, {
      ...{ lease: begun, commit_log, clock, status, node, close: end },
      isSetBack: () => is_set_back,
      isInDoubt: () => is_in_doubt,
    })
  }

  function end(): Promise<void> {
    ending ??= (async () => {
      const ended = snapshots?.close()
      const endWait = keepAlive()
      try {
        await endReads().finally(() => copy?.tree.close())
      } finally {
        await ended
        lease?.close()
        status.set({ role: 'ended', seq: copy?.tree.seq() ?? status.current().seq })
        copy = undefined
        await registration?.leave()
        await Promise.all([work.close(), watch.close()])
        options.onEnd()
        endWait()
      }
    })()
    return ending
  }

  return {
    owned: live(),
    leave,
    data() {
      const { tree } = copy ?? opening
      if (ending !== undefined) return copy && { tree, seq: copy.tree.seq() }
      return { tree, seq: copy?.tree.seq() ?? nodeSeq(tree) }
    },
    append_ms: () => append_ms,
    snapshots: () => snapshots?.state(),
    hasLease: () => lease?.isValid() === true,
  }
}
