/**
 * The handle of a node: what `openEngine` takes as its commit log in PostgreSQL, and what tells of
 * the node while the engine opens and afterwards. Each `open` is one life of the node
 * (node-life.ts), one at a time; the status goes on from life to life.
 */
import { fault } from '../core/faults.ts'
import type { CommitLogSource } from '../store/commit-log/source.ts'
import type { BackupFile } from '../store/store.ts'
import { beginLife, type NodeLife } from './node-life.ts'
import { nodeSettings, type PostgresLogOptions } from './node-settings.ts'
import { listenerIn, newStatusKeeper } from './node-status.ts'
import { type NodeStatus, notOwnerText } from './roles.ts'

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
  backup(path: string): Promise<BackupFile>
}

/** Throws `not_possible` for options that cannot be. Nothing is asked before `openEngine`. */
export function postgresLog(options: PostgresLogOptions): PostgresLog {
  const settings = nodeSettings(options)
  const { node } = settings
  const hand_over_listeners = new Set<() => void>()
  let life: NodeLife | undefined
  const status = newStatusKeeper({
    ...settings,
    live: () => ({
      ...(life?.tree() === undefined ? {} : { seq: life.tree()?.seq() ?? 0 }),
      has_lease: life?.hasLease() ?? false,
      append_ms: life?.append_ms() ?? 0,
      ...life?.snapshots(),
    }),
  })

  async function backup(path: string): Promise<BackupFile> {
    const tree = life?.tree()
    if (tree === undefined) throw fault('not_possible', 'this node has no data open')
    return tree.backup(path)
  }

  return {
    node,
    async open(opening) {
      if (life !== undefined) {
        throw fault('not_possible', `an engine has the commit log of node ${node} already`)
      }
      status.begin(opening.tell)
      for (;;) {
        const begun = beginLife({
          ...{ settings, opening, status },
          onHandOver() {
            for (const listener of hand_over_listeners) listener()
          },
          onEnd() {
            life = undefined
          },
        })
        life = begun
        const owned = await begun.owned
        if (owned !== 'anew') return owned
      }
    },
    status: status.current,
    onRole: status.onRole,
    onHandOver: (listener) => listenerIn(hand_over_listeners, listener),
    leave: () => life?.leave(),
    backup,
    standby: { backup, says: () => notOwnerText(status.current()) },
  }
}
