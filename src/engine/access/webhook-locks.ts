/**
 * The secrets of locked webhooks, and of variables, encrypted like those of users and stored in the
 * transaction that stores what they are for.
 */
import { secretsOf } from '../../codec/keys.ts'
import type { Graph } from '../../process/graph.ts'
import { isStored, lockOf } from '../../process/webhook-lock.ts'
import type { Tx } from '../../store/store.ts'
import { removeAll } from '../transactions/scans.ts'
import type { GivenSecret, Secrets } from './secrets.ts'

export interface WebhookLocks {
  /** Throws `store_failed` without a usable key. */
  secretOf(conv_id: string): string | undefined
  /** What an import changes; `secret` is that of the definition, if it has a literal one. */
  changeOf(conv_id: string, graph: Graph, secret: string | undefined): LockChange | undefined
  /** Stores what `changes` say by `store`, which puts each. Rejects with `key_missing`. */
  change<Made>(
    changes: readonly (LockChange | undefined)[],
    store: (given: readonly (GivenSecret | undefined)[]) => Promise<Made>,
  ): Promise<Made>
  remove(tx: Tx, conv_id: string): void
  onRemoved(conv_id: string): void
  /** The same for any owner. */
  removeOf(tx: Tx, owner: string): void
  onRemovedOf(owner: string): void
}

export interface LockChange {
  readonly owner: string
  /** Undefined removes the secret. */
  readonly secret: string | undefined
}

/** Before a conv_id, in place of a user of the secret. No user has such an id. */
export const webhook_owner = 'webhook '
const webhookOwner = (conv_id: string): string => webhook_owner + conv_id

export function newWebhookLocks(secrets: Secrets): WebhookLocks {
  return {
    secretOf: (conv_id) => secrets.read(webhookOwner(conv_id))[0],
    changeOf(conv_id, graph, secret) {
      const owner = webhookOwner(conv_id)
      const [old] = secrets.known(owner)
      const lock = lockOf(graph)
      const is_stored = lock !== undefined && lock !== 'unknown' && isStored(lock)
      if (is_stored && secret === undefined) return undefined
      const next = is_stored ? secret : undefined
      return next === old ? undefined : { owner, secret: next }
    },
    async change(changes, store) {
      if (changes.every((one) => one === undefined)) return store([])
      return secrets.inTurn(async () => {
        const given: (GivenSecret | undefined)[] = []
        for (const one of changes) {
          given.push(one && (await secrets.give(one.owner, one.secret)))
        }
        const made = await store(given)
        for (const one of given) one?.keep()
        return made
      })
    },
    remove: (tx, conv_id) => removeAll(tx, secretsOf(webhookOwner(conv_id))),
    onRemoved: (conv_id) => secrets.forget(webhookOwner(conv_id)),
    removeOf: (tx, owner) => removeAll(tx, secretsOf(owner)),
    onRemovedOf: (owner) => secrets.forget(owner),
  }
}
