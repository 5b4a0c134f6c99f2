/**
 * Opens and closes the webhooks of processes, at most one each. An import opens one only if the
 * previous definition did not ask for it, so a closed webhook stays closed.
 */
import type { WebhookRecord } from '../../codec/records.ts'
import type { Chance } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { Graph } from '../../process/graph.ts'
import { lockOf } from '../../process/webhook-lock.ts'
import type { Addresses } from '../access/addresses.ts'
import { userId } from '../access/users.ts'
import type { WebhookChange, WebhookInfo } from '../api/process-api.ts'
import type { Process } from '../transactions/catalog.ts'

export function newNonce(chance: Chance): string {
  return chance.bytes(16).toString('hex')
}

/** The webhook that an import of `next` over `old` opens, if any. */
export function firstWebhook(
  old: Graph | undefined,
  next: Graph,
  nonce: string,
): WebhookRecord | undefined {
  const asks = (graph: Graph): boolean => graph.nodes.get(graph.start_id)?.direct_url === true
  const opens = asks(next) && lockOf(next) !== 'unknown'
  return opens && !(old && asks(old)) ? { nonce } : undefined
}

/** A new address keeps the user of the old one. Throws `not_possible` against a lock. */
export function changedWebhook(
  open: WebhookRecord | undefined,
  graph: Graph,
  { address, user }: WebhookChange,
  nonce: string,
): WebhookRecord | undefined {
  if (address === 'off') return undefined
  if (address === undefined && user === undefined) return open
  const lock = lockOf(graph)
  if (lock === 'unknown') {
    throw fault('not_possible', 'the definition locks its webhook in a way that is not known here')
  }
  if (lock !== undefined && user !== undefined) {
    throw fault('not_possible', 'the definition locks its webhook with a login of its own')
  }
  const next = address === 'new' ? { ...open, nonce } : (open ?? { nonce })
  return user === undefined ? next : { ...next, user: userId(user) }
}

export function webhookInfo(
  addresses: Addresses,
  { conv_id, record: { webhook }, graph }: Process,
): WebhookInfo {
  const nodes = [...graph.nodes.values()]
  const lock = lockOf(graph)
  return {
    conv_id,
    has_login: lock !== undefined,
    address:
      webhook && lock !== 'unknown'
        ? addresses.printed(addresses.webhookPath(conv_id, webhook))
        : null,
    user: lock === undefined ? (webhook?.user ?? null) : null,
    callbacks: nodes
      .filter(({ logics }) => logics.some((one) => one.callback))
      .map(({ id }) => ({
        node_id: id,
        address: addresses.printed(addresses.callbackPath(conv_id, id)),
      })),
  }
}
