/**
 * Opens and closes the webhooks of processes, at most one each. An import opens one only if the
 * previous definition did not ask for it, so a closed webhook stays closed.
 */
import type { WebhookRecord } from '../../codec/records.ts'
import type { Chance } from '../../core/clock.ts'
import type { Graph } from '../../process/graph.ts'
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
  return asks(next) && !(old && asks(old)) ? { nonce } : undefined
}

/** A new address keeps the user of the old one. */
export function changedWebhook(
  open: WebhookRecord | undefined,
  { address, user }: WebhookChange,
  nonce: string,
): WebhookRecord | undefined {
  if (address === 'off') return undefined
  if (address === undefined && user === undefined) return open
  const next = address === 'new' ? { ...open, nonce } : (open ?? { nonce })
  return user === undefined ? next : { ...next, user: userId(user) }
}

export function webhookInfo(
  addresses: Addresses,
  { conv_id, record: { webhook }, graph }: Process,
): WebhookInfo {
  const nodes = [...graph.nodes.values()]
  return {
    conv_id,
    address: webhook ? addresses.printed(addresses.webhookPath(conv_id, webhook)) : null,
    user: webhook?.user ?? null,
    callbacks: nodes
      .filter(({ logics }) => logics.some((one) => one.callback))
      .map(({ id }) => ({
        node_id: id,
        address: addresses.printed(addresses.callbackPath(conv_id, id)),
      })),
  }
}
