/**
 * The handle of a node, which is the commit log of `openEngine`, and its status. Each `open` is one
 * life of the node (life.ts), one at a time; the status outlives a life.
 */
import { rm } from 'node:fs/promises'
import { type Fault, fault } from '../../core/faults.ts'
import { emptyNodeFault, nodeDataText } from '../../store/commit-log/node-mark.ts'
import type { CommitLogSource } from '../../store/commit-log/source.ts'
import type { BackupFile } from '../../store/store.ts'
import { beginLife, type NodeData, type NodeLife } from './life.ts'
import { nodeSettings, type PostgresLogOptions } from './settings.ts'
import { listenerIn, type NodeStatus, newStatusKeeper, notOwnerText } from './status.ts'

export interface PostgresLog extends CommitLogSource {
  readonly node: string
  status(): NodeStatus
  /** Called after each change of role; the returned function unsubscribes. */
  onRole(listener: (status: NodeStatus) => void): () => void
  /** Called when an operator requests a hand-over: close the engine then. */
  onHandOver(listener: () => void): () => void
  /** Stops waiting for the ownership: an `open` under way rejects with `shutting_down`. */
  leave(): void
  /** A copy of this node's data that opens alone, in any role. Rejects like `Engine.backup`. */
  backup(path: string): Promise<BackupFile>
}

/** Throws `not_possible` for invalid options. Connects at `open`. */
export function postgresLog(options: PostgresLogOptions): PostgresLog {
  const settings = nodeSettings(options)
  const { node } = settings
  const hand_over_listeners = new Set<() => void>()
  let life: NodeLife | undefined
  const status = newStatusKeeper({
    ...settings,
    live: () => ({
      ...seqOf(life?.data()),
      has_lease: life?.hasLease() ?? false,
      append_ms: life?.append_ms() ?? 0,
      ...life?.snapshots(),
    }),
  })

  async function backup(path: string): Promise<BackupFile & { readonly has: string }> {
    const data = life?.data()
    if (data === undefined) throw fault('not_possible', `the node ${node} is closed: ask again`)
    const { tree, seq } = data
    const empty = (): Fault | undefined => emptyNodeFault(tree, node, seq)
    const refused = empty()
    if (refused !== undefined) throw refused
    const has = nodeDataText(tree, seq)
    const made = await tree.backup(path)
    const is_part = empty()
    if (is_part === undefined) return { ...made, has }
    await rm(made.path, { force: true })
    throw is_part
  }

  function refusal(): Fault {
    const now = status.current()
    const data = life?.data()
    const { away_since_ms, away_reason } = now
    if (away_since_ms === undefined) {
      return fault('not_possible', notOwnerText(now, 'operator'))
    }
    const has = data === undefined ? '' : `; it has ${nodeDataText(data.tree, data.seq)}`
    const away_s = Math.round((settings.clock.now_ms() - away_since_ms) / 1000)
    const says = `the node ${node} has no answer of its database for ${away_s} s (${away_reason})`
    return fault('overloaded', `${says}${has}, and \`npx conveyor backup FILE\` copies that`)
  }

  return {
    node,
    async open(opening) {
      if (life !== undefined) {
        throw fault('not_possible', `an engine has the commit log of node ${node} already`)
      }
      status.begin(opening.emit)
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
        if (owned !== 'rejoin') return owned
      }
    },
    status: status.current,
    onRole: status.onRole,
    onHandOver: (listener) => listenerIn(hand_over_listeners, listener),
    leave: () => life?.leave(),
    ...{ backup, standby: { backup, refusal } },
  }
}

function seqOf(data: NodeData | undefined): { readonly seq?: number } {
  return data === undefined ? {} : { seq: data.seq }
}
