/**
 * A node: opens the data file as a copy of the commit log in PostgreSQL, follows the owner as a
 * standby, and becomes the owner when the rules allow it. One call of `open` is one such life: it
 * resolves with the tree of an owner, and ends with the close of that tree.
 *
 * An owner answers only while it has its lease, and commits only while the row has its epoch. Once
 * another node has taken over, the store has failed for good; whoever holds the engine closes it,
 * and may open it again, as a standby.
 */
import { readFileSync } from 'node:fs'
import { type Clock, keepAlive, pause, steadyClock } from '../core/clock.ts'
import type { Tell } from '../core/events.ts'
import { type Fault, fault } from '../core/faults.ts'
import { version } from '../core/version.ts'
import type { CommitLogOpening, CommitLogSource } from '../store/commit-log/source.ts'
import { type CommitLogTree, commitLogTree } from '../store/commit-log/tree.ts'
import { writerOver } from '../store/commit-log/writer.ts'
import type { Tree } from '../store/tree.ts'
import { type Connection, isAway, newConnection } from './connection.ts'
import { catchUp, type Following, follow } from './follow.ts'
import { type Lease, newLease } from './lease.ts'
import { openNodeFile, placeInLog } from './node-file.ts'
import { type Claimant, readOwnerRow } from './owner-row.ts'
import { postgresCommitLog } from './postgres-log.ts'
import type { NodeStatus } from './roles.ts'
import { checkedCluster } from './schema.ts'
import { targetOf } from './target.ts'

export interface PostgresLogOptions {
  /** `postgres://USER@HOST:PORT[,HOST:PORT]/DATABASE?sslmode=verify-full`, without a password. */
  readonly url: string
  /** The name of this node: one for each data file. */
  readonly node: string
  /** Where this node answers when it is the owner, for those who ask another; default none. */
  readonly address?: string
  /** Default 0. */
  readonly partition?: number
  /** After so long without a sign of the owner another node takes over; default 5,000. */
  readonly lease_ms?: number
  /** Takes a database whose settings may lose what was answered; default false. */
  readonly unsafe?: boolean
  /** In place of the system's, for tests; it must never be set. */
  readonly clock?: Clock
}

export interface PostgresLog extends CommitLogSource {
  readonly node: string
  status(): NodeStatus
  /** Called after each change of role; the returned function ends it. */
  onRole(listener: (status: NodeStatus) => void): () => void
  /** Called where an operator wants another node to be the owner: close the engine then. */
  onHandOver(listener: () => void): () => void
  /** Ends the wait for the ownership: an `open` under way rejects with `shutting_down`. */
  leave(): void
  /** A copy that opens alone, of what this node has, in any role. Rejects as `Engine.backup`. */
  backup(path: string): Promise<number>
}

export const lease_default_ms = 5_000
const lease_ms_min = 100
/** However short the lease is, the database gets this long to answer. */
const answer_ms_min = 1_000

/** Throws `not_possible` for options that cannot be. Nothing is asked before `openEngine`. */
export function postgresLog(options: PostgresLogOptions): PostgresLog {
  const { node, address = '', partition = 0, lease_ms = lease_default_ms } = options
  const { clock = steadyClock } = options
  const target = targetOf(options.url, node, options.unsafe)
  if (!/^[\w.-]{1,60}$/.test(node)) {
    throw fault('not_possible', 'the name of a node has 1 to 60 letters, digits, dots and dashes')
  }
  if (!Number.isSafeInteger(lease_ms) || lease_ms < lease_ms_min) {
    throw fault('not_possible', `a lease is a whole number of ms, at least ${lease_ms_min}`)
  }
  const role_listeners = new Set<(status: NodeStatus) => void>()
  const hand_over_listeners = new Set<() => void>()
  let status: NodeStatus = newStatus(node, partition)
  let tree: CommitLogTree | undefined
  let lease: Lease | undefined
  let leave = (): void => {}
  let tell: Tell = () => {}

  function set(changes: Partial<NodeStatus>): void {
    const { role } = status
    status = { ...status, ...changes }
    if (status.role === role) return
    const { epoch, seq, owner } = current()
    tell('role', { node, role: status.role, was: role, epoch, seq, owner: owner?.node ?? '' })
    for (const listener of role_listeners) listener(status)
  }

  function current(): NodeStatus {
    return { ...status, seq: tree?.seq() ?? status.seq, has_lease: lease?.isValid() ?? false }
  }

  function onAway(error: unknown): void {
    if (status.away_since_ms !== undefined) return
    const reason = error instanceof Error ? error.message : String(error)
    set({ away_since_ms: clock.now_ms(), away_reason: reason })
    tell('database_away', { node, role: status.role, reason })
  }

  function onBack(): void {
    const { away_since_ms } = status
    if (away_since_ms === undefined) return
    set({ away_since_ms: undefined, away_reason: undefined })
    tell('database_back', {
      node,
      role: status.role,
      ms: Math.round(clock.now_ms() - away_since_ms),
    })
  }

  function connectionFor(purpose: string): Connection {
    return newConnection({
      target,
      purpose,
      clock,
      answer_ms_max: Math.max(lease_ms, answer_ms_min),
    })
  }

  async function open(opening: CommitLogOpening): Promise<Tree> {
    let has_left = false
    const left = new Promise<void>((resolve) => {
      leave = () => {
        has_left = true
        resolve()
      }
    })
    tell = opening.tell
    status = { ...newStatus(node, partition), role: 'ended' }
    const work = connectionFor('log')
    const watch = connectionFor('lease')
    const release = keepAlive()
    try {
      set({ role: 'joining' })
      await untilThere(() => work.connect(), { left, hasLeft: () => has_left })
      const cluster = await checkedCluster(work)
      const row = await readOwnerRow(work, partition)
      if (row === undefined) throw noPartition(partition)
      const of = { cluster_id: cluster.id, partition, log_id: row.log_id }
      const file = openNodeFile(opening.tree, opening.path, of, opening.bytes)
      const place = await placeInLog(work, partition, file.manifest, opening.path)
      if (place === 'behind') throw fault('not_possible', 'the log begins after this file')
      const claimant: Claimant = {
        ...{ partition, node, address, lease_ms, version },
        ...{ file_id: file.mark.file_id, boot_id: bootId() },
      }
      let failed: ((cause: Fault) => void) | undefined
      const commit_log = postgresCommitLog({
        ...{ connection: work, clock, partition },
        epoch: () => status.epoch,
        async release() {
          await lease?.release()
          set({ role: 'ended' })
        },
        onMerged() {},
        onAppended(sent_ms) {
          set({ append_ms: clock.now_ms() - sent_ms })
          onBack()
        },
        onAway,
      })
      const opened = commitLogTree(
        opening.tree,
        opening.path,
        file.manifest,
        writerOver(commit_log, file.manifest),
        {
          place: {
            files: [],
            is_left_behind: false,
            start: () => Promise.resolve(undefined),
            remove: () => Promise.resolve(),
          },
          tell,
          reserve_bytes: opening.reserve_bytes,
        },
      )
      tree = opened
      const close = async (): Promise<void> => {
        try {
          await opened.close()
        } finally {
          lease?.close()
          lease = undefined
          tree = undefined
          set({ role: 'ended', seq: opened.seq() })
          await Promise.all([work.close(), watch.close()])
        }
      }
      try {
        const following: Following = {
          ...{ connection: work, clock, claimant, left },
          hasLeft: () => has_left,
          seq: opened.seq,
          take: opened.take,
          async checkOwnable() {
            opening.claim(opened)
            await opening.checkKey(opened)
          },
          onSeen(seen, now_ms, is_behind) {
            const owner = seen.released ? undefined : { node: seen.node, address: seen.address }
            const caught_up_ms = is_behind ? status.caught_up_ms : now_ms
            set({ role: 'standby', epoch: seen.epoch, owner, caught_up_ms })
          },
          onAway,
          onBack,
        }
        const followed = await follow(following)
        if (followed.end === 'behind') throw fault('not_possible', 'the log begins after this file')
        if (followed.end !== 'owner')
          throw fault('shutting_down', 'the wait for the data has ended')
        const { epoch, taken_ms } = followed
        status = { ...status, epoch }
        lease = newLease({
          ...{ connection: watch, clock, partition, epoch, lease_ms, taken_ms },
          onLost() {
            failed?.(fault('store_failed', 'another node owns the data now'))
            set({ role: 'ended' })
          },
          onHandOver() {
            for (const listener of hand_over_listeners) listener()
          },
          onAway,
          onBack,
        })
        await catchUp(following)
        const changes = opening.claim(opened)
        if (changes !== undefined) await opened.commit(changes)
        set({ role: 'owner', owner: { node, address } })
        return {
          ...opened,
          unavailable: () => (lease?.isValid() === true ? undefined : noLease()),
          onBroken(callback) {
            failed = callback
            opened.onBroken?.(callback)
          },
          close,
        }
      } catch (error) {
        await close()
        throw error
      }
    } catch (error) {
      await Promise.all([work.close(), watch.close()])
      set({ role: 'ended' })
      throw error
    } finally {
      release()
    }
  }

  /** Asks again while the database is away; what else is wrong rejects. */
  async function untilThere(
    ask: () => Promise<void>,
    { left, hasLeft }: { readonly left: Promise<void>; hasLeft(): boolean },
  ): Promise<void> {
    for (;;) {
      try {
        await ask()
        return onBack()
      } catch (error) {
        if (!isAway(error)) throw error
        onAway(error)
      }
      await pause(clock, retry_ms, left)
      if (hasLeft()) throw fault('shutting_down', 'the wait for the data has ended')
    }
  }

  return {
    node,
    open,
    status: current,
    onRole: (listener) => listenerIn(role_listeners, listener),
    onHandOver: (listener) => listenerIn(hand_over_listeners, listener),
    leave: () => leave(),
    async backup(path) {
      if (tree === undefined) throw fault('not_possible', 'this node has no data open')
      return tree.backup(path)
    },
  }
}

const retry_ms = 250

function listenerIn<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function newStatus(node: string, partition: number): NodeStatus {
  return {
    ...{ role: 'ended', node, partition, epoch: 0, seq: 0, owner: undefined },
    ...{ away_since_ms: undefined, away_reason: undefined, has_lease: false },
    ...{ caught_up_ms: undefined, append_ms: 0 },
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

function noLease(): Fault {
  return fault('overloaded', 'the database does not answer, so this node cannot either; try again')
}

function noPartition(partition: number): Fault {
  const init = `run \`npx conveyor cluster init --partition ${partition}\``
  return fault('not_possible', `the cluster has no partition ${partition}: ${init}`)
}
